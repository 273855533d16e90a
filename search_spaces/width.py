"""One layer, wider, against the mix of all: is what the mix gains its layers or its parameters?"""

from ray import tune

K = [64, 128]
"""Besides them the width of the base model, where the heads divide it."""

SCIENTIFIC = {
    "mix": tune.choice(["single"]),
    # Layers beyond the backbone's are left out once it is known; 128 is more than any has.
    "layer": tune.choice(list(range(1, 129))),
    "k": tune.choice([64, 128, 256, 384, 512, 768, 1024]),
}

NUISANCE = {"lr": tune.loguniform(3e-4, 3e-3)}

GRID = {**{name: domain.categories for name, domain in SCIENTIFIC.items()}, "lr": [1e-3]}
