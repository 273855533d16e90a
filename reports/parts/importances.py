"""Importances of the hyperparameters with their spread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from adalayers.comparisons import IMPORTANCES_FROM, IMPORTANCES_NAMED_FROM
from reports.drawing import style
from reports.drawing.pieces import legend_right, point
from reports.drawing.style import COLOURS, HATCHES, new_figure
from reports.evidence.evidence import Evidence
from reports.parts.part import Part, figure_link
from reports.reading.frames import records
from reports.reading.load import Plan
from reports.tables import importances as evaluating
from reports.tables.importances import MAX_TRIALS, RESAMPLES, target_share
from reports.words.text import code, count, interval, number, several, table

SEARCH_ROLES = ("scientific", "nuisance", "searched")
BAR: dict[str, Any] = {"edgecolor": "black", "linewidth": 0.6}


@dataclass(frozen=True)
class Info:
    """importances: as from `importances.importances`.

    done: completed trials with a score that are looked at; completed: all of them
    unread: hyperparameters whose search space could not be read
    """

    importances: pd.DataFrame
    done: int
    completed: int
    unread: tuple[str, ...]
    plan: Plan


def info(evidence: Evidence) -> Info | None:
    """None without a search, and where searches were for different arms."""
    points, (space, unread) = evidence.points, evidence.space
    if evidence.searches != 1:
        return None
    return Info(
        importances=evaluating.importances(points, space),
        done=int((points["status"] == "completed").sum()),
        completed=int((evidence.search["status"] == "completed").sum()),
        unread=tuple(unread),
        plan=evidence.plan,
    )


def section(info: Info) -> list[str]:
    unread = several([code(name) for name in info.unread], 8)
    left_out = (
        f"Left out, because `study.json` does not describe them as a range or a choice: {unread}."
        if unread
        else ""
    )
    if info.importances.empty:
        why = (
            f"{count(info.done, 'completed search trial')} with a score; importances are computed from "
            f"{IMPORTANCES_FROM} on, over at least two hyperparameters and different scores. "
            "More `--trials` give them, or `--scheduler fifo`, which stops none."
        )
        return [f"No importances: {why}", left_out]
    rows = [
        [
            *(code(row["name"]), row["role"], number(row["importance"], 2)),
            f"{interval(row['low'], row['high'], 2)}, n = {row['n']} trials, {RESAMPLES} resamples",
        ]
        for row in records(info.importances)
    ]
    thinned = info.done == MAX_TRIALS < info.completed
    heads = ["hyperparameter", "role", "importance (share)", "middle 90% of resamples"]
    rest = (
        f" Of {info.completed:,} completed trials, {MAX_TRIALS:,} at even distances in rank count."
        if thinned
        else ""
    )
    return [
        "Share of each hyperparameter in what moves the search's scores, over completed trials alone: where the "
        "scheduler stopped poor ones early, this is about the better part of the space. Ranges: the middle 90% over "
        "bootstrap resamples of the trials, one seed each; where they overlap widely, the order could be another. "
        "Importance is no effect and no direction.",
        f"PED-ANOVA (Optuna) asks what sets the best {target_share(info.done):.0%} of the trials apart from all of "
        f"them.{rest}",
        figure_link("importances", "Importance of each hyperparameter"),
        table(heads, rows),
        left_out,
    ]


def draw(info: Info) -> Figure | None:
    """Share of importance of each hyperparameter with its spread; None without importances."""
    table = info.importances
    if table.empty:
        return None
    figure = new_figure(1.6 + 0.42 * max(len(table), 2))
    axes = figure.add_subplot()
    for position, row in enumerate(records(table)):
        role = SEARCH_ROLES.index(row["role"])
        axes.barh(position, row["importance"], height=0.62, color=COLOURS[role], hatch=HATCHES[role], **BAR)
        point(axes, row["importance"], position, row["low"], row["high"], "black", "", along="x")
        end = (max(row["high"], row["importance"]), position)
        text = f"{row['importance']:.2f}"
        axes.annotate(text, end, xytext=(5, 0), textcoords="offset points", va="center", fontsize=9)
    style.name_ticks(axes, [info.plan.short(name) for name in table["name"]], axis="y")
    axes.set_ylim(len(table) - 0.4, -0.6)
    axes.set_xlim(0, 1.12 * max(table["high"].max(), table["importance"].max(), 1e-9))
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("importance (PED-ANOVA; share of the whole, 0 to 1)")
    axes.set_ylabel("hyperparameter")
    handles = [
        Patch(facecolor=COLOURS[i], hatch=HATCHES[i], label=role, **BAR)
        for i, role in enumerate(SEARCH_ROLES)
        if role in set(table["role"])
    ]
    spread = f"bars: middle 90% of\n{RESAMPLES} resamples"
    handles.append(Patch(facecolor="none", edgecolor="none", label=spread))
    legend_right(figure, handles, f"{info.done} completed trials,\none seed each")
    return figure


def answer(info: Info) -> list[str]:
    """Name the most important hyperparameters, with the spread."""
    title = "**Most important hyperparameters**"
    if info.done < IMPORTANCES_NAMED_FROM or info.importances.empty:
        done = count(info.done, "search trial")
        return [f"{title}: open, {done} completed of the {IMPORTANCES_NAMED_FROM} that are needed."]
    named = [
        f"{code(row['name'])} {number(row['importance'], 2)} {interval(row['low'], row['high'], 2)}"
        for row in records(info.importances)[:3]
    ]
    return [f"{title} (PED-ANOVA, shares with the middle 90% of resamples): {several(named)}."]


PART = Part("Hyperparameter importance", info, section, {"importances": draw}, answer)
