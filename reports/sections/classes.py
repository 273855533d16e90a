"""Precision, recall, F1 and counts by entity class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure

from reports.cells import named, summary
from reports.evidence.evidence import Evidence
from reports.plots import legend, looks_of, points, seeds_text, single
from reports.reading.frames import records
from reports.section import Section, Table
from reports.tables import errors
from reports.words.labels import SPLITS
from reports.words.text import NONE, number

SCORES = {"precision": "precision", "recall": "recall", "f1": "F1"}


@dataclass(frozen=True)
class Frames:
    """scores: as from `errors.entity_scores`, of the control and the arm best on validation."""

    evidence: Evidence
    scores: pd.DataFrame


def frames(evidence: Evidence) -> Frames | None:
    """None for tasks other than tagging entities, and without predictions."""
    if not evidence.tokens:
        return None
    scores = errors.entity_scores(evidence.predictions, evidence.shown_arms, evidence.scheme)
    return None if scores.empty else Frames(evidence, scores)


def tables(frames: Frames) -> Sequence[Table]:
    published = {row.base_model: row for row in frames.evidence.published if row.classes}
    rows: list[list[object]] = []
    for entity, of_class in frames.scores.groupby("class", sort=False):
        for arm, own in of_class.groupby("arm", sort=False):
            parts = {row["part"]: row for row in records(own)}
            counts = [number(parts["gold"]["mean"], 0), number(parts["predicted"]["mean"], 1)]
            rows.append([entity, named(arm), *(summary(parts[part]) for part in SCORES), *counts])
        rows += [
            [
                entity,
                f"published, {model.base_model}",
                score.precision,
                score.recall,
                score.f1,
                NONE,
                score.predicted,
            ]
            for model in published.values()
            for score in model.classes
            if score.name == entity
        ]
    heads = ["class", "arm", *SCORES.values(), "entities, true", "predicted (mean)"]
    return [Table(heads, rows, f"On {SPLITS[frames.evidence.split]}; words and type have to agree.")]


def draw(frames: Frames) -> Figure:
    """Precision, recall and F1 of each entity class of the best arm."""
    scores, best = frames.scores, frames.evidence.best_arm
    own = scores[scores["arm"] == (best if best in set(scores["arm"]) else frames.evidence.plan.control)]
    gold = own[own["part"] == "gold"].set_index("class")["mean"]
    rows = own[own["part"].isin(SCORES)]
    x = [f"{name}\n{gold[name]:,.0f} true" for name in rows["class"]]
    figure, axes = single(3.2, "entity class (mean counts per seed)", "score (0 to 1)")
    looks = looks_of(SCORES.values())
    points(rows.assign(x=x, series=rows["part"].map(SCORES)), axes, joined=False, looks=looks)
    legend(figure, looks, f"mean and 95% interval, {seeds_text(rows['n'])}", lines=False)
    return figure


SECTION = Section(
    "Scores by entity class",
    frames,
    tables,
    {"class_scores": draw},
    "Precision, recall and F1 of each entity class",
)
