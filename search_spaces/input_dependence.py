"""What the weights of a mix depend on, with the rates that a search tunes along."""

from ray import tune

KEYS = ["static", "texts", "tokens"]
"""The control's first: weights that depend on nothing but the layer."""

SCIENTIFIC = {"keys": tune.choice(KEYS)}

NUISANCE = {
    # Around the default. That of w moves logits: each step by up to k times the rate, and less where keys differ.
    "lr": tune.loguniform(3e-4, 3e-3),
    "mix_lr": tune.loguniform(1e-4, 1e-2),
}

GRID = {"keys": KEYS, "lr": [1e-3], "mix_lr": [3e-4, 1e-3, 3e-3]}

FIXED = {"fusion": "layer-attention"}
