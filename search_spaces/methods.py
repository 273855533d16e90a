"""What is tuned for each method: its learning rate, around what its source used, and what it alone has."""

from ray import tune

# Frozen base model: a decade around the default on each side. The thesis has 1e-4 at batches of 356 to 1200.
FROZEN = {"lr": tune.loguniform(1e-4, 1e-2)}

# The thesis's steps are many and small, its alpha large: at its rate for the head the logits of the mix move tens of
# times as far here. A rate of their own reaches that distance from 1e-5 on.
MIX = {**FROZEN, "mix_lr": tune.loguniform(1e-5, 1e-2)}

# Houlsby et al. 2019 have 3e-4 at batches of 32.
ADAPTERS = {"lr": tune.loguniform(1e-4, 1e-3)}

# BERT's own range, 2e-5 to 5e-5, and beyond, for small base models want more.
FINE_TUNED = {"lr": tune.loguniform(1e-5, 3e-4)}

# The fused part as if the base model were frozen, the base model as if it were fine-tuned alone.
FUSED_AND_FINE_TUNED = {**MIX, "base_lr": tune.loguniform(1e-5, 3e-4)}

# Layers beyond the backbone's are left out once it is known.
SINGLE = {**FROZEN, "layer": tune.choice(list(range(1, 49)))}

# Evci et al. 2022 search F from 5e-4 to 0.1 over millions of features; a text encoder has thousands.
HEAD2TOE = {
    **FROZEN,
    "fraction": tune.choice([0.01, 0.03, 0.1, 0.3, 1.0]),
    "lasso": tune.choice([1e-5, 1e-4, 1e-3]),
}

NUISANCE = FROZEN

GRID: dict[str, list[float]] = {
    "lr": [3e-4, 1e-3, 3e-3],
    "mix_lr": [1e-5, 1e-4, 1e-3],
    "base_lr": [3e-5, 1e-4],
    "layer": list(range(1, 49)),
    "fraction": [0.01, 0.1],
    "lasso": [1e-5, 1e-4, 1e-3],
}
ADAPTERS_GRID = {"lr": [1e-4, 3e-4, 1e-3]}
FINE_TUNED_GRID = {"lr": [2e-5, 5e-5, 1e-4]}
