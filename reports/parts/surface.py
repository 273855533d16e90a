"""The mean score of completed search trials over two hyperparameters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from reports.drawing import style
from reports.drawing.pieces import heat_map, unit_below
from reports.drawing.style import new_figure, plain_text, styled
from reports.evidence import surfaces
from reports.evidence.evidence import Evidence
from reports.parts.part import Part, figure_link
from reports.reading.frames import records
from reports.reading.load import Plan
from reports.reading.space import Domain
from reports.words.text import NONE, escape, folded, number, table

FILLED = 0.5
"""Share of cells with a trial below which no surface is shown."""


@dataclass(frozen=True)
class Info:
    """axes: the two hyperparameters, x first; cells: as from `surfaces.surface`."""

    axes: tuple[Domain, Domain]
    cells: pd.DataFrame
    plan: Plan
    score: str


def info(evidence: Evidence) -> Info | None:
    """None where most cells would be empty: what is left of a surface then is a list of trials."""
    if evidence.searches > 1:
        return None
    axes = surfaces.two_factors(evidence.space[0])
    if axes is None:
        return None
    cells = surfaces.surface(evidence.points, *axes)
    if (cells["n"] > 0).mean() < FILLED:
        return None
    return Info(axes, cells, evidence.plan, evidence.chosen)


def section(info: Info) -> list[str]:
    drawn = figure_link(
        "search_surface", "Mean validation score of completed search trials over two hyperparameters"
    )
    x, y = info.axes
    cells = {(row["x"], row["y"]): (row["mean"], row["n"]) for row in records(info.cells)}
    xs, ys = (list(dict.fromkeys(info.cells[name])) for name in ("x", "y"))

    def cell(at: tuple[str, str]) -> str:
        mean, n = cells[at]
        return f"{number(mean)} (n = {n})" if n else NONE

    grid = table(
        [f"{escape(info.plan.short(y.name))} ↓, {escape(info.plan.short(x.name))} →", *map(escape, xs)],
        [[escape(name), *(cell((column, name)) for column in xs)] for name in ys],
    )
    return [
        "Each cell is the mean over its completed trials (n), whatever their other hyperparameters, one seed "
        "each, no interval: where n is small it shows those others as much as the two named here. Cells "
        "without a trial stay empty; nothing is interpolated.",
        drawn,
        folded("The surface as a table", len(ys) + 6, grid),
    ]


@styled
def draw(info: Info) -> Figure:
    """Mean score of completed search trials in each cell, with n."""
    cells = info.cells
    xs, ys = list(dict.fromkeys(cells["x"])), list(dict.fromkeys(cells["y"]))
    figure = new_figure(1.7 + 0.52 * max(len(ys), 3))
    axes = figure.add_subplot()
    grid = cells["mean"].to_numpy(dtype=float).reshape(len(xs), len(ys)).T
    counts = cells["n"].to_numpy(dtype=int).reshape(len(xs), len(ys)).T
    low, high = np.nanmin(grid), np.nanmax(grid)
    if high - low < 1e-9:
        low, high = low - 0.5, high + 0.5
    texts = [
        [f"{value:.3f}\nn = {n}" if n else "" for value, n in zip(*line, strict=True)]
        for line in zip(grid, counts, strict=True)
    ]
    image = heat_map(axes, grid, texts, low, high, fontsize=8.5)
    style.name_ticks(axes, [name.replace(" to ", "\nto ") for name in xs], axis="x")
    style.name_ticks(axes, ys, axis="y")
    axes.set_xlabel(plain_text(info.plan.label(info.axes[0].name)))
    axes.set_ylabel(plain_text(unit_below(info.plan.label(info.axes[1].name))))
    bar = figure.colorbar(image, ax=axes)
    bar.set_label(unit_below(f"mean {info.score}"))
    axes.set_title("hatched: no completed trial", loc="left", fontsize=9, color="0.3")
    return figure


PART = Part("Where the search went", info, section, {"search_surface": draw})
