"""The plan of a study in words, with costs measured on a few sequences in memory; nothing is written or kept."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from adalayers.backbones.loading import weight_bytes
from adalayers.backbones.pretrained import bytes_per_parameter, weights
from adalayers.command.flags import Flags
from adalayers.comparisons import FIRST, IMPORTANCES_FROM, IMPORTANCES_NAMED_FROM
from adalayers.config import TrialConfig
from adalayers.console.progress import duration
from adalayers.data.feature_choice import (
    SAMPLE,
    feature_choice,
    missing_bytes,
    not_stored,
    padded_tokens,
    time_backbone,
)
from adalayers.data.prepare import Prepared
from adalayers.data.trial_data import SplitData
from adalayers.errors import BadInput
from adalayers.escaping import visible
from adalayers.models.model import FusionModel
from adalayers.request import StudyRequest
from adalayers.results.files import FINISHED, RATES, TRIALS, read_trials
from adalayers.results.study_file import splits_in_words
from adalayers.schedulers import SCHEDULERS
from adalayers.states import State
from adalayers.study import PlannedSearch, Study
from adalayers.tasks.task import Task
from adalayers.tensors.ragged import ragged_index
from adalayers.training.trainer import Diverged, train
from adalayers.tuning.case import Case
from adalayers.tuning.document import environment

FIXED_SECONDS = 18.0
"""Of a run, whatever its trials: loading, Ray's start, the report (measured on two quiet cores: 13 to 18 s)."""
WORKER_BYTES = 0.5e9
"""Memory of a Ray worker with torch, without its features (measured: 0.43 to 0.51 GB)."""
LARGE = 1_000_000_000
"""Parameters from which on a backbone is not loaded to be timed."""


def describe(study: Study, case: Case, flags: Flags) -> str:
    """Return what a study would run and at most about what it would cost on this machine as it is now."""
    prepared, plan, request, resources = case.prepared, case.plan, flags.study, flags.resources
    searches = plan.searches if request.trials else []
    arms = [] if plan.tuned_only and searches else plan.arms
    here = torch.cuda.device_count()
    gpus = resources.gpus(here)
    concurrency = max(1, resources.at_a_time(cpus=os.cpu_count() or 1, gpus=here))
    features = feature_choice(
        prepared, flags.features, flags.cache_dir, gpus_per_trial=resources.gpus_per_trial
    )
    missing, live = not_stored(prepared, flags.cache_dir), features.mode == "live"
    # Which trials of others it takes is not known before arms have tried their rates.
    elsewhere = case.trained_elsewhere(environment(prepared, features, plan).software).ids
    taken = 0 if request.rates else len(elsewhere)
    bases, of_arms = [search.base for search in searches], [arm.config for arm in arms]
    planned = {
        "search": sum(max(request.trials, search.min_trials) for search in searches),
        RATES: len(request.rates) * len(plan.arms),
        "confirm": request.seeds * (len(arms) + len(searches)),
    }
    left = _left(case, flags, planned)
    left["confirm"] = max(0, left["confirm"] - taken)
    forward, each = _seconds(prepared, [*bases, *of_arms], live=live)
    passes = 0.0 if live else forward * padded_tokens(missing)
    # Arms are confirmed seed by seed: those that are left cost what all of them do, on average.
    trials = left["search"] * _mean(each, bases)
    trials += (left[RATES] + left["confirm"]) * _mean(each, of_arms or bases)
    extraction = (
        f"hidden states {duration(passes)}"
        if forward
        else "without the base model's passes, as it is not loaded"
    )
    source, splits = prepared.source, prepared.task.splits
    examples = ", ".join(f"{name} {len(split)}" for name, split in splits.items())
    bests = [f"the bests of {len(searches)} searches" if len(searches) > 1 else "the best of the search"]
    confirmed_arms = " and ".join([*([str(len(arms))] if arms else []), *(bests if searches else [])])
    there = f"{len(prepared.encoded) - len(missing)} of {len(prepared.encoded)} splits are there already"
    memory = concurrency * (WORKER_BYTES + (weight_bytes(source) if live else 0))
    total, to_run = sum(planned.values()), sum(left.values())
    lines = {
        "backbone": f"{backbone_line(prepared)}; from {source.folder}",
        "data": data_line(prepared.task),
        "task": task_line(prepared.task),
        "examples": f"{examples}; {prepared.n_tokens} tokens, at most {prepared.request.max_length} a text",
        "cut": _cut(prepared.truncated),
        "search": _search_line(
            request, searches, planned["search"], importances="importances" in study.page.parts
        ),
        "rates": f"{len(request.rates)} for each of {len(plan.arms)} arms" if request.rates else "",
        "arms": f"{confirmed_arms}, {request.seeds} seeds each"
        + (f"; a verdict takes {FIRST} seeds" if request.seeds < FIRST else ""),
        "dropped": "; ".join(f"{name}: {reason}" for name, reason in plan.dropped),
        "trials": f"{total}, {total - to_run - taken} done"
        + (f", {taken} taken from other studies" if taken else ""),
        "cache": f"{prepared.store_bytes / 1e6:.0f} MB in {flags.cache_dir}, all of test among it unless "
        f"--test-examples caps it; {there}",
        "features": f"{features.mode}: {features.why}; of each text {source.pooling or 'every token'}",
        "memory": f"about {memory / 1e9:.1f} GB for {concurrency} trials at a time; hidden states are shared",
        "disk": f"{missing_bytes(prepared, flags.cache_dir) / 1e6:.0f} MB of hidden states to come",
        "time": f"{extraction}; a trial at most {duration(max(each.values()))}; "
        f"{to_run} trials left, each with all its epochs: in all at most about "
        f"{duration(FIXED_SECONDS + passes + trials / concurrency)}, as busy as this machine is now",
        "GPU-hours": f"at most {gpus * trials / 3600:.1f}, at the speed of this machine's CPU"
        if gpus
        else "none: trials run on CPUs",
    }
    title = f"{source.name} ({source.layers} layers of width {source.width}) on {prepared.task.name}"
    return "\n".join([title, *(f"  {name:<12}{text}" for name, text in lines.items() if text)])


def _left(case: Case, flags: Flags, planned: Mapping[str, int]) -> dict[str, int]:
    """Return how many of the planned trials of each kind are at most left to run."""
    before, request = case.before.request, flags.study
    if flags.fresh or not case.folder.exists(TRIALS):
        return dict(planned)
    if case.before.runs.state == "finished" and (before.trials, before.seeds) == (
        request.trials,
        request.seeds,
    ):
        return dict.fromkeys(planned, 0)
    rows = read_trials(case.folder)
    rows = rows[rows["status"].isin(FINISHED)]
    done = rows["stage"].where(rows["search"] != RATES, RATES).value_counts()
    return {kind: max(0, n - int(done.get(kind, 0))) for kind, n in planned.items()}


def _mean(seconds: Mapping[TrialConfig, float], configs: Sequence[TrialConfig]) -> float:
    return sum(seconds[config] for config in configs) / max(1, len(configs))


def _search_line(
    request: StudyRequest, searches: Sequence[PlannedSearch], trials: int, *, importances: bool
) -> str:
    """Return what is searched, and whether so many trials are enough for the page, which may ask for `importances`."""
    if not searches:
        return ""
    line = f"{trials} trials by {request.search}, {request.scheduler}"
    finishing = SCHEDULERS[request.scheduler].finishing(searches[0].base.epochs)
    completed = round(1 + finishing * (request.trials - 1))  # the first at a rung goes on
    wanted = IMPORTANCES_NAMED_FROM if importances else IMPORTANCES_FROM
    if completed >= wanted or len(searches) > 1:
        return line
    return f"{line}; about {completed} are trained to the end, which hyperparameters matter takes {wanted}"


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


def _cut(truncated: Mapping[str, Mapping[str, int]]) -> str:
    """Return how much the maximum length cuts of each split: "train 120 (1,034 words), test 0"."""
    return ", ".join(
        f"{name} {counts['examples']:,}" + (f" ({counts['words']:,} words)" if counts.get("words") else "")
        for name, counts in truncated.items()
    )


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


def _seconds(
    prepared: Prepared, configs: Sequence[TrialConfig], *, live: bool
) -> tuple[float, dict[TrialConfig, float]]:
    """Return how long the backbone's pass takes for a token, and a trial of each configuration with all its epochs.

    Of configurations that do the same work one is timed. A backbone that is not loaded takes no time.
    live: whether each epoch takes a pass of the backbone
    """
    sample = _sample(prepared, max(SAMPLE, 2 * max(config.batch_size for config in configs)))
    forward = time_backbone(prepared, torch.device("cpu")) if _timed(prepared) else 0.0
    tokens_per_example = prepared.data("live").splits["train"].features.lengths.mean()
    train, validation = (len(prepared.task.splits[name]) for name in ("train", "validation"))
    timed: dict[Any, float] = {}
    taken = {}
    for config in dict.fromkeys(configs):
        n_parameters = FusionModel(config, prepared.shape).n_parameters()
        key = config.fusion, config.base_model, config.batch_size, n_parameters
        if key not in timed:
            timed[key] = _seconds_per_example(prepared, sample, config)
        each = timed[key] + live * forward * tokens_per_example
        # An evaluation has no backward pass.
        examples = 0.75 * min(config.train_examples or train, train) + 0.25 * validation
        taken[config] = config.epochs * examples * each
    return forward, taken


def _sample(prepared: Prepared, most: int) -> SplitData:
    """Return training examples with random numbers as hidden states: a trial's time depends on shapes alone."""
    whole = prepared.data("live").splits["train"]
    chosen = np.random.default_rng(0).permutation(len(whole))[:most]
    lengths = np.ones(len(chosen), int) if prepared.source.pooling else whole.features.lengths[chosen]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    generator, shape = torch.Generator().manual_seed(0), (int(offsets[-1]), prepared.source.width)
    # One for all states: those of a large base model would fill the memory.
    states = dict.fromkeys(prepared.source.states, torch.randn(shape, generator=generator))
    return whole.subset(chosen, _InMemory(offsets, states))


def _seconds_per_example(prepared: Prepared, sample: SplitData, config: TrialConfig) -> float:
    """Return the seconds per example of a trial's epoch, evaluation included, next to what else this machine does."""
    data = prepared.data("live")
    data = dataclasses.replace(data, splits={"train": sample, "validation": sample})
    short = dataclasses.replace(config, epochs=3, patience=3, evaluate_every=1, train_examples=None)
    if not _timed(prepared):
        short = dataclasses.replace(short, base_model="frozen")
    ends: list[float] = []
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        train(short, data, seed=0, on_evaluation=lambda evaluation: ends.append(time.monotonic()))
    except Diverged as error:
        raise BadInput(
            f"wanted settings that can be timed, those of the study diverge within a few steps ({error}); change what "
            "--set fixes"
        ) from error
    finally:
        torch.set_num_threads(threads)
    return (ends[-1] - ends[0]) / (len(ends) - 1) / len(sample)
