"""alpha and lambda (`entropy_weight`), with the learning rate that must be tuned along (open question 2)."""

from ray import tune

SCIENTIFIC = {
    # Published: 64, 70, 128. Under Adam a step moves a mix logit by about alpha * mix_lr, so the scale is
    # logarithmic; below 1 the mix hardly leaves uniform in the epochs of a study, above 1024 one step decides.
    "alpha": tune.loguniform(0.5, 1024),
    # Published: 0 and 1e-3. 0 is the control and is in no loguniform, hence a choice. At 1e-1 the penalty
    # (at most 0.32 nats for 24 layers) rivals the cross-entropy.
    "entropy_weight": tune.choice([0.0, 1e-4, 1e-3, 1e-2, 1e-1]),
}

NUISANCE = {
    # Published: 1e-4 at batches of 356 to 1200; a decade around the default for small batches.
    "lr": tune.loguniform(1e-4, 1e-2),
}

FIXED = {
    # With weight decay off p, alpha and mix_lr are one axis: searched together they would share one effect between
    # two names. Not tied to lr either, or lr would move the mix as well.
    "mix_lr": 1e-3,
}

LEVELS = {"alpha": [1.0, 8.0, 64.0, 512.0], "entropy_weight": [0.0, 1e-3, 1e-2]}
"""Of the factorial core, the control's first; of `--search grid` too."""

GRID = {**LEVELS, "lr": [3e-4, 1e-3, 3e-3]}
