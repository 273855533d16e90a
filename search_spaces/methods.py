"""What is tuned for each method: its learning rates, around what its source used, and what it alone has."""

from typing import Any

from ray import tune

from adalayers.study import Space

# Of each hyperparameter its domain, and its values under --search grid.

# Frozen base model: a decade around the default on each side. The thesis has 1e-4 at batches of 356 to 1200.
RATE = tune.loguniform(1e-4, 1e-2), [3e-4, 1e-3, 3e-3]

# A linear layer over states at their own width has a convex loss and takes far larger steps than what is deep.
LINEAR_RATE = tune.loguniform(1e-4, 0.3), [1e-3, 1e-2, 1e-1]

# ElNokrashy et al. 2024 have 5e-5 (and 1e-5 in their table 4) at batches of 16.
DEEP_RATE = tune.loguniform(1e-5, 1e-2), [5e-5, 3e-4, 1e-3, 3e-3]

# A new head on a base model that is trained along starts at random: it wants a rate of its own.
HEAD_RATE = tune.loguniform(1e-4, 1e-1), [3e-4, 1e-3, 3e-3]

# The thesis's steps are many and small, its alpha large: at its rate for the head the logits of the mix move tens of
# times as far here. A rate of their own reaches that distance from 1e-5 on.
MIX_RATE = tune.loguniform(1e-5, 1e-2), [1e-5, 1e-4, 1e-3]

# Houlsby et al. 2019 have 3e-4 at batches of 32; small base models want more.
ADAPTERS_RATE = tune.loguniform(1e-4, 3e-3), [3e-4, 1e-3, 3e-3]

# BERT's own range is 2e-5 to 5e-5; small base models want more.
BASE_RATE = tune.loguniform(1e-5, 1e-3), [3e-5, 1e-4]

# Evci et al. 2022 search F from 5e-4 to 0.1 over millions of features; a text encoder has thousands.
FRACTION = tune.choice([0.01, 0.03, 0.1, 0.3, 1.0]), [0.01, 0.1]
LASSO = tune.choice([1e-5, 1e-4, 1e-3]), [1e-5, 1e-4, 1e-3]

# Layers beyond the backbone's are left out once it is known.
LAYER = tune.choice(list(range(1, 129))), list(range(1, 129))

FIXED = {
    # One optimiser and schedule for all, but for methods as published. The rate rises, falls and reaches 0.
    "optimiser": "adamw",
    "schedule": "linear",
    "warmup": 0.1,
}

NUISANCE, GRID = {"lr": RATE[0]}, {"lr": RATE[1]}


def space(**tuned: tuple[Any, list[Any]]) -> Space:
    """Return the space of one kind of method."""
    domains = {name: domain for name, (domain, _) in tuned.items()}
    return Space({}, domains, {name: values for name, (_, values) in tuned.items()})


SPACES = {
    "adapters": space(lr=(HEAD_RATE[0], [1e-3, 1e-2]), base_lr=ADAPTERS_RATE),
    "deep": space(lr=DEEP_RATE),
    "fine-tuned": space(lr=HEAD_RATE, base_lr=BASE_RATE),
    "frozen": space(lr=RATE),
    "fused": space(lr=HEAD_RATE, mix_lr=MIX_RATE, base_lr=BASE_RATE),
    "head2toe": space(lr=LINEAR_RATE, fraction=FRACTION, lasso=LASSO),
    "linear": space(lr=LINEAR_RATE),
    "mix": space(lr=RATE, mix_lr=MIX_RATE),
    "single": space(lr=RATE, layer=LAYER),
}
"""By kind of method."""
