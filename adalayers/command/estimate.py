"""The plan of a study in words, with costs measured on a few sequences in memory; nothing is written or kept."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import os
import re
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from adalayers.backbones.loading import weight_bytes
from adalayers.backbones.pretrained import bytes_per_parameter, weights
from adalayers.command.flags import Flags
from adalayers.comparisons import FIRST, IMPORTANCES_FROM, IMPORTANCES_NAMED_FROM
from adalayers.config import TrialConfig
from adalayers.console.progress import duration
from adalayers.data.feature_plan import (
    SAMPLE,
    Seconds,
    feature_plan,
    missing_bytes,
    not_stored,
    padded_tokens,
    time_backbone,
    time_work,
)
from adalayers.data.prepare import Prepared
from adalayers.data.trial_data import SplitData, TrialData
from adalayers.errors import BadInput
from adalayers.escaping import visible
from adalayers.features.features import stored_bytes
from adalayers.models.model import FusionModel
from adalayers.request import REDUCTION, StudyRequest, grace
from adalayers.results.files import FINISHED, TRIALS, read_trials
from adalayers.results.study_file import splits_in_words
from adalayers.states import State
from adalayers.study import ConfirmedArm, PlannedSearch, Study, trial_id
from adalayers.tasks.task import Task
from adalayers.tensors.ragged import pooled, ragged_index
from adalayers.training.trainer import Diverged, train
from adalayers.tuning.case import Case
from adalayers.tuning.document import environment
from adalayers.tuning.rates import at_rates

CHECKPOINT_BYTES, EXAMPLE_BYTES = 16, 16
"""Of a checkpoint per parameter (the model, its best state, two moments); of predictions per example and arm."""
SPREAD = 1.33
"""By what the same work takes longer or shorter on one machine (docs/performance.md: a third, minute by minute)."""
FIXED_SECONDS, RAY_SECONDS, PAGE_SECONDS = 18.0, 5.0, 0.01
"""Of a run, whatever its trials: loading, Ray's start, the report (measured on two cores: 13 to 18 s); of that what is
Ray's, which a run without trials does not start; and what the report takes more for each trial."""
WORKER_BYTES = 0.5e9
"""Memory of a Ray worker with torch, without its features (measured: 0.43 to 0.51 GB)."""
LARGE = 1_000_000_000
"""Parameters from which on a backbone is not loaded to be timed."""
PROBE_TOKENS, PROBE_OPERATIONS = 64, 2e10
"""Of a matrix product that stands for a backbone's: its rows, and operations of all its repetitions."""
BUSY = 1.5
"""From how many times as long as on a quiet machine on the plan says that this one is not."""


@dataclass(frozen=True)
class _Runs:
    """Trials of one configuration that are left: those of a search, and those that are confirmed.

    tried:    those that try its learning rates
    together: trials that share each pass of the base model
    """

    config: TrialConfig
    searched: int
    confirmed: int
    together: int = 1
    tried: int = 0

    @property
    def in_full(self) -> int:
        """How many of them no scheduler stops."""
        return self.confirmed + self.tried


def describe(study: Study, case: Case, flags: Flags) -> str:
    """Return what a study would run and about what it would cost on this machine."""
    importances = "importances" in study.page.parts
    prepared, plan, request, resources = case.prepared, case.plan, flags.study, flags.resources
    searches = plan.searches if request.trials else []
    arms = [] if plan.tuned_only and searches else plan.arms
    here = torch.cuda.device_count()
    gpus = resources.gpus(here)
    concurrency = max(1, resources.at_a_time(cpus=os.cpu_count() or 1, gpus=here))
    features = feature_plan(
        prepared, flags.features, flags.cache_dir, gpus_per_trial=resources.gpus_per_trial, dry_run=True
    )
    missing = not_stored(prepared, flags.cache_dir)
    # Without a search the control arm's settings are timed, which may set all of them.
    timed = plan.base if request.trials else plan.arms[0].config
    sample = _sample(prepared, timed)
    forward, per_example, busy = sample.forward, *_seconds_per_example(sample, timed)
    live = features.mode == "live"
    shared = "share each pass of the base model" if live else "of one program take their steps as one"
    group = min(
        len(arms) * (request.seeds if gpus else 1),
        resources.group_size(
            live=live, on_gpu=gpus > 0, waiting=lambda: len(arms) * request.seeds, concurrency=concurrency
        ),
    )
    elsewhere = case.trained_elsewhere(environment(prepared, features, plan).software, request).ids
    runs, taken = _left(case, arms, searches, flags, group, elsewhere)
    planned_searched = sum(max(request.trials, search.min_trials) for search in searches)
    planned_confirmed = request.seeds * (len(arms) + len(searches))
    searched = planned_searched - sum(run.searched for run in runs)
    confirmed = planned_confirmed - taken - sum(run.confirmed for run in runs)
    left = sum(run.searched + run.in_full for run in runs)
    planned_tried, tried = len(request.rates) * len(plan.arms), sum(run.tried for run in runs)
    extraction = 0.0 if live else forward.quiet * padded_tokens(missing)
    each = _seconds_by_run(sample, timed, runs, per_example, forward.one_core if live else 0.0)
    most = sum(seconds * (run.searched + run.in_full) for run, seconds in zip(runs, each, strict=True))
    expected = sum(
        seconds * (run.searched * min(_asha(run.config, request), _patient(run.config)))
        + seconds * run.in_full * _patient(run.config)
        for run, seconds in zip(runs, each, strict=True)
    )
    fixed = (
        FIXED_SECONDS
        - (0.0 if left else RAY_SECONDS)
        + PAGE_SECONDS * (planned_tried + planned_searched + planned_confirmed)
    )
    gpu_hours = "none: trials run on CPUs"
    if gpus:
        gpu_hours = f"at most {gpus * most / 3600:.1f}, at the speed of this machine's CPU"
    source, splits = prepared.source, prepared.task.splits
    examples = ", ".join(f"{name} {len(split)}" for name, split in splits.items())
    bests = [f"the bests of {len(searches)} searches" if len(searches) > 1 else "the best of the search"]
    confirmed_arms = " and ".join([*([str(len(arms))] if arms else []), *(bests if searches else [])])
    there = f"{len(prepared.encoded) - len(missing)} of {len(prepared.encoded)} splits are there already"
    by_worker = WORKER_BYTES + (weight_bytes(source) if live else 0)
    lines = [
        f"{source.name} ({source.layers} layers of width {source.width}) on {prepared.task.name}",
        f"  backbone    {backbone_line(prepared)}; from {source.folder}",
        f"  data        {data_line(prepared.task)}",
        f"  task        {task_line(prepared.task)}",
        f"  examples    {examples}; {prepared.n_tokens} tokens, at most {prepared.request.max_length} a text",
        f"  cut         {_cut(prepared.truncated)}",
        *_line("shared", _shared(prepared.task.shared)),
        *_line(
            "search", _search_line(request, searches, planned_searched, searched, importances=importances)
        ),
        *_line(
            "rates",
            f"{len(request.rates)} for each of {len(plan.arms)} arms: {planned_tried} trials"
            f"{_done(planned_tried - tried)}"
            if request.rates
            else "",
        ),
        f"  arms        {confirmed_arms}, {request.seeds} seeds each: {planned_confirmed} trials{_done(confirmed)}"
        f"{f', {taken} taken from other studies' if taken else ''}"
        f"{f'; a verdict takes {FIRST} seeds' if request.seeds < FIRST else ''}",
        *(f"  dropped     {name}: {reason}" for name, reason in plan.dropped),
        f"  cache       {prepared.store_bytes / 1e6:.0f} MB in {flags.cache_dir}{_of_test(prepared)}; {there}",
        f"  features    {features.mode}: {features.why}",
        *_line("store", "" if live else _store(case)),
        *_line("group", f"{group} trials {shared}" if group > 1 else ""),
        f"  memory      about {concurrency * by_worker / 1e9:.1f} GB for {concurrency} trials at a time; "
        "hidden states are shared",
        *_line(
            "estimated",
            "" if _timed(prepared) else "without a pass of the backbone, from its weights' operations",
        ),
        f"  disk        {missing_bytes(prepared, flags.cache_dir) / 1e6:.0f} MB of hidden states to come; results "
        f"about {_disk(prepared, [run.config for run in runs], concurrency) / 1e6:.0f} MB",
        *_line(
            "busy",
            f"other work on this machine makes trials take {busy:.1f} times as long now: not counted below"
            if busy >= BUSY
            else "",
        ),
        f"  time        hidden states {duration(extraction)}; a trial at most {duration(max(each))}; {left} "
        f"trials left: in all about {duration(fixed + extraction + expected / concurrency)}, "
        f"at most {duration(SPREAD * (fixed + extraction + most / concurrency))}",
        f"  GPU-hours   {gpu_hours}",
    ]
    return "\n".join(lines)


def _left(
    case: Case,
    arms: Sequence[ConfirmedArm],
    searches: Sequence[PlannedSearch],
    flags: Flags,
    group: int,
    elsewhere: Collection[str],
) -> tuple[list[_Runs], int]:
    """Return the trials that the case's folder lacks, and how many of other studies it takes, `elsewhere` by id.

    Which of those it takes that try their rates first is not known beforehand.
    """
    request, before = flags.study, case.before
    requested_before = before.request.trials, before.request.seeds
    if before.runs.state == "finished" and requested_before == (request.trials, request.seeds):
        return [_Runs(planned.config, 0, 0) for planned in arms] + [
            _Runs(search.base, 0, 0) for search in searches
        ], 0
    finished = pd.DataFrame({name: [] for name in ("trial_id", "stage", "arm", "search", "status")})
    if case.folder.exists(TRIALS) and not flags.fresh:
        finished = read_trials(case.folder)
        finished = finished[finished["status"].isin(FINISHED)]
    provenance, shape = case.prepared.provenance, case.prepared.shape
    ids = set(finished["trial_id"])
    seeds = range(request.seed + 1, request.seed + request.seeds + 1)
    runs, taken = [], 0
    for arm in case.plan.arms if request.rates else ():
        configs = at_rates(arm.config, request.rates, shape)
        tried = {trial_id(config, shape, request.seed, provenance) for config in configs} - ids
        runs.append(_Runs(arm.config, 0, 0, group, tried=len(tried)))
        ids |= tried  # two arms that differ in their rate alone try the same
    for arm in arms:
        wanted = min(
            (
                {trial_id(config, shape, seed, provenance) for seed in seeds} - ids
                for config in at_rates(arm.config, request.rates, shape)
            ),
            key=len,
        )
        left = wanted if request.rates else wanted - set(elsewhere)
        runs.append(_Runs(arm.config, 0, len(left), group))
        taken += len(wanted) - len(left)
    confirmed_arms = finished.loc[finished["stage"] == "confirm", "arm"].astype(str)
    for search in searches:
        searched = int(((finished["stage"] == "search") & (finished["search"] == search.name)).sum())
        own = rf"{re.escape(search.becomes)}(-\d+)?"  # one that changed as the search grew has a number
        confirmed = min(request.seeds, int(confirmed_arms.str.fullmatch(own).sum()))
        runs.append(
            _Runs(
                search.base,
                max(0, max(request.trials, search.min_trials) - searched),
                request.seeds - confirmed,
            )
        )
    return runs, taken


def _search_line(
    request: StudyRequest, searches: Sequence[PlannedSearch], trials: int, done: int, *, importances: bool
) -> str:
    """Return what is searched, and whether so many trials are enough for the page, which may ask for `importances`."""
    if not searches:
        return ""
    line = f"{trials} trials by {request.search}, {request.scheduler}{_done(done)}"
    # The first at a rung goes on, then a third, and more of them while few have been there.
    passed = 0.4 ** len(_rungs(searches[0].base.epochs, request))
    completed = 1 + passed * (request.trials - 1)
    question = ("which hyperparameters matter takes", IMPORTANCES_NAMED_FROM)
    what, wanted = question if importances else ("importances take", IMPORTANCES_FROM)
    if round(completed) >= wanted or len(searches) > 1:
        return line
    fifo = f", or {wanted} with --scheduler fifo" if passed < 1 else ""
    return (
        f"{line}; about {completed:.0f} of {request.trials} are trained to the end, {what} {wanted}: "
        f"about --trials {1 + math.ceil((wanted - 1) / passed)}{fifo}"
    )


def _done(trials: int) -> str:
    return f", {trials} done" if trials else ""


def _of_test(prepared: Prepared) -> str:
    """Return what of the cache is the test split's, all of which is stored unless `--test-examples` caps it."""
    if "test" not in prepared.encoded:
        return ""
    size = stored_bytes(prepared.source, prepared.encoded["test"], prepared.request.precision)
    return f", {size / 1e6:.0f} MB of it for test (--test-examples)"


def _store(case: Case) -> str:
    """Return what is stored of each text and layer, for which arms, and which would read less."""
    prepared, shape = case.prepared, case.prepared.shape
    if pooling := prepared.source.pooling:
        return f"one vector of each text and layer ({pooling}): all arms read that alone"
    by_pooling = [(arm.name, arm.config.pooling(shape)) for arm in case.plan.arms]
    less = [f"{name} ({pooling})" for name, pooling in by_pooling if pooling]
    rest = len(by_pooling) - len(less)
    return (
        f"every token, as {rest} arms read; one vector of each text would do for {', '.join(less)}"
        if less
        else ""
    )


def _line(name: str, text: str) -> list[str]:
    """Return a line of the plan; none where there is nothing to say."""
    return [f"  {name:<12}{text}"] if text else []


def _seconds_by_run(
    sample: _Sample, timed: TrialConfig, runs: Sequence[_Runs], per_example: float, forward: float
) -> list[float]:
    """Return about how long a trial of each configuration takes with all its epochs.

    forward: seconds per token of a pass of the backbone, where each epoch takes one
    """
    prepared = sample.prepared
    sizes = {name: len(prepared.task.splits[name]) for name in ("train", "validation")}
    tokens = padded_tokens(prepared.encoded[name] for name in sizes)
    own, passes = timed.epochs * per_example * _cost(*sizes.values()), timed.epochs * forward * tokens
    # The first configuration of each kind that trains the base model is timed by itself.
    first = {run.config.base_model: run.config for run in reversed(runs)}
    dearer = {
        kind: 1.0 if kind == "frozen" else _seconds_per_example(sample, config)[0] / per_example
        for kind, config in first.items()
    }
    return [
        (own + passes / run.together) * _share(run.config, prepared, timed) * dearer[run.config.base_model]
        for run in runs
    ]


def _asha(config: TrialConfig, request: StudyRequest) -> float:
    """Return about which share of its epochs a search's trial trains: one of `REDUCTION` goes on from each rung."""
    parts = itertools.pairwise([0, *_rungs(config.epochs, request), config.epochs])
    return sum((end - begin) / REDUCTION**i for i, (begin, end) in enumerate(parts)) / config.epochs


def _rungs(epochs: int, request: StudyRequest) -> list[int]:
    """Return the epochs after which the scheduler stops some trials."""
    ends = (grace(epochs) * REDUCTION**i for i in itertools.count())
    return list(itertools.takewhile(lambda end: end < epochs, ends)) if request.scheduler == "asha" else []


def _patient(config: TrialConfig) -> float:
    """Return the share of its epochs that a trial trains which patience may end, halfway between least and all."""
    if config.schedule != "plateau":
        return 1.0
    return (min(config.epochs, (config.patience + 1) * config.evaluate_every) / config.epochs + 1) / 2


def backbone_line(prepared: Prepared) -> str:
    """Return what the backbone takes: "7.24 billion parameters; 14.5 GB on disk, not fetched yet; ..."."""
    source, (parameters, _) = prepared.source, prepared.backbone_parameters
    if source.is_states:
        return f"hidden states {source.note}"
    there = sum(file.stat().st_size for file in weights(source.folder))
    if source.random:
        disk = "nothing on disk"
    elif there:
        disk = f"{there / 1e9:.2f} GB on disk"
    else:
        there = parameters * bytes_per_parameter(source.folder, source.base)
        missing = "no weights in its folder" if source.revision is None else "not fetched yet"
        disk = f"about {there / 1e9:.2f} GB on disk, {missing}"
    memory = weight_bytes(source) / 1e9
    return f"{parameters / 1e6:,.0f} million parameters; {disk}; {memory:.2f} GB of memory, computes in {source.dtype}"


def data_line(task: Task) -> str:
    """Return where a dataset was read, its columns, the role of each split, what is not used, and how it was read."""
    reading = task.reading
    columns = (
        f" (texts {', '.join(reading.columns[:-1])}; labels {reading.columns[-1]})" if reading.columns else ""
    )
    return "; ".join(
        (f"{reading.path}{columns}", splits_in_words(reading.roles, reading.unused), *reading.notes)
    )


def task_line(task: Task) -> str:
    """Return the kind of task, its labels, and the score that selects."""
    names = ", ".join(map(visible, task.label_names[:12]))
    labels = f"; {len(task.label_names)} labels: {names}" if names else ""
    more = ", ..." if len(task.label_names) > 12 else ""
    return f"{task.title}{labels}{more}; selected by {task.metric} on validation"


def _timed(prepared: Prepared) -> bool:
    """Say whether a pass of the backbone can be timed: not without its weights, nor where loading them takes long."""
    return prepared.source.has_weights and prepared.backbone_parameters[0] < LARGE


def _pass_seconds(prepared: Prepared) -> Seconds:
    """Return about how long the backbone takes for a token, from the speed of one product of matrices of its width.

    Two operations for each weight of its layers; attention between tokens is left out.
    """
    source = prepared.source
    parameters, of_layer = prepared.backbone_parameters
    run = prepared.shape.depth(source.states) * of_layer or parameters
    taken = _seconds_per_weight(source.width, source.dtype)
    return Seconds(taken.all_cores * run, taken.one_core * run)


@functools.cache
def _seconds_per_weight(width: int, dtype: str) -> Seconds:
    """Return how long a matrix product on this CPU takes for one row and one weight."""
    states = torch.zeros(PROBE_TOKENS, width, dtype=getattr(torch, dtype))
    weight = torch.zeros(width, width, dtype=getattr(torch, dtype))
    products = PROBE_TOKENS * weight.numel()
    times = max(1, int(PROBE_OPERATIONS / 2 / products))
    torch.mm(states, weight)
    taken = time_work(lambda: [torch.mm(states, weight) for _ in range(times)])
    return Seconds(taken.all_cores / (times * products), taken.one_core / (times * products))


def _disk(prepared: Prepared, configs: Sequence[TrialConfig], concurrency: int) -> float:
    """Return about the bytes of a results folder: checkpoints of the trials that run, the best model, predictions."""
    most = max((FusionModel(config, prepared.shape).n_parameters() for config in configs), default=0)
    examples = sum(len(split) for name, split in prepared.task.splits.items() if name != "train")
    return CHECKPOINT_BYTES * most * concurrency + 4 * most + EXAMPLE_BYTES * examples * len(configs)


def _cut(truncated: Mapping[str, Mapping[str, int]]) -> str:
    """Return how much the maximum length cuts of each split: "train 120 (1,034 words), test 0"."""
    return ", ".join(
        f"{name} {counts['examples']:,}" + (f" ({counts['words']:,} words)" if counts.get("words") else "")
        for name, counts in truncated.items()
    )


def _shared(counts: Mapping[str, int]) -> str:
    """Return how many examples outside train are also in the training data; nothing where none does."""
    shared = [f"{n:,} of {name}" for name, n in counts.items() if n]
    return f"{' and '.join(shared)} are also in the training data" if shared else ""


class _InMemory:
    """Hidden states of a few sequences, held in memory."""

    def __init__(self, offsets: np.ndarray, states: dict[State, Tensor]):
        self._offsets, self._states = offsets, states
        self.lengths = np.diff(offsets)

    def read(
        self, examples: np.ndarray, states: Sequence[State], device: torch.device
    ) -> dict[State, Tensor]:
        rows = torch.from_numpy(ragged_index(self._offsets, examples))
        return {state: self._states[state][rows] for state in states}


@dataclass(frozen=True)
class _Sample:
    """A few training sequences with their hidden states in memory, and seconds per token of the backbone's pass."""

    prepared: Prepared
    split: SplitData
    tokens: int
    forward: Seconds


def _sample(prepared: Prepared, config: TrialConfig) -> _Sample:
    """Return what trials are timed on: at least two batches of `config`."""
    whole = prepared.data("live").splits["train"]
    states, device = prepared.source.states, torch.device("cpu")
    chosen = np.random.default_rng(0).permutation(len(whole))[: max(SAMPLE, 2 * config.batch_size)]
    offsets = np.concatenate([[0], np.cumsum(whole.features.lengths[chosen])])
    tokens = int(offsets[-1])
    if _timed(prepared):
        forward = time_backbone(prepared, device)
        parts = [whole.features.read(chosen[i : i + 16], states, device) for i in range(0, len(chosen), 16)]
        read = {state: torch.cat([part[state] for part in parts]) for state in states}
        if pooling := prepared.source.pooling:
            lengths = torch.from_numpy(np.diff(offsets))
            read = {state: pooled(values, lengths, pooling) for state, values in read.items()}
            offsets = np.arange(len(chosen) + 1)
        in_memory = _InMemory(offsets, read)
    else:
        forward = _pass_seconds(prepared)
        random_state = torch.randn(tokens, prepared.source.width, generator=torch.Generator().manual_seed(0))
        # One for all: a trial's time depends on shapes alone.
        in_memory = _InMemory(offsets, dict.fromkeys(states, random_state))
    return _Sample(prepared, whole.subset(chosen, in_memory), tokens, forward)


def _seconds_per_example(sample: _Sample, config: TrialConfig) -> tuple[float, float]:
    """Return the seconds per example of a trial's epoch, evaluation included, and by what other work prolongs them.

    A trial has one thread by default; its time is that of its core, which other processes do not add to.
    """
    prepared, split = sample.prepared, sample.split
    data = TrialData(
        prepared.shape,
        prepared.task.label_names,
        prepared.task.metric,
        {"train": split, "validation": split},
        prepared.provenance,
        prepared.task.kind,
        source=prepared.source,
    )
    ends: list[tuple[float, float]] = []
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        short = dataclasses.replace(config, epochs=3, patience=3)
        if not _timed(prepared):
            short = dataclasses.replace(short, base_model="frozen")
        train(
            short,
            data,
            seed=0,
            on_evaluation=lambda evaluation: ends.append((time.process_time(), time.monotonic())),
        )
    except Diverged as error:
        raise BadInput(
            f"wanted settings that can be timed, those of the study diverge within a few steps ({error}); change what "
            "--set fixes"
        ) from error
    finally:
        torch.set_num_threads(threads)
    core, clock = (ends[-1][i] - ends[0][i] for i in range(2))
    per_example = core / (len(ends) - 1) / len(split)
    if config.base_model != short.base_model:
        # Its own pass, and one back through it, which takes two.
        per_example += 3 * sample.forward.one_core * sample.tokens / len(split)
    return per_example, clock / core


def _share(config: TrialConfig, prepared: Prepared, timed: TrialConfig) -> float:
    """Return about what a trial costs, as a share of the timed one, by examples and epochs.

    Over a frozen base model by weights too, where there are more of them.
    """
    train, validation = (len(prepared.task.splits[name]) for name in ("train", "validation"))
    cost = _cost(min(config.train_examples or train, train), validation)
    share = cost / _cost(min(timed.train_examples or train, train), validation) * config.epochs / timed.epochs
    if config.base_model != "frozen":
        return share
    weights, timed_weights = (FusionModel(each, prepared.shape).weights_at_use() for each in (config, timed))
    return share * max(1.0, weights / timed_weights)


def _cost(train: int, validation: int) -> float:
    """Return the cost of an epoch in training examples: an evaluation has no backward pass."""
    return 0.75 * train + 0.25 * validation
