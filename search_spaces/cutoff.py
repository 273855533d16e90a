"""The cutoff of the mix weights, with the alpha that decides how many layers come near it."""

from ray import tune

CUTOFF_SHARES = [0.0, 0.25, 0.5, 0.75]
"""Of the uniform weight 1/l: the thesis's cutoffs, 0.005 and 0.01 at 24 layers, are 0.12 and 0.24 of it."""

ALPHA = [8.0, 64.0, 512.0]
"""At alpha 1 no weight comes near a cutoff in the epochs of a study."""

SCIENTIFIC = {
    # Values that would cut every layer of a deep backbone are left out once it is known.
    "cutoff": tune.choice([0.0, 5e-3, 1e-2, 2e-2, 4e-2, 8e-2, 0.12]),
    "alpha": tune.loguniform(1, 1024),
    "cutoff_when": tune.choice(["always", "after-training"]),
}

NUISANCE = {"lr": tune.loguniform(3e-4, 3e-3)}

FIXED = {
    # Under Adam alpha and mix_lr are one axis: see studies/alpha_lambda.py.
    "mix_lr": 1e-3,
}

GRID = {
    "cutoff": SCIENTIFIC["cutoff"].categories,
    "alpha": ALPHA,
    "cutoff_when": SCIENTIFIC["cutoff_when"].categories,
    "lr": [1e-3],
}
