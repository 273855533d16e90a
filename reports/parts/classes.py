"""Precision, recall, F1 and counts by entity class (thesis figure 19)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from adalayers.results.study_file import Published
from reports.drawing import style
from reports.drawing.pieces import legend_right, seeds_text
from reports.drawing.style import COLOURS, HATCHES, new_figure, say_empty, styled
from reports.evidence import predicted, tables
from reports.evidence.evidence import Evidence
from reports.evidence.statistics import LEVEL
from reports.parts.cells import summary
from reports.parts.part import Part, figure_link
from reports.reading.frames import records
from reports.words.labels import SPLITS
from reports.words.text import NONE, code, escape, estimate, number, several, table

NO_CLASSES = "Nothing to draw: no predictions of entities by confirmed trials."
NO_PREDICTIONS = "No predictions of confirmed trials."


@dataclass(frozen=True)
class Info:
    """scores: as from `predicted.entity_scores`; per_class: as from `tables.per_class`, without predictions.

    published: what was published of classes, once per base model
    """

    scores: pd.DataFrame
    per_class: pd.DataFrame
    control: str
    best_arm: str | None
    split: str
    published: tuple[Published, ...] = ()


def info(evidence: Evidence) -> Info | None:
    if not evidence.tokens:
        return None
    plan, best = evidence.plan, evidence.best_arm
    return Info(
        scores=predicted.entity_scores(evidence.predictions, evidence.shown_arms),
        per_class=tables.per_class(evidence.trials, plan, [name for name in (plan.control, best) if name]),
        control=plan.control,
        best_arm=best,
        split=evidence.split,
        published=tuple({one.base_model: one for one in evidence.published if one.classes}.values()),
    )


def section(info: Info) -> list[str]:
    drawn = figure_link("class_scores", "Precision, recall and F1 of each entity class")
    if info.scores.empty:
        return [f"{NO_PREDICTIONS} What is known is F1.", drawn, *_f1(info)]
    roles = _roles(info)
    rows = []
    for entity, of in info.scores.groupby("class", sort=False):
        rows += [
            [escape(entity), code(row["arm"])]
            + [_part(row, part) for part in ("precision", "recall", "f1")]
            + [f"{number(row['gold_mean'], 0)} / {number(row['predicted_mean'], 1)}"]
            for row in records(of)
        ]
        rows += [
            [escape(entity), f"published, {code(one.base_model)}"]
            + [number(value) for value in (score.precision, score.recall, score.f1)]
            + [f"{NONE} / {score.predicted:,}"]
            for one in info.published
            for score in one.classes
            if score.name == entity
        ]
    named = ", ".join(f"{code(arm)} ({', '.join(role)})" for arm, role in roles.items() if arm)
    return [
        f"On {SPLITS[info.split]}, mean [{LEVEL:.0%} t interval] over n seeds, counted from the predictions of "
        f"{named}. An entity counts where its words and its type agree. These were not compared. The figure shows "
        f"{code(info.best_arm)}.{_sources(info)}",
        drawn,
        table(["class", "arm", "precision", "recall", "F1", "entities, true / predicted (mean)"], rows),
    ]


def _sources(info: Info) -> str:
    """Return where published rows come from; nothing where there are none."""
    sources = several([escape(source) for source in dict.fromkeys(one.source for one in info.published)])
    return f" Published rows: {sources}, one run." if sources else ""


def _roles(info: Info) -> dict[str, list[str]]:
    roles = {info.control: ["control"]}
    roles.setdefault(str(info.best_arm), []).append("best on validation")
    return roles


def _f1(info: Info) -> list[str]:
    """Return entity F1 by class for the control and the best arm."""
    if info.per_class.empty:
        return []
    names = list(dict.fromkeys(info.per_class["arm"]))
    cells = {(row["class"], row["arm"]): summary(row) for row in records(info.per_class)}
    published = {one.base_model: {of.name: number(of.f1) for of in one.classes} for one in info.published}
    roles = _roles(info)
    return [
        f"Entity F1 by class on {SPLITS[info.split]}, mean [{LEVEL:.0%} interval]. These were not compared."
        f"{_sources(info)}",
        table(
            [
                "class",
                *(f"{code(name)} ({', '.join(roles.get(name, []))})" for name in names),
                *(f"published, {code(base)}" for base in published),
            ],
            [
                [
                    escape(entity),
                    *(cells[entity, name] for name in names),
                    *(of.get(entity, NONE) for of in published.values()),
                ]
                for entity in dict.fromkeys(info.per_class["class"])
            ],
        ),
    ]


def _part(row: Mapping[str, Any], part: str) -> str:
    return estimate(row[f"{part}_mean"], row[f"{part}_low"], row[f"{part}_high"], row["n"])


@styled
def draw(info: Info) -> Figure:
    """Precision, recall and F1 of each entity class of the best arm, and how many there are.

    Intervals end at 0 and 1 here; the table has them whole.
    """
    figure = new_figure(3.8)
    axes = figure.add_subplot()
    rows = info.scores[info.scores["arm"] == (info.best_arm or "")]
    if rows.empty:
        say_empty(axes, NO_CLASSES)
        return figure
    parts = ("precision", "recall", "f1")
    for place, part in enumerate(parts):
        at = np.arange(len(rows)) + 0.26 * (place - 1)
        axes.bar(
            at,
            rows[f"{part}_mean"],
            width=0.24,
            color=COLOURS[place],
            hatch=HATCHES[place],
            edgecolor="black",
            linewidth=0.6,
        )
        for x, row in zip(at, records(rows), strict=True):
            mean = row[f"{part}_mean"]
            low, high = max(row[f"{part}_low"], 0.0), min(row[f"{part}_high"], 1.0)
            top = mean
            if not np.isnan(row[f"{part}_low"]):
                axes.errorbar(
                    x, mean, yerr=[[mean - low], [high - mean]], color="black", linewidth=1, capsize=2
                )
                top = high
            axes.annotate(
                f"{mean:.2f}", (x, top), xytext=(0, 2), textcoords="offset points", ha="center", fontsize=7.5
            )
    names = [
        f"{row['class']}\n{row['gold_mean']:,.0f} true\n{row['predicted_mean']:,.0f} predicted"
        for row in records(rows)
    ]
    style.name_ticks(axes, names, axis="x")
    axes.set_ylim(0, 1.12)
    axes.set_yticks(np.linspace(0, 1, 6))
    axes.grid(visible=False, axis="x")
    handles = [
        Patch(facecolor=COLOURS[i], hatch=HATCHES[i], edgecolor="black", linewidth=0.6, label=name)
        for i, name in enumerate(("precision", "recall", "F1"))
    ]
    legend_right(figure, handles, f"95% t intervals,\n{seeds_text(rows['n'])}")
    axes.set_xlabel("entity class (mean counts per seed)")
    axes.set_ylabel("score (0 to 1)")
    return figure


PART = Part("Scores by entity class", info, section, {"class_scores": draw})
