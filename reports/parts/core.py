"""Mean score in each cell of the factorial core, as a heat map."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from adalayers.results.study_file import Factor
from reports.drawing import style
from reports.drawing.pieces import heat_map, unit_below
from reports.drawing.style import new_figure, plain_text, say_empty
from reports.evidence.evidence import Evidence
from reports.parts.part import Part, figure_link
from reports.reading.factors import Level, cell_names, column, label, level, level_name, levels, short
from reports.reading.frames import records
from reports.words.text import escape, several

NO_CORE = "Nothing to draw: no completed trials in the factorial core."
SPANS = 4
"""Pooled standard deviations of one score that the colours of a heat map span at least."""


@dataclass(frozen=True)
class Info:
    """Columns are the levels of the first factor, rows the cells of all others.

    core: as from `tables.core`; cells: (row, column) -> its row of `core`
    """

    core: pd.DataFrame
    factors: tuple[Factor, ...]
    columns: tuple[Level, ...]
    rows: tuple[str, ...]
    cells: dict[tuple[str, Level], dict]
    score: str
    split: str
    spread: float | None


def info(evidence: Evidence) -> Info | None:
    core, factors = evidence.core, evidence.plan.factors
    if core.empty:
        return None
    first = column(factors[0].name)
    names = cell_names(core, factors[1:])
    cells = {
        (name, value): row
        for name, row in zip(names, records(core), strict=True)
        if (value := level(row[first])) is not None
    }
    rows, columns = evidence.lines if len(factors) > 1 else ("",), tuple(levels(core[first]))
    return Info(core, factors, columns, rows, cells, evidence.scored, evidence.split_name, evidence.spread)


def section(info: Info) -> list[str]:
    over = [short(factor) for factor in info.factors]
    return [
        f"Mean {info.split} score over {several(map(escape, over))}, all else alike; each cell is an arm, whose "
        "interval stands under *Arms*.",
        figure_link("core_heatmap", f"Mean score over {several(over)}, a cell per arm"),
    ]


def draw(info: Info) -> Figure:
    """Mean score in each cell of the factorial core, with n."""
    figure = new_figure(1.6 + 0.75 * max(len(info.rows), 2))
    axes = figure.add_subplot()
    if info.core["mean"].notna().sum() == 0:
        say_empty(axes, NO_CORE)
        return figure
    grid = np.full((len(info.rows), len(info.columns)), np.nan)
    counts = np.zeros(grid.shape, dtype=int)
    for (name, value), row in info.cells.items():
        yx = info.rows.index(name), info.columns.index(value)
        grid[yx], counts[yx] = row["mean"], row["n"]
    low, high = np.nanmin(grid), np.nanmax(grid)
    # Noise is not painted: the colours span at least a few of its standard deviations.
    least = SPANS * info.spread if info.spread and info.spread > 1e-9 else 1.0 if high - low < 1e-9 else 0.0
    if high - low < least:
        low, high = (low + high - least) / 2, (low + high + least) / 2
    texts = [
        [f"{'no result' if np.isnan(grid[yx]) else f'{grid[yx]:.3f}'}\nn = {counts[yx]}" for yx in row]
        for row in ([(y, x) for x in range(len(info.columns))] for y in range(len(info.rows)))
    ]
    image = heat_map(axes, grid, texts, low, high, fontsize=10)
    style.name_ticks(axes, [level_name(value) for value in info.columns], axis="x")
    axes.set_xlabel(plain_text(label(info.factors[0])))
    others = info.factors[1:]
    if len(others) == 1:
        row_levels = levels(info.core[column(others[0].name)])
        style.name_ticks(axes, [level_name(value) for value in row_levels], axis="y")
        axes.set_ylabel(plain_text(label(others[0])))
    else:
        style.name_ticks(axes, info.rows, axis="y")
        axes.set_ylabel(plain_text(", ".join(short(factor) for factor in others) or "core"))
    bar = figure.colorbar(image, ax=axes)
    bar.set_label(unit_below(f"mean {info.score}"))
    return figure


PART = Part("The factorial core", info, section, {"core_heatmap": draw})
