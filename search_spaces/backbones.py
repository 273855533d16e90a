"""The learning rates of a study of base models (open question 1): what must be tuned along, and nothing else."""

from ray import tune

# The factors are the cases: backbone and dataset.

NUISANCE = {
    # Hidden states of other base models have other scales, though the projections are normalised: a decade around
    # the default on each side for the head, and one more above for the mix.
    "lr": tune.loguniform(1e-4, 1e-2),
    "mix_lr": tune.loguniform(1e-4, 1e-1),
}

GRID = {"lr": [3e-4, 1e-3, 3e-3], "mix_lr": [1e-3, 1e-2]}
