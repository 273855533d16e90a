"""The step of convergence by arm, along the first factor of the core."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from adalayers.results.study_file import Factor
from reports.drawing.axes import FactorAxis, factor_lines
from reports.drawing.pieces import seeds_text
from reports.drawing.style import COLOURS, new_figure, pick, say_empty, styled
from reports.evidence import tables
from reports.evidence.claims import Claim
from reports.evidence.convergence import convergence_by_arm
from reports.evidence.evidence import Evidence
from reports.parts.comparisons import compared_table
from reports.parts.part import Part, figure_link
from reports.reading.factors import cell_names, column, short
from reports.reading.frames import records
from reports.reading.load import Plan
from reports.words.text import NONE, code, folded, interval, number, several, table

NO_HISTORY = "Nothing to draw: no history of evaluations."


@dataclass(frozen=True)
class Info:
    """by_arm: as from `convergence.convergence_by_arm`; core: its rows in the core, as from `tables.core`."""

    by_arm: pd.DataFrame
    core: pd.DataFrame
    contrasts: tuple[Claim, ...]
    factors: tuple[Factor, ...]
    plan: Plan


def info(evidence: Evidence) -> Info:
    by_arm = convergence_by_arm(evidence.convergence, evidence.arms)
    contrasts = tuple(claim for claim in evidence.contrasts if claim.metric == "convergence_step")
    return Info(by_arm, tables.core(by_arm, evidence.plan), contrasts, evidence.plan.factors, evidence.plan)


def section(info: Info) -> list[str]:
    paragraphs = [
        "The step of convergence is the first at which a trial's validation score reaches *baseline + "
        "0.95 × (its own best − baseline)*; the baseline is the trivial model's score. Its resolution is "
        "one evaluation. Each trial is measured against its own best, so an arm can be early and poor. A "
        "trial whose best does not beat the baseline is *censored*: it counts as later than all others.",
        *_picture(info),
    ]
    if info.by_arm["n"].sum() == 0:
        why = "no completed confirmed trial has a history of scores, or the baseline is not known"
        return [*paragraphs, f"Nothing to show: {why}."]
    heads = ["arm", "median step [earliest, latest]", "censored", "without history"]
    rows = [
        [
            *(code(row["arm"]), _range(row), str(row["censored"]), str(row["unknown"])),
        ]
        for row in records(info.by_arm)
    ]
    return [
        *paragraphs,
        folded(
            "Convergence of each arm",
            len(rows),
            table(heads, rows),
        ),
        *compared_table(info.contrasts, info.plan, "steps", digits=0),
        "The range from earliest to latest holds an arm's true median with probability 1 − 2^(1−n): 94% "
        "for n = 5, 97% for 6. Differences are over seeds on which both converged; an arm with a censored trial gets "
        "no interval, because the seeds left would be the easy ones.",
    ]


def _picture(info: Info) -> list[str]:
    """Return the figure's link, where there is a core to draw."""
    if info.core.empty:
        return []
    first, others = short(info.factors[0]), several(short(factor) for factor in info.factors[1:])
    lines = f", a line per {others}" if others else ""
    return [figure_link("convergence", f"Median step of convergence against {first}{lines}")]


def _range(row: Mapping[str, Any]) -> str:
    if row["n"] == 0:
        return f"{NONE} (n = 0)"
    if row["n"] == 1:
        return f"{number(row['median'], 0)} (n = 1, no interval)"
    return f"{number(row['median'], 0)} {interval(row['low'], row['high'], 0)}, n = {row['n']}"


@styled
def draw(info: Info) -> Figure | None:
    """Median step of convergence against the first factor, a line per cell of the others.

    Bars: earliest to latest trial. A median that was not reached sits on the top edge with an upward triangle.
    None without a core.
    """
    if info.core.empty:
        return None
    figure = new_figure(3.9)
    axes = figure.add_subplot()
    core = info.core[info.core["n"] > 0]
    if core.empty:
        say_empty(axes, NO_HISTORY)
        return figure
    finite = core[["median", "low", "high"]].to_numpy(dtype=float)
    finite = finite[np.isfinite(finite)]
    top = 1.12 * finite.max() if finite.size else 1.0
    never = core["median"].map(np.isinf)
    drawn = core.assign(**{name: core[name].clip(upper=top) for name in ("low", "high")})
    drawn["mean"] = core["median"].mask(never)
    names = factor_lines(figure, axes, drawn, info.factors, f"core arms,\n{seeds_text(core['n'])}")
    first = column(info.factors[0].name)
    axis = FactorAxis(info.factors[0], core[first])
    for name, row in zip(cell_names(core[never], info.factors[1:]), records(core[never]), strict=True):
        place = names[name]
        x = axis.at(row[first], place, len(names))
        axes.plot(
            [x], [top], marker=10, color=pick(COLOURS, place), markersize=10, linestyle="none", clip_on=False
        )
    if never.any():
        axes.text(
            0.01,
            0.93,
            "▲ not reached by half of the seeds or more",
            transform=axes.transAxes,
            va="top",
            fontsize=9,
        )
    axes.set_ylim(0, top * 1.04)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylabel("median step of convergence\n(training steps)")
    return figure


PART = Part("Convergence", info, section, {"convergence": draw})
