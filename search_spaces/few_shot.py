"""Few examples: the protocol of ElNokrashy et al. 2024 (Depth-Wise Attention), sections 3.1, 5.2 and 5.3."""

from ray import tune

SHOTS = {"part": [8, 32, 128], "whole": [8, 16, 32, 64, 128]}
"""N: examples are N x C, C the number of classes; by --protocol. All five are the paper's."""

EPOCH_SHARES = {"part": [1 / 4, 1 / 2, 1], "whole": [1 / 4, 1 / 2, 3 / 4, 1]}
"""Of --epochs, by --protocol: the paper's 25, 50, 75 and 100 where --epochs is 100."""

# Methods are compared, not searched.

NUISANCE = {
    # Published: 5e-5 in section 9.1, 1e-5 in its table 4. Smaller base models and heads want a larger rate.
    "lr": tune.loguniform(1e-5, 3e-3),
}

FIXED = {
    # As published. Of weight decay and dropout the paper says nothing: they stay at the defaults.
    "lr": 5e-5,
    "optimiser": "adamw",
    "schedule": "linear",
    "warmup": 0.0,
    "batch_size": 16,
}

GRID = {"lr": [5e-5, 2e-4, 1e-3]}
