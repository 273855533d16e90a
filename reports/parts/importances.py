"""Importances of the hyperparameters with their spread, and where the best lies on the edge of a range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from reports.drawing import style
from reports.drawing.pieces import legend_right
from reports.drawing.style import COLOURS, HATCHES, new_figure, styled
from reports.evidence import importances as evaluating
from reports.evidence.evidence import Evidence
from reports.evidence.importances import FANOVA, FEWEST, PED_ANOVA, target_share
from reports.evidence.ranges import Edge
from reports.parts.part import Part, figure_link
from reports.reading.frames import records
from reports.reading.load import Plan
from reports.words.text import code, count, interval, number, several, table

ROLES = ("scientific", "nuisance", "searched")


@dataclass(frozen=True)
class Info:
    """importances: a table per evaluator, as from `importances.importances`, those without rows left out.

    done: completed trials with a score; unread: hyperparameters whose search space could not be read
    """

    importances: tuple[pd.DataFrame, ...]
    done: int
    unread: tuple[str, ...]
    edges: tuple[Edge, ...]
    plan: Plan


def info(evidence: Evidence) -> Info | None:
    if evidence.searches > 1:
        return None
    points, (space, unread) = evidence.points, evidence.space
    found = (evaluating.importances(points, space, evidence.plan), evidence.fanova)
    return Info(
        importances=tuple(table for table in found if table is not None and len(table)),
        done=int((points["status"] == "completed").sum()),
        unread=tuple(unread),
        edges=tuple(evidence.edges),
        plan=evidence.plan,
    )


def section(info: Info) -> list[str]:
    done = info.done
    paragraphs = [_unread(info.unread)]
    if not info.importances:
        why = (
            f"{count(done, 'completed search trial')} with a score; importances are worked out from {FEWEST} on, "
            "over at least two hyperparameters and different scores. More `--trials` give them, or `--scheduler fifo`, "
            "which stops none."
        )
        return [f"No importances: {why}", *paragraphs, _edges(info.edges)]
    paragraphs[:0] = [
        "How far the search's scores hang on each hyperparameter, as shares of the whole. Only completed "
        "trials count: where the scheduler stopped poor ones early, this is about the better part of the "
        "space. The ranges are the middle 90% over bootstrap resamples of the trials, one seed each; ranges "
        "that overlap widely mean that the order could be another. Importance is no effect and no direction.",
        " ".join(_evaluator(item["evaluator"].iloc[0], done) for item in info.importances),
    ]
    rows = [
        [
            *(code(row["name"]), row["role"], row["evaluator"], number(row["importance"], 2)),
            f"{interval(row['low'], row['high'], 2)}, n = {row['n']} trials, {row['resamples']} resamples",
        ]
        for item in info.importances
        for row in records(item)
    ]
    heads = ["hyperparameter", "role", "evaluator", "importance (share)", "middle 90% of resamples"]
    drawn = figure_link("importances", "Importance of each hyperparameter")
    return [*paragraphs, drawn, table(heads, rows), _edges(info.edges)]


def _evaluator(name: str, done: int) -> str:
    if name == PED_ANOVA:
        return (
            f"{PED_ANOVA} (Optuna) asks what sets the best {target_share(done):.0%} of the trials apart from all "
            "of them."
        )
    assert name == FANOVA
    return f"{FANOVA} (Optuna) splits the variance of a random forest fitted to all of the scores."


def _unread(unread: Sequence[str]) -> str:
    if not unread:
        return ""
    names = several([code(name) for name in unread], 8)
    return f"Left out, because `study.json` does not describe them as a range or a choice: {names}."


def _edges(edges: Sequence[Edge]) -> str:
    if not edges:
        return ""
    named = several(
        [
            f"{code(edge.name)} = {edge.value:.3g}, {edge.end} end, {edge.there} of the best {edge.of}"
            for edge in edges
        ],
        8,
    )
    return (
        f"**At the edge of what was searched**, so that better values may lie beyond: {named}. Widen a range where "
        "most of the best trials lie at one end."
    )


@styled
def draw(info: Info) -> Figure | None:
    """Share of importance of each hyperparameter with its spread, by the last evaluator; None without importances."""
    if not info.importances:
        return None
    table = info.importances[-1]
    figure = new_figure(1.6 + 0.42 * max(len(table), 2))
    axes = figure.add_subplot()
    for place, row in enumerate(records(table)):
        role = ROLES.index(row["role"])
        axes.barh(
            place,
            row["importance"],
            color=COLOURS[role],
            hatch=HATCHES[role],
            edgecolor="black",
            linewidth=0.6,
            height=0.62,
        )
        spread = [[max(0.0, row["importance"] - row["low"])], [max(0.0, row["high"] - row["importance"])]]
        axes.errorbar(row["importance"], place, xerr=spread, color="black", linewidth=1.2, capsize=3)
        end = max(row["high"], row["importance"])
        axes.annotate(
            f"{row['importance']:.2f}",
            (end, place),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
        )
    style.name_ticks(axes, [info.plan.short(name) for name in table["name"]], axis="y")
    axes.set_ylim(len(table) - 0.4, -0.6)
    axes.set_xlim(0, 1.12 * max(table["high"].max(), table["importance"].max(), 1e-9))
    axes.grid(visible=False, axis="y")
    first = table.iloc[0]
    axes.set_xlabel(f"importance ({first['evaluator']}; share of the whole, 0 to 1)")
    axes.set_ylabel("hyperparameter")
    handles = [
        Patch(facecolor=COLOURS[i], hatch=HATCHES[i], edgecolor="black", linewidth=0.6, label=role)
        for i, role in enumerate(ROLES)
        if role in set(table["role"])
    ]
    handles.append(
        Patch(
            facecolor="none", edgecolor="none", label=f"bars: middle 90% of\n{first['resamples']} resamples"
        )
    )
    legend_right(figure, handles, f"{first['n']} completed trials,\none seed each")
    return figure


def answer(info: Info) -> list[str]:
    """Name what the score hangs on most, with the spread, by the first evaluator."""
    if not info.importances:
        return [
            f"**What the score hangs on** is open: {count(info.done, 'search trial')} completed, {FEWEST} are needed."
        ]
    ordered = records(info.importances[0].sort_values("importance", ascending=False))[:3]
    named = [
        f"{code(row['name'])} {number(row['importance'], 2)} {interval(row['low'], row['high'], 2)}"
        for row in ordered
    ]
    return [
        f"**What the score hangs on** ({info.importances[0]['evaluator'].iloc[0]}, shares with the middle 90% of "
        f"resamples): {several(named)}."
    ]


PART = Part("Hyperparameter importance", info, section, {"importances": draw}, answer)
