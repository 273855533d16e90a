"""The published scores next to those of this study's arms, and in what the published runs were others."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adalayers.comparisons import PlannedArm
from adalayers.results.intervals import mean_interval
from adalayers.results.study_file import Published, StudyFile
from adalayers.tasks.metrics import bounds
from reports.cells import INTERVAL, interval_cell, named
from reports.evidence.evidence import Evidence
from reports.reading.load import as_text
from reports.section import Section, Table
from reports.tables import arms as tables_of_arms
from reports.words.labels import SPLITS, short
from reports.words.text import NONE

Pairs = Sequence[tuple[PlannedArm, Published]]


@dataclass(frozen=True)
class Frames:
    evidence: Evidence
    pairs: Pairs


def frames(evidence: Evidence) -> Frames | None:
    arms = {name: arm for arm in evidence.plan.arms for name in (*arm.aliases, arm.name)}
    pairs = [(arms[run.arm], run) for run in evidence.published if run.arm in arms]
    return Frames(evidence, pairs) if pairs else None


def tables(frames: Frames) -> Sequence[Table]:
    heads = [
        "arm",
        f"score here, {INTERVAL}",
        "on",
        "published",
        "parameters here",
        "published",
        "recomputed",
        "source",
    ]
    rows = [_row(frames.evidence, arm, run) for arm, run in frames.pairs]
    differs = [[fact, *values] for fact, *values in _differs(frames)]
    return [Table(heads, rows), Table(["what differs", "here", "in the published runs"], differs)]


def _row(evidence: Evidence, arm: PlannedArm, run: Published) -> list[object]:
    scores = {
        split: tables_of_arms.values(evidence.trials, f"{split}/{run.metric}").get(arm.name, {})
        for split in ("test", "val")
    }
    split = run.split if len(scores.get(run.split, ())) else "val"
    trained = tables_of_arms.values(evidence.trials, "parameters").get(arm.name, {})
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


def _differs(frames: Frames) -> Iterator[tuple[str, str, str]]:
    """Yield what differs, each value once: "13 / 9" where set-ups have their own."""
    facts = [dict(_facts(frames.evidence, arm, run)) for arm, run in frames.pairs]
    for fact in dict.fromkeys(name for own in facts for name in own):
        pairs = [tuple(map(str, own[fact])) for own in facts if fact in own]
        if any(here != there for here, there in pairs):
            here, there = (" / ".join(dict.fromkeys(side)) for side in zip(*pairs, strict=True))
            yield fact, here, there


def _facts(
    evidence: Evidence, arm: PlannedArm, run: Published
) -> Iterator[tuple[str, tuple[object, object]]]:
    """Yield what an arm and its published run can differ in: (here, there)."""
    study, config = evidence.loaded.study, arm.config
    backbone, dataset = study.environment.backbone, study.environment.dataset
    size = "{} ({} layers of width {:,})".format
    yield (
        "base model",
        (
            size(backbone.name, backbone.layers, backbone.width),
            size(run.base_model, run.layers, run.width),
        ),
    )
    yield "dataset", (dataset.name, run.dataset)
    for split in ("train", "test"):
        if split in dataset.examples and split in run.examples:
            yield f"{SPLITS[split]} examples", (f"{dataset.examples[split]:,}", f"{run.examples[split]:,}")
    here, there = _steps(dataset.examples.get("train"), config), _steps(run.examples.get("train"), run.config)
    if here and there:
        names = ("steps an epoch", "epochs, at most", "steps in all, at most")
        yield from zip(names, zip(here, there, strict=True), strict=True)
    yield "hidden states mixed", (run.states_here, run.states)
    for name, value in run.config.items():
        if name in config and name not in ("hidden_states", "epochs") and config[name] != value:
            yield name, (as_text(config[name]), as_text(value))
    if evidence.plan.metric != run.selects:
        over = " over tags" if evidence.tokens else ""
        yield "score that selects", (short(evidence.plan.metric), f"{short(run.selects)}{over}")
    if any(cut.get("examples") for cut in dataset.truncated.values()):
        yield "tokens of a text, at most", (as_text(study.request.flags.get("max_length")), run.max_length)
    yield "precision", (_precision(study), run.precision)
    yield "seeds", (evidence.plan.seeds, run.seeds)


def _steps(examples: int | None, config: Mapping[str, Any]) -> tuple[int, int, int] | None:
    """Return the steps of an epoch, the epochs, and the steps in all, each at most; None where it is not known."""
    batch, epochs = config.get("batch_size"), config.get("epochs")
    if not (examples and isinstance(batch, int) and batch > 0 and isinstance(epochs, int)):
        return None
    steps = math.ceil(examples / batch)
    return steps, epochs, steps * epochs


def _precision(study: StudyFile) -> str:
    kept = study.environment.features.precision
    arithmetic = "mixed, bfloat16" if "cuda" in study.environment.device else "float32"
    return f"{arithmetic}, hidden states kept as {kept}" if kept else arithmetic


SECTION = Section("Published results", frames, tables)
