"""k and dropout against the amount of data."""

from ray import tune

DATA_SHARES = [1 / 16, 1 / 4, 1]
"""Of the training pool."""

K, DROPOUT = [64, 16, 256], [0.1, 0.0, 0.3]
"""The control's first. Published: k 64 and 128, dropout 0.005 to 0.3."""

SCIENTIFIC = {
    # Divisible by the default 8 heads.
    "k": tune.choice([8, 16, 32, 64, 128, 256, 512]),
    "dropout": tune.uniform(0.0, 0.5),
}

NUISANCE = {"lr": tune.loguniform(3e-4, 3e-3)}

GRID = {"k": SCIENTIFIC["k"].categories, "dropout": [0.0, 0.1, 0.3], "lr": [1e-3]}
