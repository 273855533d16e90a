"""Every completed search trial across its hyperparameters to its score: Optuna's own figure."""

from __future__ import annotations

import sys
import textwrap
import warnings
from dataclasses import dataclass

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from reports.drawing import style
from reports.drawing.pieces import BLANK
from reports.drawing.style import styled
from reports.evidence.evidence import Evidence
from reports.evidence.importances import FEWEST, rebuilt_study
from reports.parts.part import Part, figure_link
from reports.reading.load import Plan
from reports.reading.space import Domain
from reports.words.text import count

MANY = 500
"""Most lines that are drawn one by one in an SVG: beyond that, they are one image."""


@dataclass(frozen=True)
class Info:
    """completed: the completed rows of `importances.search_points`; score: the label of the selection score."""

    completed: pd.DataFrame
    space: tuple[Domain, ...]
    plan: Plan
    score: str


def info(evidence: Evidence) -> Info | None:
    """None with few completed trials, of which the table is the better picture, and over one hyperparameter."""
    completed = evidence.points[evidence.points["status"] == "completed"]
    space = tuple(evidence.space[0])
    if evidence.searches > 1 or len(completed) < FEWEST or len(space) < 2:
        return None
    return Info(completed, space, evidence.plan, evidence.chosen)


def section(info: Info) -> list[str]:
    return [
        f"A line per completed trial ({len(info.completed)}), from its score to its hyperparameters:",
        figure_link("search_parallel", "Completed search trials across their hyperparameters"),
    ]


@styled
def draw(info: Info) -> Figure:
    """Draw Optuna's parallel coordinates, with this report's names and readable numbers on its axes."""
    if "matplotlib.pyplot" not in sys.modules:
        mpl.use("agg")  # Optuna draws with pyplot, which would look for a window
    from matplotlib import pyplot
    from optuna.visualization.matplotlib import plot_parallel_coordinate

    study = rebuilt_study(info.completed, info.space, info.plan)
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
