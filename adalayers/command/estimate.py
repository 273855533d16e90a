"""The plan of a study in words, with costs measured on a few sequences in memory; nothing is written or kept."""

from __future__ import annotations

import dataclasses
import functools
import os
import time
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from adalayers.backbones.loading import weight_bytes
from adalayers.backbones.pretrained import saved_bytes, weights
from adalayers.command import expected
from adalayers.command.expected import Range
from adalayers.command.flags import Flags
from adalayers.config import TrialConfig
from adalayers.console.progress import duration
from adalayers.data.feature_plan import SAMPLE, feature_plan, missing_bytes, not_stored
from adalayers.data.prepare import Prepared
from adalayers.data.trial_data import TrialData
from adalayers.models.model import FusionModel
from adalayers.states import State
from adalayers.study import Plan
from adalayers.tensors.ragged import ragged_index
from adalayers.training.trainer import train

CHECKPOINT_BYTES, EXAMPLE_BYTES = 16, 16
"""Of a checkpoint per parameter (the model, its best state, two moments); of predictions per example and arm."""
SPREAD = 1.33
"""By what the same work takes longer or shorter on one machine (docs/performance.md: a third, minute by minute)."""
WORKER_BYTES = 0.5e9
"""Memory of a Ray worker with torch, without its features (measured: 0.43 to 0.51 GB)."""
LARGE = 1_000_000_000
"""Parameters from which on a backbone is not loaded to be timed."""
PROBE_TOKENS, PROBE_SECONDS = 64, 0.2
"""Of a matrix product that stands for a backbone's: its rows, and how long it is repeated."""
SLOW = 3.0
"""Times as long as in float32 from which on a dtype is called slow."""


def describe(prepared: Prepared, plan: Plan, flags: Flags) -> str:
    """Return what a study would run and about what it would cost on this machine."""
    timed = timed_config(plan, flags.study.trials)
    forward, per_example = _rates(prepared, timed)
    cache, resources = flags.cache_dir, flags.resources
    missing = not_stored(prepared, cache)
    extraction = sum(len(encoded.input_ids) for encoded in missing) * forward
    searches = len(plan.searches) if flags.study.trials else 0
    searched = flags.study.trials * searches
    arms = [] if plan.tuned_only and searches else plan.arms
    confirmed = flags.study.seeds * (len(arms) + searches)
    concurrency = resources.max_concurrent or max(1, int((os.cpu_count() or 1) / resources.cpus_per_trial))
    features = feature_plan(
        prepared, flags.features, cache, gpus_per_trial=resources.gpus_per_trial, dry_run=True
    )
    per_epoch = _epoch_seconds(prepared, per_example)
    if features.mode == "live":
        extraction = 0.0
        per_epoch += forward * sum(len(prepared.encoded[name].input_ids) for name in ("train", "validation"))
    per_trial = timed.epochs * per_epoch
    runs = [(arm.config, flags.study.seeds) for arm in arms]
    runs += [(search.base, flags.study.trials + flags.study.seeds) for search in plan.searches if searches]
    dearer = _dearer(prepared, [config for config, _ in runs], per_example)
    each = [
        (per_trial * _share(config, prepared, timed) * dearer[config.base_model], n) for config, n in runs
    ]
    share = expected.searched(flags.study.trials, timed.epochs, flags.study.scheduler)
    training = Range(0.0, 0.0, 0.0)
    for (config, _), (seconds, n) in zip(runs, each, strict=True):
        ends = expected.patient(config)
        # A search's runs are its trials and the confirmations of its best, which no scheduler stops.
        stopped = max(0, n - flags.study.seeds)
        either = Range(*(min(one, two) for one, two in zip(share, ends, strict=True)))
        training = training.plus(either.times(seconds * stopped)).plus(ends.times(seconds * (n - stopped)))
    spread = Range(1 / SPREAD, 1.0, SPREAD)
    wall = Range(
        *(by * (extraction + spent / concurrency) for by, spent in zip(spread, training, strict=True))
    )
    gpus = _gpus(resources.gpus_per_trial)
    disk = _disk(prepared, [config for config, _ in runs], concurrency)
    longest = max((seconds for seconds, _ in each), default=per_trial)
    source, splits = prepared.source, prepared.task.splits
    examples = ", ".join(f"{name} {len(split)}" for name, split in splits.items())
    bests = [f"the bests of {searches} searches" if searches > 1 else "the best of the search"]
    confirmed_arms = " and ".join([*([str(len(arms))] if arms else []), *(bests if searches else [])])
    there = f"{len(prepared.encoded) - len(missing)} of {len(prepared.encoded)} splits are there already"
    held = weight_bytes(prepared.source)
    memory = concurrency * (WORKER_BYTES + (held if features.mode == "live" else 0)) / 1e9
    lines = [
        f"{source.name} ({source.layers} layers of width {source.width}) on {prepared.task.name}",
        f"  backbone    {backbone_line(prepared)}",
        f"  examples    {examples}; {prepared.n_tokens} tokens, at most {prepared.request.max_length} a text",
        f"  cut         {cut(prepared.truncated)}",
        *(f"  shared      {line}" for line in [shared(prepared.task.shared)] if line),
        f"  search      {searched} trials by {flags.study.search}, {flags.study.scheduler}",
        f"  arms        {confirmed_arms}, {flags.study.seeds} seeds each: {confirmed} trials",
        *(f"  dropped     {name}: {reason}" for name, reason in plan.dropped),
        f"  cache       {prepared.store_bytes / 1e6:.0f} MB in {cache}; {there}",
        f"  features    {features.mode}: {features.why}",
        f"  memory      about {memory:.1f} GB for {concurrency} trials at a time; hidden states are shared",
        *(
            []
            if _timed(prepared)
            else ["  estimated   without a pass of the backbone, from its weights' operations"]
        ),
        *(f"  slow        {line}" for line in [_slow_dtype(prepared)] if line and missing),
        f"  disk        {missing_bytes(prepared, cache) / 1e6:.0f} MB of hidden states to come; results about "
        f"{disk / 1e6:.0f} MB",
        f"  time        hidden states {duration(extraction)}; a trial at most {duration(longest)}; in all about "
        f"{duration(wall.expected)}, between {duration(wall.low)} and {duration(wall.high)} by early stopping, speed",
        f"  GPU-hours   {_gpu_hours(training.times(gpus / 3600))}",
        *(f"  limit       {line}" for line in [_limit(resources.max_hours, wall)] if line),
    ]
    return "\n".join(lines)


def backbone_line(prepared: Prepared) -> str:
    """Return what the backbone takes: "7.24 billion parameters; 14.5 GB on disk, not fetched yet; ..."."""
    source, (parameters, _) = prepared.source, prepared.backbone_parameters
    there = sum(file.stat().st_size for file in weights(source.folder))
    if source.random:
        disk = "nothing on disk"
    elif there:
        disk = f"{there / 1e9:.2f} GB on disk"
    else:
        disk = f"about {parameters * saved_bytes(source.folder, source.base) / 1e9:.2f} GB on disk, not fetched yet"
    held = weight_bytes(source) / 1e9
    return f"{parameters / 1e6:,.0f} million parameters; {disk}; {held:.2f} GB of memory, computes in {source.dtype}"


def _timed(prepared: Prepared) -> bool:
    """Say whether a pass of the backbone can be timed: not without its weights, nor where loading them takes long."""
    return prepared.source.has_weights and prepared.backbone_parameters[0] < LARGE


def _pass_seconds(prepared: Prepared) -> float:
    """Return about how long the backbone takes for a token, from the speed of one product of matrices of its width.

    Two operations for each weight of its layers; attention between tokens is left out.
    """
    source = prepared.source
    parameters, of_layer = prepared.backbone_parameters
    run = prepared.shape.depth(source.states) * of_layer or parameters
    return _seconds_per_weight(source.width, source.dtype) * run


@functools.cache
def _seconds_per_weight(width: int, dtype: str) -> float:
    """Return how long a matrix product on this CPU takes for one row and one weight."""
    states = torch.zeros(PROBE_TOKENS, width, dtype=getattr(torch, dtype))
    weight = torch.zeros(width, width, dtype=getattr(torch, dtype))
    torch.mm(states, weight)
    began, times = time.monotonic(), 0
    while time.monotonic() - began < PROBE_SECONDS:
        torch.mm(states, weight)
        times += 1
    return (time.monotonic() - began) / (times * PROBE_TOKENS * weight.numel())


def _slow_dtype(prepared: Prepared) -> str:
    """Return that this CPU has no instructions for the backbone's numbers, where the estimate shows it."""
    source = prepared.source
    if source.dtype == "float32" or torch.cuda.is_available():
        return ""
    ratio = _seconds_per_weight(source.width, source.dtype) / _seconds_per_weight(source.width, "float32")
    if ratio < SLOW:
        return ""
    return (
        f"{source.dtype} is {ratio:.0f} times slower than float32 on this CPU, which has no instructions for it: use a "
        "GPU, or a machine whose memory holds float32, with --backbone-dtype float32"
    )


def _gpus(asked: float | None) -> float:
    """Return the GPUs of a trial."""
    return asked if asked is not None else float(torch.cuda.is_available())


def _gpu_hours(hours: Range) -> str:
    if not hours.high:
        return "none: trials run on CPUs"
    return f"about {hours.expected:.1f}, at most {hours.high:.1f}, at the speed of this machine's CPU"


def _limit(max_hours: float | None, wall: Range) -> str:
    """Return what --max-hours does to the plan; nothing without it."""
    if max_hours is None:
        return ""
    enough = max_hours * 3600 >= wall.high
    ends = (
        "which should suffice" if enough else "and goes on with the same command where that does not suffice"
    )
    return f"it ends after {duration(max_hours * 3600)}, {ends}"


def _disk(prepared: Prepared, configs: Sequence[TrialConfig], concurrency: int) -> float:
    """Return about the bytes of a results folder: checkpoints of the trials that run, the best model, predictions."""
    most = max((FusionModel(config, prepared.shape).n_parameters() for config in configs), default=0)
    examples = sum(len(split) for name, split in prepared.task.splits.items() if name != "train")
    return CHECKPOINT_BYTES * most * concurrency + 4 * most + EXAMPLE_BYTES * examples * len(configs)


def timed_config(plan: Plan, trials: int) -> TrialConfig:
    """Return what is timed: the study's own settings; without a search the control arm's, which may set all of them."""
    return plan.base if trials else plan.arms[0].config


def cut(truncated: Mapping[str, Mapping[str, int]]) -> str:
    """Return how much the maximum length cuts of each split: "train 120 (1,034 words), test 0"."""
    return ", ".join(
        f"{name} {counts['examples']:,}" + (f" ({counts['words']:,} words)" if counts.get("words") else "")
        for name, counts in truncated.items()
    )


def shared(counts: Mapping[str, int]) -> str:
    """Return how many examples outside train are also in the training data; nothing where none does."""
    found = [f"{n:,} of {name}" for name, n in counts.items() if n]
    return f"{' and '.join(found)} are also in the training data" if found else ""


class _Held:
    """Hidden states of a few sequences, held in memory."""

    def __init__(self, offsets: np.ndarray, states: dict[State, Tensor]):
        self._offsets, self._states = offsets, states
        self.lengths = np.diff(offsets)

    def read(
        self, examples: np.ndarray, states: Sequence[State], device: torch.device
    ) -> dict[State, Tensor]:
        rows = torch.from_numpy(ragged_index(self._offsets, examples))
        return {state: self._states[state][rows] for state in states}


def _rates(prepared: Prepared, base: TrialConfig) -> tuple[float, float]:
    """Return seconds per token of the backbone's pass, and per example of a trial's epoch, evaluation included."""
    whole = prepared.data("live").splits["train"]
    states, device = prepared.source.states, torch.device("cpu")
    sample = np.random.default_rng(0).permutation(len(whole))[: max(SAMPLE, 2 * base.batch_size)]
    offsets = np.concatenate([[0], np.cumsum(whole.features.lengths[sample])])
    tokens = int(offsets[-1])
    if _timed(prepared):
        began = time.monotonic()
        parts = [whole.features.read(sample[i : i + 16], states, device) for i in range(0, len(sample), 16)]
        forward = (time.monotonic() - began) / tokens
        held = _Held(offsets, {state: torch.cat([part[state] for part in parts]) for state in states})
    else:
        forward = _pass_seconds(prepared)
        made = torch.randn(tokens, prepared.source.width, generator=torch.Generator().manual_seed(0))
        held = _Held(
            offsets, dict.fromkeys(states, made)
        )  # one for all: a trial's time depends on shapes alone
    split = whole.subset(sample, held)
    data = TrialData(
        prepared.shape,
        prepared.task.label_names,
        prepared.task.metric,
        {"train": split, "validation": split},
        {},
        prepared.task.kind,
        source=prepared.source,
    )
    ends: list[float] = []
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as many as a trial has by default
    try:
        config = dataclasses.replace(base, epochs=3, patience=3)
        if not _timed(prepared):
            config = dataclasses.replace(config, base_model="frozen")
        train(config, data, seed=0, on_evaluation=lambda evaluation: ends.append(time.monotonic()))
    finally:
        torch.set_num_threads(threads)
    per_example = (ends[-1] - ends[0]) / (len(ends) - 1) / len(sample)
    if base.base_model != config.base_model:
        per_example += (
            3 * forward * tokens / len(sample)
        )  # its own pass, and one back through it, which takes two
    return forward, per_example


def _dearer(prepared: Prepared, configs: Sequence[TrialConfig], per_example: float) -> dict[str, float]:
    """Return by what becomes of the base model how many times as long an example takes as the timed one's.

    The first configuration of each kind that trains the base model is timed by itself.
    """
    first = {config.base_model: config for config in reversed(configs) if config.base_model != "frozen"}
    return {"frozen": 1.0} | {kind: _rates(prepared, of)[1] / per_example for kind, of in first.items()}


def _share(config: TrialConfig, prepared: Prepared, timed: TrialConfig) -> float:
    """Return about what a trial costs, as a share of the timed one, by examples and epochs.

    Over a frozen base model by weights too, where there are more of them.
    """
    train, validation = (len(prepared.task.splits[name]) for name in ("train", "validation"))
    cost = _cost(min(config.train_examples or train, train), validation)
    share = cost / _cost(min(timed.train_examples or train, train), validation) * config.epochs / timed.epochs
    if config.base_model != "frozen":
        return share
    weights, known = (FusionModel(of, prepared.shape).weights_at_use() for of in (config, timed))
    return share * max(1.0, weights / known)


def _cost(train: int, validation: int) -> float:
    """Return the cost of an epoch in training examples: an evaluation has no backward pass."""
    return 0.75 * train + 0.25 * validation


def _epoch_seconds(prepared: Prepared, per_example: float) -> float:
    return per_example * _cost(*(len(prepared.task.splits[name]) for name in ("train", "validation")))
