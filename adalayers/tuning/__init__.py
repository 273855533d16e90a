"""Ray's one door: a trainable for Tune, and `run_study`."""

from adalayers.tuning.run import Ask, Limits, Outcome, run_study
from adalayers.tuning.trainable import trainable

__all__ = ["Ask", "Limits", "Outcome", "run_study", "trainable"]
