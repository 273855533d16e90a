"""What is tuned again for each ablated component, under an equal budget."""

from ray import tune

# The components are arms, not values of a hyperparameter: see studies/ablation.py.

NUISANCE = {
    # A component may have been tuned together with its rates: without it, others may be best.
    "lr": tune.loguniform(1e-4, 1e-2),
    "weight_decay": tune.loguniform(1e-6, 1e-1),
    "dropout": tune.uniform(0.0, 0.5),
}

GRID = {"lr": [3e-4, 1e-3, 3e-3], "weight_decay": [1e-5, 1e-3], "dropout": [0.1, 0.3]}
