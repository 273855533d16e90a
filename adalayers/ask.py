"""What a study is asked for, and with what it may run, as records that need neither Ray nor torch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Search = Literal["grid", "random", "optuna"]
Scheduler = Literal["asha", "fifo"]


@dataclass(frozen=True, kw_only=True)
class Ask:
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
class Limits:
    """With what a study may run; none of it changes a number.

    gpus_per_trial: None: one where there is a GPU; max_concurrent: None: as many as the resources allow
    """

    cpus_per_trial: float = 1.0
    gpus_per_trial: float | None = None
    max_concurrent: int | None = None
    max_hours: float | None = None
    address: str | None = None
