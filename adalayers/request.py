"""What a study is asked for, and with what it may run, as records that need neither Ray nor torch."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal

from adalayers.states import ComputeType, Precision

Search = Literal["grid", "random", "optuna"]
Scheduler = Literal["asha", "fifo"]

REDUCTION = 3
"""ASHA lets the best of so many trials go on from each rung, and its rungs lie so many times apart."""


def grace(epochs: int) -> int:
    """Return the epochs that ASHA gives every trial."""
    return max(1, epochs // 8)


@dataclass(frozen=True, kw_only=True)
class StudyRequest:
    """What a study was asked for, the same in all its cases.

    search, scheduler: how the search's configurations are chosen, and stopped early
    trials, seeds:     configurations of the search, and seeds of every confirmed arm
    seed:              that of the search; confirmed arms have those above it
    until_decided:     confirm in blocks of seeds, until every primary comparison is decided
    fixed:             hyperparameters of --set
    command:           how to run it again
    """

    search: Search
    scheduler: Scheduler
    trials: int
    seeds: int
    seed: int = 0
    until_decided: bool = False
    fixed: dict[str, Any] = field(default_factory=dict)
    command: str = ""
    smoke: bool = False


@dataclass(frozen=True, kw_only=True)
class Resources:
    """With what a study may run; none of it changes a number.

    gpus_per_trial: None: one where there is a GPU; max_concurrent: None: as many as the resources allow
    retries:        how often a trial that fails, or whose worker dies, is tried again from its checkpoint
    hang_minutes:   a trial without a sign of life for so long is ended, and counts as one whose worker died
    """

    cpus_per_trial: float = 1.0
    gpus_per_trial: float | None = None
    max_concurrent: int | None = None
    max_hours: float | None = None
    address: str | None = None
    retries: int = 1
    hang_minutes: float = 30.0


@dataclass(frozen=True)
class DataRequest:
    """Which data, seen through which backbone, as the flags of the same names say.

    backbone_dtype: in what the backbone computes; auto: float32, bfloat16 where that does not fit the device
    metric: the score that selects; None: that of `metrics`, by kind of task, else the task's own
    """

    backbone: str
    dataset: str
    _: KW_ONLY
    data_dir: str | None = None
    text_column: str | None = None
    label_column: str | None = None
    metric: str | None = None
    metrics: tuple[tuple[str, str], ...] = ()
    train_examples: int | None = None
    eval_examples: int | None = None
    max_length: int = 256
    precision: Precision = "float16"
    backbone_dtype: ComputeType | Literal["auto"] = "auto"
    seed: int = 0
