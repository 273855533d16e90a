"""The published scores next to those of this study's arms, and in what the published runs were others."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adalayers.comparisons import PlannedArm
from adalayers.results.intervals import mean_interval
from adalayers.results.study_file import Published
from adalayers.tasks.metrics import bounds
from reports.cells import INTERVAL, interval_cell, named
from reports.evidence.evidence import Evidence
from reports.reading.load import as_text
from reports.section import Section, Table
from reports.tables.arms import values
from reports.words.labels import SPLITS, short
from reports.words.text import NONE


@dataclass(frozen=True)
class Frames:
    evidence: Evidence
    pairs: Sequence[tuple[PlannedArm, Published]]


def frames(evidence: Evidence) -> Frames | None:
    arms = {name: arm for arm in evidence.plan.arms for name in (*arm.aliases, arm.name)}
    pairs = [(arms[run.arm], run) for run in evidence.published if run.arm in arms]
    return Frames(evidence, pairs) if pairs else None


def tables(frames: Frames) -> Sequence[Table]:
    heads = [
        "arm",
        f"here, {INTERVAL}",
        "on",
        "published",
        "parameters here",
        "published",
        "recomputed",
        "source",
    ]
    rows = [_row(frames.evidence, arm, run) for arm, run in frames.pairs]
    facts = [_facts(frames.evidence, arm, run) for arm, run in frames.pairs]
    differs = []
    for fact in dict.fromkeys(name for own in facts for name in own):
        pairs = [tuple(map(str, own[fact])) for own in facts if fact in own]
        if any(here != there for here, there in pairs):
            differs.append([fact, *(" / ".join(dict.fromkeys(side)) for side in zip(*pairs, strict=True))])
    return [Table(heads, rows), *([Table(["what differs", "here", "published"], differs)] if differs else [])]


def _row(evidence: Evidence, arm: PlannedArm, run: Published) -> list[object]:
    scores = {
        split: values(evidence.trials, f"{split}/{run.metric}").get(arm.name, {}) for split in ("test", "val")
    }
    split = run.split if scores.get(run.split) else "val"
    trained = values(evidence.trials, "parameters").get(arm.name, {})
    return [
        named(run.arm),
        interval_cell(mean_interval(scores[split].values(), limits=bounds(run.metric))),
        f"{SPLITS[split]} {short(run.metric)}",
        run.score,
        next((int(value) for value in trained.values()), NONE),
        f"{run.parameters / 1e6:.2f}M",
        run.recomputed,
        ": ".join(filter(None, (run.source, run.remark))),
    ]


def _facts(evidence: Evidence, arm: PlannedArm, run: Published) -> dict[str, tuple[object, object]]:
    """Return what an arm and its published run can differ in: (here, there)."""
    study, config = evidence.loaded.study, arm.config
    backbone, dataset = study.environment.backbone, study.environment.dataset
    kept, cuda = study.environment.features.precision, "cuda" in study.environment.device
    size = "{} ({} layers of width {:,})".format
    steps = _steps(dataset.examples.get("train"), config), _steps(run.examples.get("train"), run.config)
    facts: dict[str, tuple[object, object]] = {
        "base model": (
            size(backbone.name, backbone.layers, backbone.width),
            size(run.base_model, run.layers, run.width),
        ),
        "dataset": (dataset.name, run.dataset),
        **{
            f"{SPLITS[split]} examples": (f"{dataset.examples[split]:,}", f"{run.examples[split]:,}")
            for split in ("train", "test")
            if split in dataset.examples and split in run.examples
        },
        "hidden states mixed": (run.states_here, run.states),
        "score that selects": (short(evidence.plan.metric), short(run.selects)),
        "precision": (
            ("mixed, bfloat16" if cuda else "float32") + (f", hidden states kept as {kept}" if kept else ""),
            run.precision,
        ),
        "seeds": (evidence.plan.seeds, run.seeds),
    }
    if all(steps):
        facts["steps, at most"] = (f"{steps[0]:,}", f"{steps[1]:,}")
    if any(cut.get("examples") for cut in dataset.truncated.values()):
        facts["tokens of a text, at most"] = study.request.data.max_length, run.max_length
    return facts | {
        name: (as_text(config[name]), as_text(value))
        for name, value in run.config.items()
        if name in config and name != "hidden_states" and config[name] != value
    }


def _steps(examples: int | None, config: Mapping[str, Any]) -> int:
    """Return the steps of a run, at most; 0 where it is not known."""
    batch, epochs = config.get("batch_size"), config.get("epochs")
    if not (examples and isinstance(batch, int) and batch > 0 and isinstance(epochs, int)):
        return 0
    return math.ceil(examples / batch) * epochs


SECTION = Section("Published results", frames, tables)
