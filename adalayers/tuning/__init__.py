"""The only package that imports Ray and Optuna: a trainable for Tune, and `run_study`."""

from adalayers.tuning.run import run_study
from adalayers.tuning.trainable import trainable

__all__ = ["run_study", "trainable"]
