"""alpha, lambda and cutoff against the amount of data (open question 3)."""

from ray import tune

DATA_SHARES = [1 / 64, 1 / 16, 1 / 4, 1]
"""Of the training pool."""

ALPHA = [64.0, 512.0]
"""Next to the control's 1."""

ENTROPY_WEIGHT, CUTOFF_SHARE = 1e-2, 0.5
"""lambda, and the cutoff as a share of the uniform weight 1/l, each tried at the first alpha above."""

SCIENTIFIC = {
    "alpha": tune.loguniform(0.5, 1024),
    "entropy_weight": tune.choice([0.0, 1e-3, 1e-2, 1e-1]),
    "cutoff": tune.choice([0.0, 5e-3, 1e-2, 2e-2, 4e-2, 8e-2]),
}

NUISANCE = {"lr": tune.loguniform(3e-4, 3e-3)}

FIXED = {
    # Under Adam alpha and mix_lr are one axis: see studies/alpha_lambda.py.
    "mix_lr": 1e-3,
}

GRID = {"alpha": [1.0, *ALPHA], "entropy_weight": [0.0, ENTROPY_WEIGHT], "cutoff": [0.0, 2e-2], "lr": [1e-3]}
