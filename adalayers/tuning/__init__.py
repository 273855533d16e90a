"""The only package that imports Ray and Optuna: a trainable for Tune, and `run_study`."""

from adalayers.tuning.run import run_study
from adalayers.tuning.running_case import StudyOutcome
from adalayers.tuning.trainable import trainable

__all__ = ["StudyOutcome", "run_study", "trainable"]
