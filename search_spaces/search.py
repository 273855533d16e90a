"""All that is tuned by hand today, searched together."""

from ray import tune

SCIENTIFIC = {
    # As in search_spaces/alpha_lambda.py. mix_lr is not searched with it: under Adam both are one axis.
    "alpha": tune.loguniform(0.5, 1024),
    "entropy_weight": tune.choice([0.0, 1e-4, 1e-3, 1e-2, 1e-1]),
    # Published: 64 and 128. Divisible by the default 8 heads.
    "k": tune.choice([16, 32, 64, 128, 256]),
    # Published: 5e-3 and 1e-2. Values that would cut every layer are left out once the backbone is known.
    "cutoff": tune.choice([0.0, 5e-3, 1e-2, 2e-2, 4e-2, 8e-2]),
    # Published: 5e-3 to 0.3.
    "dropout": tune.uniform(0.0, 0.5),
    # Published: 1e-4 at batches of 356 to 1200; a decade around the default for small batches.
    "lr": tune.loguniform(1e-4, 1e-2),
    # Published: 0 and 1e-3.
    "weight_decay": tune.loguniform(1e-6, 1e-1),
}

FIXED = {"mix_lr": 1e-3}

GRID: dict[str, list[float]] = {
    "alpha": [1.0, 64.0],
    "entropy_weight": [0.0, 1e-2],
    "k": [32, 128],
    "cutoff": [0.0, 1e-2],
    "dropout": [0.0, 0.3],
    "lr": [3e-4, 3e-3],
    "weight_decay": [1e-5, 1e-2],
}
