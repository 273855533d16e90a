"""Which layers a trained mix can do without; alpha decides how the weight is spread over them."""

from ray import tune

ALPHA = [1.0, 64.0]

SCIENTIFIC = {"alpha": tune.loguniform(0.5, 1024)}

NUISANCE = {"lr": tune.loguniform(3e-4, 3e-3)}

FIXED = {"mix_lr": 1e-3}

GRID = {"alpha": [1.0, 8.0, 64.0, 512.0], "lr": [1e-3]}
