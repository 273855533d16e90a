"""Precision, recall, F1 and counts by entity class (thesis figure 19)."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from adalayers.results.intervals import LEVEL
from adalayers.results.study_file import Published
from reports.drawing import style
from reports.drawing.pieces import legend_right, point, seeds_text
from reports.drawing.style import look, new_figure
from reports.evidence.evidence import Evidence
from reports.parts.cells import summary
from reports.parts.part import Part, figure_link
from reports.reading.frames import records
from reports.tables import errors as predicted
from reports.words.labels import SPLITS
from reports.words.text import NONE, code, escape, number, several, table

CLASS_SCORES = {"precision": "precision", "recall": "recall", "f1": "F1"}


@dataclass(frozen=True)
class Info:
    """scores: as from `predicted.entity_scores`; published: what was published of classes, once per base model."""

    scores: pd.DataFrame
    control: str
    best_arm: str | None
    split: str
    published: tuple[Published, ...] = ()


def info(evidence: Evidence) -> Info | None:
    """None for tasks other than tagging entities, and without predictions."""
    if not evidence.tokens:
        return None
    scores = predicted.entity_scores(evidence.predictions, evidence.shown_arms, evidence.scheme)
    if scores.empty:
        return None
    published = {row.base_model: row for row in evidence.published if row.classes}
    return Info(scores, evidence.plan.control, evidence.best_arm, evidence.split, tuple(published.values()))


def section(info: Info) -> list[str]:
    rows = []
    for entity, scores in info.scores.groupby("class", sort=False):
        rows += [
            [escape(entity), code(row["arm"])]
            + [summary(row, f"{part}_") for part in CLASS_SCORES]
            + [f"{number(row['gold_mean'], 0)} / {number(row['predicted_mean'], 1)}"]
            for row in records(scores)
        ]
        rows += [
            [escape(entity), f"published, {code(model.base_model)}"]
            + [number(value) for value in (score.precision, score.recall, score.f1)]
            + [f"{NONE} / {score.predicted:,}"]
            for model in info.published
            for score in model.classes
            if score.name == entity
        ]
    sources = several([escape(source) for source in dict.fromkeys(model.source for model in info.published)])
    best = f"{code(info.best_arm)} (best on validation)"
    arms = best if info.best_arm == info.control else f"{code(info.control)} (control) and {best}"
    return [
        f"On {SPLITS[info.split]}, mean [{LEVEL:.0%} t interval] over n seeds, from the predictions of {arms}; not "
        "compared. An entity counts where its words and its type agree. The figure shows the arm best on validation."
        + (f" Published rows: {sources}, one run." if sources else ""),
        figure_link("class_scores", "Precision, recall and F1 of each entity class"),
        table(["class", "arm", "precision", "recall", "F1", "entities, true / predicted (mean)"], rows),
    ]


def draw(info: Info) -> Figure:
    """Precision, recall and F1 of each entity class of the best arm, and how many there are."""
    figure = new_figure(3.8)
    axes = figure.add_subplot()
    best = info.best_arm if info.best_arm in set(info.scores["arm"]) else info.control
    rows = info.scores[info.scores["arm"] == best]
    handles = []
    for part, shift, (colour, marker, _) in zip(
        CLASS_SCORES, (-0.2, 0.0, 0.2), map(look, range(3)), strict=True
    ):
        for position, row in enumerate(records(rows)):
            mean, low, high = (row[f"{part}_{name}"] for name in ("mean", "low", "high"))
            point(axes, position + shift, mean, low, high, colour, marker, along="y")
        handles.append(
            Line2D([], [], color=colour, marker=marker, linestyle="none", label=CLASS_SCORES[part])
        )
    names = [
        f"{row['class']}\n{row['gold_mean']:,.0f} true\n{row['predicted_mean']:,.0f} predicted"
        for row in records(rows)
    ]
    style.name_ticks(axes, names, axis="x")
    axes.set_ylim(0, 1.02)
    legend_right(figure, handles, f"95% t intervals,\n{seeds_text(rows['n'])}")
    axes.set_xlabel("entity class (mean counts per seed)")
    axes.set_ylabel("score (0 to 1)")
    return figure


PART = Part("Scores by entity class", info, section, {"class_scores": draw})
