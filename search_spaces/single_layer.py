"""Every layer alone, with its projection trained or not (thesis figures 10, 14, 18)."""

from ray import tune

SCIENTIFIC = {
    "mix": tune.choice(["single"]),
    # Layers beyond the backbone's are left out once it is known; 128 is more than any has.
    "layer": tune.choice(list(range(1, 129))),
    # False is what the released code did to its baselines: it froze the projections with the mix.
    "train_projections": tune.choice([True, False]),
}

NUISANCE = {
    # An untrained projection may want another rate than a trained one; a decade around the default.
    "lr": tune.loguniform(3e-4, 3e-3),
}

GRID = {**{name: domain.categories for name, domain in SCIENTIFIC.items()}, "lr": [3e-4, 1e-3, 3e-3]}
