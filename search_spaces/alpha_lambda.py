"""alpha and lambda (`entropy_weight`), with the learning rates that must be tuned along (open question 2)."""

from ray import tune

SCIENTIFIC = {
    # Published: 64, 70, 128. Under Adam a step of mix_lr moves a logit by about alpha * mix_lr, so the scale is
    # logarithmic; below 1 the mix hardly leaves uniform in the epochs of a study, above 1024 one step decides.
    "alpha": tune.loguniform(0.5, 1024),
    # Published: 0 and 1e-3. 0 is the control and is in no loguniform, hence a choice. At 1e-1 the penalty
    # (at most 0.32 nats for 24 layers) rivals the cross-entropy.
    "entropy_weight": tune.choice([0.0, 1e-4, 1e-3, 1e-2, 1e-1]),
}

NUISANCE = {
    # Published: 1e-4 at batches of 356 to 1200; a decade around the default for small batches.
    "lr": tune.loguniform(1e-4, 1e-2),
    # With weight decay off p, alpha * mix_lr is one axis: searched so that alpha is not judged at one speed.
    "mix_lr": tune.loguniform(1e-4, 1e-2),
}

GRID = {
    "alpha": [1.0, 8.0, 64.0, 512.0],
    "entropy_weight": [0.0, 1e-3, 1e-2],
    "lr": [3e-4, 1e-3, 3e-3],
    "mix_lr": [3e-4, 1e-3, 3e-3],
}
