"""The learning rates of a study of data (open question 1): what must be tuned along, and nothing else."""

from ray import tune

# The factor is the case: the dataset, which lies at some distance from the reference.

NUISANCE = {
    # Datasets of other sizes want other rates: a decade around the default on each side, for the
    # mix one more above.
    "lr": tune.loguniform(1e-4, 1e-2),
    "mix_lr": tune.loguniform(1e-4, 1e-1),
}

GRID = {"lr": [3e-4, 1e-3, 3e-3], "mix_lr": [1e-3, 1e-2]}
