"""The plan of a study in words, with costs measured on a few sequences in memory; nothing is written or kept."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from adalayers.backbones.loading import weight_bytes
from adalayers.backbones.pretrained import weights
from adalayers.command.flags import Flags
from adalayers.comparisons import FIRST
from adalayers.config import TrialConfig, with_overrides
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
from adalayers.results.files import FINISHED, TRIALS, read_trials
from adalayers.results.study_file import StudyFile, splits_in_words
from adalayers.states import State
from adalayers.storage.folder import Folder
from adalayers.tasks.task import Task
from adalayers.tensors.ragged import ragged_index
from adalayers.training.trainer import Diverged, train
from adalayers.tuning.case import Case
from adalayers.tuning.document import environment
from adalayers.tuning.ray_private import cpus_here

FIXED_SECONDS = 18.0
"""Of a run, whatever its trials: loading, Ray's start, the report (measured on two quiet cores: 13 to 18 s)."""
WORKER_BYTES = 0.5e9
"""Memory of a Ray worker with torch, without its features (measured: 0.43 to 0.51 GB)."""
COPIES = {"frozen": 0, "adapters": 2, "fine-tuned": 6}
"""Base models in memory, of a trial that changes one: as it was, its copy; gradients, two moments, the best so far."""
LARGE = 1_000_000_000
"""Parameters from which on a backbone is not loaded to be timed."""


def describe(case: Case, flags: Flags) -> str:
    """Return what a study would run and at most about what it would cost on this machine as it is now."""
    prepared, plan, request, resources = case.prepared, case.plan, flags.study, flags.resources
    source, task = prepared.source, prepared.task
    searches = plan.searches if request.trials else []
    arms = plan.known_arms(request.trials)
    concurrency = max(1, resources.at_a_time([(cpus_here(), torch.cuda.device_count())]))
    mode, why = feature_choice(prepared, flags.features, flags.cache_dir, resources)
    missing, live = not_stored(prepared, flags.cache_dir), mode == "live"
    searched = [(search.base, search.at_most(request.trials, request.search)) for search in searches]
    rated = [(arm.config, len(request.rates)) for arm in plan.arms]
    of_arms = (*(search.base for search in searches), *(arm.config for arm in arms))
    confirmed = [(config, request.seeds) for config in of_arms]
    planned = [*searched, *rated, *confirmed]
    total = sum(n for _, n in planned)
    # Which trials of others it takes is not known before arms have tried their rates.
    elsewhere = case.trained_elsewhere(environment(case, mode)).ids
    ended = set() if flags.fresh else _ended(case.folder)
    taken = 0 if request.rates else len({*elsewhere} - ended)
    done = total if ended and _is_complete(case.before, request) else min(total, len(ended))
    left = max(0, total - done - taken)
    configs = [config for config, _ in planned]
    forward, each, last = _seconds(prepared, configs, live=live, variants=len(plan.variants))
    passes = 0.0 if live else forward * padded_tokens(missing)
    # Arms are confirmed seed by seed: those that are left cost what all of them do, on average.
    seconds = sum(n * each[config] for config, n in planned)
    seconds += sum(n * last[config] for config, n in confirmed)
    longest = max(each[config] + last[config] for config in configs)
    trials = max(left * seconds / max(1, total) / concurrency, longest if left else 0.0)
    copies = max(COPIES[config.base_model] for config in configs)
    base = (weight_bytes(source) if live else 0) + (copies * weight_bytes(source, "float32") if copies else 0)
    memory = concurrency * (WORKER_BYTES + base)
    examples = ", ".join(f"{name} {len(split)}" for name, split in task.splits.items())
    bests = " and the best of each search" if searches else ""
    too_few = f"; a verdict takes {FIRST} seeds" if request.seeds < FIRST else ""
    not_loaded = "without the base model's passes, as it is not loaded"
    states = f"hidden states {duration(passes)}" if forward else not_loaded
    lines = {
        "backbone": f"{backbone_line(prepared)}; from {source.folder}",
        "data": data_line(task),
        "task": task_line(task),
        "examples": f"{examples}; {prepared.n_tokens} tokens, at most {prepared.request.max_length} a text",
        "cut": _cut(prepared.truncated),
        "search": f"{sum(n for _, n in searched)} trials by {request.search}, {request.scheduler}"
        if searches
        else "",
        "rates": f"{len(request.rates)} for each of {len(plan.arms)} arms" if request.rates else "",
        "arms": f"{len(arms)}{bests}, {request.seeds} seeds each{too_few}",
        "dropped": "; ".join(f"{name}: {reason}" for name, reason in plan.dropped),
        "trials": f"{total}, {done} done" + (f", {taken} taken from other studies" if taken else ""),
        "cache": ""
        if live
        else f"{prepared.store_bytes / 1e6:.0f} MB in {flags.cache_dir}, all of test among it unless "
        f"--test-examples caps it; {missing_bytes(prepared, flags.cache_dir) / 1e6:.0f} MB of it to come",
        "features": f"{mode}: {why}; of each text {source.pooling or 'every token'}",
        "memory": f"about {memory / 1e9:.1f} GB for {concurrency} trials at a time; hidden states are shared",
        "time": f"{states}; a trial at most {duration(longest)}; {left} trials left, each with all its "
        f"epochs: in all at most about {duration(FIXED_SECONDS + passes + trials)}, as busy as this "
        "machine is now",
    }
    title = f"{source.name} ({source.layers} layers of width {source.width}) on {task.name}"
    return "\n".join([title, *(f"  {name:<12}{text}" for name, text in lines.items() if text)])


def _ended(folder: Folder) -> set[str]:
    """Return the ids of a study's trials that have ended."""
    if not folder.exists(TRIALS):
        return set()
    trials = read_trials(folder)
    return {*trials.loc[trials["status"].isin(FINISHED), "trial_id"]}


def _is_complete(study: StudyFile, request: StudyRequest) -> bool:
    """Return whether a study has finished with what is requested now."""
    sizes = ((each.trials, each.seeds, each.until_decided) for each in (study.request, request))
    return study.runs.state == "finished" and len({*sizes}) == 1


def backbone_line(prepared: Prepared) -> str:
    """Return what the backbone takes: "110 million parameters; 0.44 GB on disk; ..."."""
    source, (parameters, _) = prepared.source, prepared.backbone_parameters
    if source.is_states:
        return f"hidden states {source.note}"
    there = sum(file.stat().st_size for file in weights(source.folder))
    disk = f"{there / 1e9:.2f} GB on disk" if there or source.random else "its weights are not here yet"
    memory = weight_bytes(source) / 1e9
    return f"{parameters / 1e6:,.0f} million parameters; {disk}; {memory:.2f} GB of memory, computes in {source.dtype}"


def data_line(task: Task) -> str:
    """Return where a dataset was read, its columns, the role of each split, what is not used, and how it was read."""
    reading = task.reading
    *texts, labels = reading.columns or [""]
    columns = f" (texts {', '.join(texts)}; labels {labels})" if reading.columns else ""
    splits = splits_in_words(reading.roles, reading.unused)
    return "; ".join([f"{reading.path}{columns}", splits, *reading.notes])


def task_line(task: Task) -> str:
    """Return the kind of task, its labels, and the score that selects."""
    names = ", ".join(map(visible, task.label_names[:12]))
    labels = f"; {len(task.label_names)} labels: {names}" if names else ""
    more = ", ..." if len(task.label_names) > 12 else ""
    return f"{task.title}{labels}{more}; selected by {task.metric} on validation"


def _cut(truncated: Mapping[str, Mapping[str, int]]) -> str:
    """Return how much the maximum length cuts of each split: "train 120 (1,034 words), test 0"."""
    return ", ".join(
        f"{name} {counts['examples']:,}" + (f" ({counts['words']:,} words)" if counts.get("words") else "")
        for name, counts in truncated.items()
    )


class _InMemory:
    """Random numbers as hidden states of a few sequences, one tensor for all: a large base model's fill the memory."""

    def __init__(self, lengths: np.ndarray, width: int):
        self.lengths, self._offsets = lengths, np.concatenate([[0], np.cumsum(lengths)])
        self._rows = torch.randn(int(self._offsets[-1]), width, generator=torch.Generator().manual_seed(0))

    def read(
        self, examples: np.ndarray, states: Sequence[State], device: torch.device
    ) -> dict[State, Tensor]:
        return dict.fromkeys(states, self._rows[torch.from_numpy(ragged_index(self._offsets, examples))])


def _seconds(
    prepared: Prepared, configs: Sequence[TrialConfig], *, live: bool, variants: int
) -> tuple[float, dict[TrialConfig, float], dict[TrialConfig, float]]:
    """Return how long the backbone's pass takes for a token, all epochs of each configuration, and what follows them.

    That is of a confirmed arm: its best model, and each variant of it, on validation, and test.

    A trial's time depends on shapes alone: of configurations that do the same work one is timed. A backbone that is not
    loaded takes no time.
    live: whether each epoch takes a pass of the backbone
    """
    whole = prepared.data("live").splits["train"]
    most = max(SAMPLE, 2 * max(config.batch_size for config in configs))
    chosen = np.random.default_rng(0).permutation(len(whole))[:most]
    lengths = np.ones(len(chosen), int) if prepared.source.pooling else whole.features.lengths[chosen]
    sample = whole.subset(chosen, _InMemory(lengths, prepared.source.width))
    loads = prepared.source.has_weights and prepared.backbone_parameters[0] < LARGE
    forward = time_backbone(prepared, torch.device("cpu")) if loads else 0.0
    splits = prepared.task.splits
    train, validation, test = (len(splits.get(name, ())) for name in ("train", "validation", "test"))
    timed: dict[Any, float] = {}
    taken, last = {}, {}
    for config in dict.fromkeys(configs):
        n_parameters = FusionModel(config, prepared.shape).n_parameters()
        key = config.fusion, config.base_model, config.batch_size, n_parameters
        if key not in timed:
            of_head = {} if loads else {"base_model": "frozen"}
            timed[key] = _seconds_per_example(prepared, sample, with_overrides(config, of_head))
        each = timed[key] + live * forward * whole.features.lengths.mean()
        learned = min(config.train_examples or train, train)
        # An evaluation has no backward pass.
        examples = 0.75 * learned + 0.25 * validation / config.evaluate_every
        taken[config] = config.epochs * examples * each
        last[config] = 0.25 * ((1 + variants) * validation + test) * each
    return forward, taken, last


def _seconds_per_example(prepared: Prepared, sample: SplitData, config: TrialConfig) -> float:
    """Return the seconds per example of a trial's epoch, evaluation included, next to what else this machine does."""
    data = prepared.data("live")
    data = dataclasses.replace(data, splits={"train": sample, "validation": sample})
    short = dataclasses.replace(config, epochs=3, patience=3, evaluate_every=1, train_examples=None)
    ends: list[float] = []
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        train(short, data, seed=0, on_evaluation=lambda evaluation: ends.append(time.monotonic()))
    except Diverged as error:
        raise BadInput(
            f"wanted settings that can be timed, got some that diverge within a few steps ({error}); change --set"
        ) from error
    finally:
        torch.set_num_threads(threads)
    return (ends[-1] - ends[0]) / (len(ends) - 1) / len(sample)
