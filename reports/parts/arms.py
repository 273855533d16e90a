"""Every arm: score, validation score next to a test score, difference to the control, verdict."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure

from reports.drawing import style
from reports.drawing.pieces import point
from reports.drawing.style import new_figure, plain_text, say_empty, styled
from reports.evidence.claims import Claim
from reports.evidence.evidence import Evidence
from reports.evidence.statistics import LEVEL
from reports.parts.cells import difference, summary
from reports.parts.part import Part, figure_link
from reports.reading.frames import records
from reports.reading.load import Plan
from reports.words.text import NONE, code, count, escape, table

NO_CONFIRMED = "Nothing to draw: no completed trials of confirmed arms."


@dataclass(frozen=True)
class Info:
    """arms: as from `tables.arms`; lines: those of the core, in order; score: its label on an axis."""

    arms: pd.DataFrame
    claims: tuple[Claim, ...]
    plan: Plan
    split: str
    score: str
    best_arm: str | None
    lines: tuple[str, ...]


def info(evidence: Evidence) -> Info:
    return Info(
        arms=evidence.arms,
        claims=tuple(evidence.claims),
        plan=evidence.plan,
        split=evidence.split,
        score=evidence.scored,
        best_arm=evidence.best_arm,
        lines=evidence.lines,
    )


def section(info: Info) -> list[str]:
    plan, scored = info.plan, info.score.split(" (")[0]
    compared = {claim.arm: claim for claim in info.claims}
    apart, several_fusions = info.split != "val", info.arms["fusion"].nunique() > 1
    heads = ["arm", *(["fusion"] if several_fusions else []), f"{scored}, mean [{LEVEL:.0%} interval]"]
    heads += ["on validation"] if apart else []
    heads += ["difference to control [corrected interval]", "verdict", "also known as"]
    rows = []
    for row in records(info.arms):
        cells = [code(row["arm"]), *([escape(row["fusion"])] if several_fusions else []), summary(row)]
        cells += [summary(row, "val_")] if apart else []
        claim = compared.get(row["arm"])
        role = "control" if row["arm"] == plan.control else "not compared"
        cells += [difference(claim), claim.verdict] if claim else [NONE, role]
        rows.append([*cells, escape(row["aliases"])])
    small = "the smallest effect of interest (not stated)"
    small = (
        small
        if plan.smallest_effect is None
        else f"±{plan.smallest_effect:g}, the smallest effect of interest"
    )
    best = f" Best mean on validation: {code(info.best_arm)}." if info.best_arm else ""
    lower = " Lower is better." if plan.mode == "min" else ""
    return [
        f"n counts completed seeds; intervals of means are t intervals over seeds.{lower}{best}",
        "Differences are paired by seed; their intervals and verdicts are corrected (Bonferroni) for all "
        f"{count(len(compared), 'comparison')} and for interim analyses. *No difference seen*: the corrected interval "
        f"lies within {small}. *Not enough evidence*: anything else that is neither better nor worse.",
        table(heads, rows),
        figure_link("arms", f"Mean {scored} of every arm with its interval"),
        "Hollow points have no interval: one seed, or the same score on all.",
    ]


@styled
def draw(info: Info) -> Figure:
    """Mean score of every arm with its interval, a row each."""
    shown = info.arms.dropna(subset=["mean"]).reset_index(drop=True)
    figure = new_figure(1.3 + 0.32 * max(len(shown), 4))
    axes = figure.add_subplot()
    if shown.empty:
        say_empty(axes, NO_CONFIRMED)
        return figure
    styles = style.arm_styles(info.arms, info.lines)
    for place, row in enumerate(records(shown)):
        colour, marker = styles[row["arm"]]
        point(axes, row["mean"], place, row["low"], row["high"], colour, marker, along="x")
    for at in shown.loc[shown["arm"] == info.plan.control, "mean"]:
        axes.axvline(at, color="0.3", linestyle="--", linewidth=1, zorder=0)
        above = axes.get_xaxis_transform()
        axes.text(at, 1.01, "control", ha="center", va="bottom", fontsize=8, color="0.3", transform=above)
    names = [f"{name}  (n = {n:.0f})" for name, n in zip(shown["arm"], shown["n"], strict=True)]
    style.name_ticks(axes, names, axis="y")
    axes.set_ylim(len(shown) - 0.3, -0.7)  # first arm on top
    axes.margins(x=0.06)
    axes.set_xlabel(plain_text(info.score))
    axes.set_ylabel("arm (n = completed seeds)")
    return figure


PART = Part("Arms", info, section, {"arms": draw})
