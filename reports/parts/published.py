"""The published scores next to those of this study's arms, and in what the published runs were others."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adalayers.comparisons import PlannedArm
from adalayers.results.intervals import LEVEL, Interval, mean_interval
from adalayers.results.study_file import Published, StudyFile
from adalayers.tasks.metrics import bounds
from reports.evidence.evidence import Evidence
from reports.parts.cells import interval_cell
from reports.parts.part import Part
from reports.reading.load import as_text
from reports.tables import arms as tables
from reports.words.labels import SPLITS, short
from reports.words.text import NONE, code, escape, number, several, table

FEW_STEPS_SHARE = 0.25
"""Share of the published steps below which a page warns."""


@dataclass(frozen=True)
class Row:
    """An arm and what was published for it.

    score:      of the arm, in the published metric on `split`; parameters: that it trains, None where unknown
    """

    arm: str
    published: Published
    score: Interval
    split: str
    parameters: int | None


@dataclass(frozen=True)
class Info:
    """differs: (what, here, in the published runs), in words; trivial: accuracy of one answer to all, where known.

    steps: of each arm, at most: (here, in the published run), where both are known
    """

    rows: tuple[Row, ...]
    differs: tuple[tuple[str, str, str], ...]
    steps: tuple[tuple[int, int], ...]
    trivial: float | None


def info(evidence: Evidence) -> Info | None:
    arms = {name: arm for arm in evidence.plan.arms for name in (*arm.aliases, arm.name)}
    pairs = [(arms[run.arm], run) for run in evidence.published if run.arm in arms]
    if not pairs:
        return None
    rows = tuple(_row(evidence, arm, run) for arm, run in pairs)
    n = evidence.loaded.study.environment.dataset.examples.get("train")
    steps = [(_steps(n, arm.config), _steps(run.examples.get("train"), run.config)) for arm, run in pairs]
    return Info(
        rows,
        tuple(_differs(evidence, pairs)),
        tuple((here[2], there[2]) for here, there in steps if here and there),
        _trivial(evidence, rows),
    )


def _row(evidence: Evidence, arm: PlannedArm, published: Published) -> Row:
    scores = {
        split: tables.values(evidence.trials, f"{split}/{published.metric}").get(arm.name, {})
        for split in ("test", "val")
    }
    split = published.split if len(scores.get(published.split, ())) else "val"
    added = tables.values(evidence.trials, "parameters").get(arm.name, {})
    return Row(
        published.arm,
        published,
        mean_interval(scores[split].values(), limits=bounds(published.metric)),
        split,
        int(next(iter(added.values()))) if added else None,
    )


def _trivial(evidence: Evidence, rows: Sequence[Row]) -> float | None:
    """Return the share of the most frequent label among the predictions' own labels, where accuracy is published."""
    of_split = evidence.predictions[["trial_id", "label"]]
    if of_split.empty or any(
        (row.published.metric, row.split) != ("accuracy", evidence.split) for row in rows
    ):
        return None
    trial = of_split[of_split["trial_id"] == of_split["trial_id"].iloc[0]]
    return float(trial["label"].value_counts(normalize=True).iloc[0])


def _differs(
    evidence: Evidence, arm_pairs: Sequence[tuple[PlannedArm, Published]]
) -> Iterator[tuple[str, str, str]]:
    """Yield fact differs, each value once: "13 / 9" where set-ups have their own."""
    facts = [dict(_facts(evidence, arm, published)) for arm, published in arm_pairs]
    for fact in dict.fromkeys(name for of_arm in facts for name in of_arm):
        pairs = [of_arm[fact] for of_arm in facts if fact in of_arm]
        if any(ours != theirs for ours, theirs in pairs):
            ours, theirs = (" / ".join(dict.fromkeys(side)) for side in zip(*pairs, strict=True))
            yield fact, ours, theirs


def _facts(
    evidence: Evidence, arm: PlannedArm, published: Published
) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield what an arm and its published run can differ in, each in words: (here, there)."""
    study, config = evidence.loaded.study, arm.config
    backbone, examples = study.environment.backbone, study.environment.dataset.examples
    yield (
        "base model",
        (
            _model(backbone.name, backbone.layers, backbone.width),
            _model(published.base_model, published.layers, published.width),
        ),
    )
    yield "dataset", (code(study.environment.dataset.name), code(published.dataset))
    for split in ("train", "test"):
        if split in examples and split in published.examples:
            yield f"{SPLITS[split]} examples", (f"{examples[split]:,}", f"{published.examples[split]:,}")
    here, there = (
        _steps(examples.get("train"), config),
        _steps(published.examples.get("train"), published.config),
    )
    if here and there:
        names = ("steps an epoch", "epochs, at most", "steps in all, at most")
        for name, n_here, n_there in zip(names, here, there, strict=True):
            yield name, (f"{n_here:,}", f"{n_there:,}")
    yield "hidden states mixed", (escape(published.states_here), escape(published.states))
    for name, there in published.config.items():
        if name in config and name not in ("hidden_states", "epochs") and config[name] != there:
            yield code(name), (code(as_text(config[name])), code(as_text(there)))
    selects = f"{short(published.selects)}{' over tags' if evidence.tokens else ''}"
    if evidence.plan.metric != published.selects:
        yield "score that selects", (short(evidence.plan.metric), selects)
    if any(cut.get("examples") for cut in study.environment.dataset.truncated.values()):
        longest = study.request.flags.get("max_length")
        yield "tokens of a text, at most", (escape(as_text(longest)), f"{published.max_length}")
    yield "precision", (escape(_precision(study)), escape(published.precision))
    yield "seeds", (f"{evidence.plan.seeds}", f"{published.seeds}")


def _steps(examples: int | None, config: Mapping[str, Any]) -> tuple[int, int, int] | None:
    """Return the steps of an epoch, the epochs, and the steps in all, each at most; None where it is not known."""
    batch, epochs = config.get("batch_size"), config.get("epochs")
    if not (examples and isinstance(batch, int) and batch > 0 and isinstance(epochs, int)):
        return None
    steps = math.ceil(examples / batch)
    return steps, epochs, steps * epochs


def _model(name: str, layers: int, width: int) -> str:
    return f"{code(name)} ({layers} layers of width {width:,})"


def _precision(study: StudyFile) -> str:
    kept = study.environment.features.precision
    arithmetic = "mixed, bfloat16" if "cuda" in study.environment.device else "float32"
    return f"{arithmetic}, hidden states kept as {kept}" if kept else arithmetic


def section(info: Info) -> list[str]:
    metrics = list(dict.fromkeys(f"{SPLITS[row.split]} {short(row.published.metric)}" for row in info.rows))
    sources = list(dict.fromkeys(row.published.source for row in info.rows))
    rows = [
        [
            code(row.arm),
            interval_cell(row.score),
            number(row.published.score),
            NONE if row.parameters is None else f"{row.parameters:,}",
            f"{row.published.parameters / 1e6:.2f}M ({row.published.recomputed:,})",
        ]
        for row in info.rows
    ]
    trivial = "" if info.trivial is None else f" One answer to all would have {number(info.trivial)}."
    remarks = list(dict.fromkeys(row.published.remark for row in info.rows if row.published.remark))
    differs = table(["what", "here", "published"], info.differs)
    return [
        _short(info),
        f"{several(metrics)[:1].upper()}{several(metrics)[1:]}, mean [{LEVEL:.0%} interval] over n seeds, next to "
        f"{several(map(escape, sources))}, whose scores are of one run each: no test compares the two.{trivial}",
        table(["arm", "here", "published", "added parameters", "published (counted again)"], rows),
        " ".join(map(escape, remarks)),
        *(
            ["What differs; where set-ups have values of their own, a slash parts them:", differs]
            if info.differs
            else []
        ),
    ]


def _short(info: Info) -> str:
    """Return a warning where training has a small part of the published steps; nothing elsewhere."""
    few = [(here, there) for here, there in info.steps if here < FEW_STEPS_SHARE * there]
    if not few:
        return ""
    here, there = (
        " to ".join(f"{end:,}" for end in sorted({min(side), max(side)})) for side in zip(*few, strict=True)
    )
    return (
        f"**Hardly trained**: at most {here} steps here, {there} in the published runs. At the published rates and "
        "batch sizes, small data leave a model close to its start: these scores say little of the method. More "
        "examples or epochs, or smaller batches (`--set batch_size=32`), say more."
    )


PART = Part("Next to the published numbers", info, section)
