"""The search's trials: one by one, stopped ones apart, all at the last epoch that all reached; Optuna's own figure."""

from __future__ import annotations

import sys
import textwrap
import warnings
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from adalayers.comparisons import IMPORTANCES_FROM
from reports.drawing import style
from reports.drawing.pieces import BLANK
from reports.evidence.evidence import Evidence
from reports.parts.part import MAX_ROWS, Part, figure_link
from reports.reading.factors import column, level
from reports.reading.frames import records, searched
from reports.reading.load import Plan
from reports.reading.space import Domain
from reports.tables import rungs
from reports.tables.importances import rebuilt_study
from reports.words.text import NONE, code, count, escape, folded, number, table

MANY = 500
"""Most lines that are drawn one by one in an SVG: beyond that, they are one image."""


@dataclass(frozen=True)
class Info:
    """What the section says.

    Attributes:
        trials: As from `tables.search`.
        lost: How many trials have no result.
        agreement: As from `rungs.agreement`.
        completed: The completed rows of `importances.search_points`; empty where there are too few to draw.
        score: Label of the selection score.
    """

    trials: pd.DataFrame
    lost: int
    rung: rungs.Rung
    agreement: tuple[float | None, int]
    completed: pd.DataFrame
    space: tuple[Domain, ...]
    plan: Plan
    score: str


def info(evidence: Evidence) -> Info | None:
    """None without trials of a search. What pools several searches is not drawn, nor are lines between two axes."""
    trials, points = evidence.search, evidence.points
    if not (all_trials := len(searched(evidence.trials))):
        return None
    space = tuple(evidence.space[0])
    completed = points[points["status"] == "completed"]
    drawn = evidence.searches == 1 and len(completed) >= IMPORTANCES_FROM and len(space) > 1
    return Info(
        trials=trials,
        lost=all_trials - len(trials),
        rung=evidence.rung,
        agreement=rungs.agreement(trials, evidence.rung),
        completed=completed if drawn else completed.iloc[:0],
        space=space,
        plan=evidence.plan,
        score=evidence.chosen,
    )


def section(info: Info) -> list[str]:
    statuses = info.trials["status"].value_counts()
    return [
        f"{count(statuses.get('completed', 0), 'trial')} completed, {statuses.get('stopped', 0)} stopped early "
        f"by the scheduler, {info.lost} without a result; one seed each, no intervals. A stopped trial's score is what "
        "it had reached by then: it is never averaged or ranked with those of completed trials.",
        _rung(info) if len(info.trials) else "",
        _one_by_one(info) if len(info.trials) else "",
        figure_link("search_parallel", "Completed search trials, a line each from score to hyperparameters")
        if len(info.completed)
        else "",
    ]


def _rung(info: Info) -> str:
    """Return at which epoch all trials can be compared, and how well it predicts the end."""
    rung, (correlation, n) = info.rung, info.agreement
    if rung.epoch is None:
        return "No trial has a history of scores, so trials cannot be compared at an equal epoch."
    lost = f" {count(rung.without, 'trial')} without history left out." if rung.without else ""
    agreement = (
        ""
        if correlation is None
        else f" The {n} completed trials have a rank correlation of {number(correlation, 2)} between that epoch and "
        "the end; 1 would mean that stopping there loses nothing."
    )
    return (
        f"**Epoch {rung.epoch:g}** is the last that every trial evaluated: scores up to then compare all trials, "
        f"stopped or not, after equal training.{lost}{agreement}"
    )


def _one_by_one(info: Info) -> str:
    plan, trials, reached = info.plan, info.trials, info.rung.scores
    names = list(dict.fromkeys([*(factor.name for factor in plan.factors), *plan.nuisance]))
    rows = [
        [code(row["trial_id"]), "stopped early" if row["status"] == "stopped" else row["status"]]
        + [_brief(row[column(name)]) for name in names]
        + [number(reached.get(row["trial_id"]))]
        + [number(row["score"]) + (" so far" if row["status"] == "stopped" else ""), number(row["epochs"], 0)]
        for row in records(trials.head(MAX_ROWS))
    ]
    at_rung = NONE if info.rung.epoch is None else f"at epoch {info.rung.epoch:g}"
    symbols = [escape(plan.symbol(name)) for name in names]
    heads = ["trial", "status", *symbols, at_rung, "validation score", "epochs"]
    if len(rows) == len(trials):
        return folded("Trials one by one", len(rows), table(heads, rows))
    rest = f"{count(len(trials) - len(rows), 'more trial')} in `trials.csv`."
    return folded(f"The best {len(rows)} of {len(trials)} trials", len(rows), table(heads, rows), rest)


def _brief(value: Any) -> str:
    parsed = level(value)
    return NONE if parsed is None else f"{parsed:.3g}" if isinstance(parsed, float) else escape(parsed)


def draw(info: Info) -> Figure | None:
    """Draw Optuna's parallel coordinates, with this report's names and readable numbers on its axes."""
    if info.completed.empty:
        return None
    if "matplotlib.pyplot" not in sys.modules:
        mpl.use("agg")  # Optuna draws with pyplot, which would look for a window
    from matplotlib import pyplot
    from optuna.visualization.matplotlib import plot_parallel_coordinate

    study = rebuilt_study(info.completed, info.space)
    with warnings.catch_warnings(action="ignore"):  # that the function is experimental
        axes = plot_parallel_coordinate(study, target_name=info.score)
    figure = axes.figure
    assert isinstance(figure, Figure)
    pyplot.close(figure)  # which keeps the figure, and pyplot no reference to it
    figure.set_size_inches(style.WIDTH, 4.3)
    figure.set_layout_engine("tight")
    names = [label.get_text() for label in axes.get_xticklabels()][1:]  # the first is the score
    labels = ["score", *(info.plan.short(name).partition(", ")[0] for name in names)]
    style.name_ticks(axes, [textwrap.fill(label, 17) for label in labels], axis="x")
    axes.set_title(f"{count(len(info.completed), 'completed trial')}, one seed each", fontsize=10)
    axes.set_xlabel("score, and the hyperparameters that led to it")
    axes.set_ylabel(style.plain_text(info.score))
    lines = axes.collections[0]
    lines.set(
        linewidth=0.9, clim=info.completed["score"].quantile([0.05, 0.95])
    )  # an outlier takes no colours
    lines.set_rasterized(len(info.completed) > MANY)
    for axis in figure.axes:
        axis.grid(visible=False)
        axis.yaxis.set_minor_formatter(NullFormatter())
        for label in axis.get_yticklabels():
            label.set_bbox(BLANK)
    return figure


PART = Part("Search (exploratory)", info, section, {"search_parallel": draw})
