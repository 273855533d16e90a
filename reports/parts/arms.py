"""Every arm: score, validation score next to a test score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure

from adalayers.results.intervals import LEVEL, MIN_N
from reports.drawing import style
from reports.drawing.pieces import point
from reports.drawing.style import new_figure, plain_text, say_empty
from reports.evidence.evidence import Evidence
from reports.parts.cells import summary
from reports.parts.part import Part, figure_link
from reports.parts.settings import meaning
from reports.reading.frames import records
from reports.reading.load import Plan
from reports.words.labels import AxisLabel
from reports.words.text import NONE, code, escape, number, table

NO_CONFIRMED = "Nothing to draw: no completed trials of confirmed arms."


@dataclass(frozen=True)
class Info:
    """arms: as from `tables.arms`; scores: arm -> its scores by seed; lines: those of the core; score: its label."""

    arms: pd.DataFrame
    scores: Mapping[str, Mapping[int, float]]
    plan: Plan
    split: str
    score: AxisLabel
    best_arm: str | None
    lines: tuple[str, ...]


def info(evidence: Evidence) -> Info:
    return Info(
        arms=evidence.arms,
        scores=evidence.scores,
        plan=evidence.plan,
        split=evidence.split,
        score=evidence.scored,
        best_arm=evidence.best_arm,
        lines=evidence.lines,
    )


def section(info: Info) -> list[str]:
    plan, scored = info.plan, info.score.name
    apart, several_fusions = info.split != "val", info.arms["fusion"].nunique() > 1
    few = bool((info.arms["n"] < MIN_N).any())
    heads = ["arm", *(["fusion"] if several_fusions else []), f"{scored}, mean [{LEVEL:.0%} interval]"]
    heads += ["by seed"] if few else []
    heads += ["on validation"] if apart else []
    told = {} if plan.factors else {arm.name: meaning(arm, plan) for arm in plan.arms}
    heads += ["what it is, as far as it differs from the control"] if told else []
    heads += ["also known as"]
    rows = []
    for row in records(info.arms):
        cells = [code(row["arm"]), *([escape(row["fusion"])] if several_fusions else []), summary(row)]
        cells += [_seeds(info.scores.get(row["arm"], {}))] if few else []
        cells += [summary(row, "val_")] if apart else []
        cells += [told.get(row["arm"], NONE)] if told else []
        rows.append([*cells, escape(row["aliases"])])
    best = f" Best mean on validation: {code(info.best_arm)}." if info.best_arm else ""
    return [
        f"n counts completed seeds. Intervals are t intervals over seeds, from {MIN_N} seeds on; they are not "
        f"corrected, and compare no two arms.{best} Control: {code(plan.control)}.",
        table(heads, rows),
        figure_link("arms", f"Mean {scored} of every arm with its interval"),
        f"Hollow points have no interval: fewer than {MIN_N} seeds, or the same score on all."
        if info.arms["low"].isna().any()
        else "",
    ]


def _seeds(scores: Mapping[int, float]) -> str:
    """Return every seed's score where they are few."""
    return ", ".join(map(number, scores.values())) if 0 < len(scores) < MIN_N else NONE


def draw(info: Info) -> Figure:
    """Mean score of every arm with its interval, a row each."""
    shown = info.arms.dropna(subset=["mean"]).reset_index(drop=True)
    figure = new_figure(1.3 + 0.32 * max(len(shown), 4))
    axes = figure.add_subplot()
    if shown.empty:
        say_empty(axes, NO_CONFIRMED)
        return figure
    styles = style.arm_styles(info.arms, info.lines)
    for index, row in enumerate(records(shown)):
        colour, marker = styles[row["arm"]]
        point(axes, row["mean"], index, row["low"], row["high"], colour, marker, along="x")
    for mean in shown.loc[shown["arm"] == info.plan.control, "mean"]:
        axes.axvline(mean, color="0.3", linestyle="--", linewidth=1, zorder=0)
        above = axes.get_xaxis_transform()
        axes.text(mean, 1.01, "control", ha="center", va="bottom", fontsize=8, color="0.3", transform=above)
    names = [f"{name}  (n = {n:.0f})" for name, n in zip(shown["arm"], shown["n"], strict=True)]
    style.name_ticks(axes, names, axis="y")
    axes.set_ylim(len(shown) - 0.3, -0.7)  # first arm on top
    axes.margins(x=0.06)
    axes.set_xlabel(plain_text(info.score))
    axes.set_ylabel("arm (n = completed seeds)")
    return figure


PART = Part("Arms", info, section, {"arms": draw})
