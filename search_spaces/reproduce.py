"""How the methods of a paper are trained where another paper compares them, and what a search would tune."""

from ray import tune

# Methods are compared, not searched.

NUISANCE = {
    # ILSE searches 1e-4 and 1e-3, dropout from 0 to 0.3, and how layers become one vector.
    "lr": tune.loguniform(1e-4, 1e-3),
    "dropout": tune.uniform(0.0, 0.3),
    "layer_pooling": tune.choice(["mean", "sum"]),
}

GRID = {"layer_pooling": ["mean", "sum"], "lr": [1e-4, 1e-3], "dropout": [0.0, 0.1, 0.2, 0.3]}

FIXED = {
    # ILSE's best configuration: width 256, two rounds of one layer each, the mean over layers.
    "fusion": "layer-graph",
    "read_out": "mean",
    "k": 256,
    "rounds": 2,
    "batch_size": 64,
    "lr": 1e-3,
    "weight_decay": 1e-4,
    "dropout": 0.1,
}
