"""What a study is asked for, on which data and with which resources.

A field made by `flag` is a flag of the study scripts: `adalayers.command.flags` builds the parser, its help and its
checks from the fields of these records. Nothing here needs torch or Ray.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal

from adalayers.config import TrialConfig
from adalayers.errors import BadInput
from adalayers.schedulers import REFUSED, SCHEDULERS
from adalayers.states import ComputeType, Precision, Settings

Search = Literal["grid", "random", "optuna"]
Machine = tuple[float, float]
"""Its CPUs and its GPUs."""

MAX_GROUP = 64
"""Most trials in one program, unless --group says otherwise."""


def flag(help: str, default: Any = None, metavar: str = "N", **more: Any) -> Any:
    """Return a dataclass field that a flag of its name fills; its type is that of the field.

    Args:
        help: As `--help` says it; "%(default)s" stands for the default, "{backbones}" and "{metrics}" for the study's.
        default: Where the user gives nothing.
        metavar: What `--help` calls the value.
        more: Bounds `least` and `most` (included), `above` (excluded, and finite); `several`: the flag takes several
            values, each of which makes a record; `choices`: the values there are, where the type does not say;
            `refused`: value -> why it is none; `may_change`: another value is no other study; `later`: studies from
            before there was the flag have its default.
    """
    return field(default=default, metadata={"help": help, "metavar": metavar, **more})


@dataclass(frozen=True)
class DataRequest:
    """Which data, seen through which backbone, by name: nothing of it is looked for yet.

    metrics: by kind of task, the score that selects where `metric` is None; else the task's own does
    """

    backbone: str = flag(
        "alias, hub id[@revision] or local folder, one or more; random: in front of one gives its shape with random "
        "weights, states:DIR is a folder of hidden states computed elsewhere (default: {backbones})",
        "",
        "NAME",
        several=True,
    )
    dataset: str = flag(
        "a dataset that has a name here (imdb, cola, conll2003, mnli, stsb, ...; see docs/tasks.md), an embedded one "
        "(acceptability-demo, inference-demo, similarity-demo, entities-demo, word-classes-demo), hub "
        "id[:config][@revision] or local folder, one or more (default: the embedded demo; cola where --backbone is "
        "given)",
        "",
        "NAME",
        several=True,
    )
    _: KW_ONLY
    text_column: str | None = flag(
        "column of texts or tokens, where the dataset's features do not tell; two with a comma between them are pairs "
        "of texts",
        metavar="NAME",
    )
    label_column: str | None = flag(
        "column of labels, likewise; one of numbers is regression; of several, each is a case of its own",
        metavar="NAME",
        several=True,
    )
    group_column: str | None = flag(
        "column of documents, authors, prompts: validation that is cut from train has all rows of a value or none, and "
        "intervals over examples draw them together",
        metavar="NAME",
        later=True,
    )
    splits: tuple[str, ...] = flag(
        "which file, or folder of the dataset's, is which split, where names do not tell; validation=10%% cuts it from "
        "train; none for none",
        (),
        "ROLE=FILE",
    )
    data_dir: str | None = flag(
        "folder of local copies of datasets and backbones, tried before the hub (default: ADALAYERS_DATA)",
        metavar="DIR",
        may_change=True,
    )
    metric: str | None = flag(
        "the score that selects, of those the task has (default: {metrics}the task's own)", metavar="NAME"
    )
    metrics: tuple[tuple[str, str], ...] = ()
    train_examples: int | None = flag("train on a uniform subset (default: all)", least=1)
    eval_examples: int | None = flag("at most this many for validation (default: all)", least=1)
    test_examples: int | None = flag(
        "at most this many for test (default: all: they are cheaper than seeds)",
        least=1,
    )
    max_length: int = flag("tokens a text is cut to (default: %(default)s)", 256, least=3, most=1_000_000)
    precision: Precision = flag(
        "how the store keeps hidden states; another one is another study (default: %(default)s)", "float16"
    )
    backbone_dtype: Literal["auto", ComputeType] = flag(
        "in what the backbone computes; another one is another study (default: auto: float32, bfloat16 where that "
        "does not fit the memory of a GPU, or without one of this machine)",
        "auto",
    )
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class StudyRequest:
    """What a study was asked for, the same in all its cases.

    smallest_effect: None: that of the study that is continued, else by metric
    set:             hyperparameters that the user fixed
    command:         how to run it again
    """

    search: Search = flag("how configurations are chosen (default: %(default)s)", "optuna")
    scheduler: str = flag(
        "how the search's trials are stopped early (default: %(default)s)",
        "asha",
        choices=(*SCHEDULERS,),
        refused=REFUSED,
    )
    trials: int = flag(
        "configurations of the search (default: %(default)s)", 16, least=0, most=1_000_000, may_change=True
    )
    seeds: int = flag(
        "every confirmed arm runs with seeds S+1..S+N (default: %(default)s)",
        6,
        least=1,
        most=100_000,
        may_change=True,
    )
    until_decided: bool = flag(
        "look at 6 seeds, the middle and --seeds, and end once every primary comparison is decided",
        False,
        may_change=True,
    )
    seed: int = flag(
        "seed of the search and of the data subset (default: %(default)s)", 0, "S", least=0, most=2**32 - 1
    )
    rates: tuple[float, ...] = flag(
        "each arm first tries these values of lr (mix_lr as without them) on the search's seed, and keeps its best by "
        "validation; others are another study (default: none; all arms have one lr)",
        (),
        "LR...",
        above=0,
    )
    smallest_effect: float | None = flag(
        "smallest difference of interest, on the metric's scale; another one is another study (default: by metric; "
        "that of the study that is continued)",
        metavar="X",
        above=0,
        may_change=True,
    )
    epochs: int = flag("most epochs of a trial (default: %(default)s)", TrialConfig.epochs)
    set: Settings = field(
        default_factory=dict,
        metadata={"help": "fix hyperparameters (default: none)", "metavar": "KEY=VALUE"},
    )
    smoke: bool = flag("a few tiny trials, label smoke: a complete report within 2 minutes", False)
    command: str = ""

    @property
    def confirmation_seeds(self) -> range:
        """The seeds that every arm is confirmed with; the search has `seed` itself."""
        return range(self.seed + 1, self.seed + self.seeds + 1)


@dataclass(frozen=True, kw_only=True)
class Resources:
    """With what a study may run; `cpus_per_trial` and `group` may round otherwise, else none of it changes a number.

    gpus_per_trial: None: one where there is a GPU
    max_concurrent: None: as many trials as the resources allow
    max_hours:      of all cases together
    """

    cpus_per_trial: float = flag("CPUs, and threads, of a trial (default: 1)", 1.0, above=0)
    gpus_per_trial: float | None = flag(
        "GPUs of a trial, fractions allowed (default: 1 where there is one)", least=0, most=1_000_000
    )
    max_concurrent: int | None = flag("trials at a time (default: as many as fit)", least=1)
    max_hours: float | None = flag(
        "end in good order after this time (default: no limit)", metavar="H", above=0
    )
    retries: int = flag(
        "how often a trial that fails, or whose worker dies, is tried again from its checkpoint "
        "(default: %(default)s)",
        1,
        least=0,
        most=100,
    )
    group: str = flag(
        "how many trials run in one program, which share passes of the base model or take their steps as one: auto, "
        "or a number (default: auto: as many as keep all CPUs or GPUs busy where hidden states are computed again or "
        "trials run on a GPU, else 1)",
        "auto",
        "auto|N",
    )
    hang_minutes: float = flag(
        "kill and retry a trial after M minutes without progress (default: 30)", 30.0, "M", above=0
    )
    address: str | None = flag("an existing Ray cluster (default: a local one)", metavar="ADDR")

    def gpus(self, machines: Sequence[Machine]) -> float:
        """Return how many GPUs a trial takes of machines, any of which may have some."""
        if self.gpus_per_trial is not None:
            return self.gpus_per_trial
        return 1.0 if any(gpus for _, gpus in machines) else 0.0

    def at_a_time(self, machines: Sequence[Machine]) -> int:
        """Return how many trials fit on machines at once, each on one of them, at most `max_concurrent`."""
        each, total = self.gpus(machines), 0
        for cpus, gpus in machines:
            fits = cpus / self.cpus_per_trial
            if each:  # Ray gives a part of one GPU alone
                fits = min(fits, gpus * int(1 / each) if each < 1 else gpus / each)
            total += int(fits)
        return min(total, self.max_concurrent or sys.maxsize)

    def require_room(self, machines: Sequence[Machine]) -> int:
        """Return `at_a_time`. Raises `BadInput` where no trial fits."""
        each, gpus = self.gpus(machines), max(gpus for _, gpus in machines)
        cpus = max((cpus for cpus, gpus in machines if gpus >= each), default=0)
        for unit, wanted, there in (("gpus", each, gpus), ("cpus", self.cpus_per_trial, cpus)):
            if wanted > there:
                machine = "one machine with enough GPUs" if each and unit == "cpus" else "one machine"
                raise BadInput(
                    f"wanted --{unit}-per-trial of at most {there:g}, as many as {machine} has, got {wanted:g}; lower "
                    "it, or name a cluster of larger ones with --address"
                )
        return self.at_a_time(machines)

    def group_size(self, *, live: bool, on_gpu: bool, waiting: Callable[[], int], concurrency: int) -> int:
        """Return how many trials at most run in one program.

        Args:
            live: Whether the base model is passed again for every batch.
            on_gpu: Whether trials run on one, where steps of many cost about those of one.
            waiting: Counts the trials that have not begun.
            concurrency: Programs that run at a time.
        """
        if self.group != "auto":
            return int(self.group)
        return min(MAX_GROUP, max(1, math.ceil(waiting() / concurrency))) if live or on_gpu else 1
