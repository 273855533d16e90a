"""What the search shows, drawn: importances, the surface over two hyperparameters, parallel coordinates."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from reports.drawing import style
from reports.drawing.pieces import BLANK, heat_map, legend_right, tick, unit_below
from reports.drawing.style import COLOURS, HATCHES, new_figure, plain_text, say_empty, styled
from reports.evidence.importances import FEWEST
from reports.reading.frames import records
from reports.reading.space import Domain, numeric
from reports.words.labels import label, short

NO_IMPORTANCES = f"Nothing to draw: fewer than {FEWEST} completed search trials with different scores."
NO_SURFACE = "Nothing to draw: no completed search trials over two hyperparameters."
NO_POINTS = "Nothing to draw: no completed search trials."
ROLES = ("scientific", "nuisance", "searched")
BEST = 5
"""Trials drawn apart from the rest."""


@styled
def importances(table: pd.DataFrame) -> Figure:
    """Share of importance of each hyperparameter with its spread; `table` as from `importances.importances`."""
    figure = new_figure(1.6 + 0.42 * max(len(table), 2))
    axes = figure.add_subplot()
    if table.empty:
        say_empty(axes, NO_IMPORTANCES)
        return figure
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
    style.name_ticks(axes, [short(f"config/{name}") for name in table["name"]], axis="y")
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


@styled
def surface(cells: pd.DataFrame, x: Domain | None, y: Domain | None, score: str) -> Figure:
    """Mean score of completed search trials in each cell, with n; `cells` as from `surfaces.surface`."""
    xs, ys = list(dict.fromkeys(cells["x"])), list(dict.fromkeys(cells["y"]))
    figure = new_figure(1.7 + 0.52 * max(len(ys), 3))
    axes = figure.add_subplot()
    if x is None or y is None or cells["mean"].notna().sum() == 0:
        say_empty(axes, NO_SURFACE)
        return figure
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
    axes.set_xlabel(plain_text(label(f"config/{x.name}")))
    axes.set_ylabel(plain_text(unit_below(label(f"config/{y.name}"))))
    bar = figure.colorbar(image, ax=axes)
    bar.set_label(unit_below(f"mean {score}"))
    axes.set_title("hatched: no completed trial", loc="left", fontsize=9, color="0.3")
    return figure


@styled
def parallel(points: pd.DataFrame, space: Sequence[Domain], score: str, mode: str = "max") -> Figure:
    """A line per completed search trial across its hyperparameters to its score; the best ones apart.

    points: as from `importances.search_points`.
    """
    figure = new_figure(4.3)
    axes = figure.add_subplot()
    done = points[points["status"] == "completed"]
    if done.empty or not space:
        say_empty(axes, NO_POINTS)
        return figure
    scores = done["score"].to_numpy(dtype=float)
    low, high = (scores.min(), scores.max()) if np.ptp(scores) > 1e-12 else (scores[0] - 0.5, scores[0] + 0.5)
    scaled = [_scaled(done[domain.name], domain) for domain in space]
    lines = np.column_stack([*scaled, (scores - low) / (high - low)])  # [trials, axes]
    order = np.argsort(-scores if mode == "min" else scores, kind="stable")  # best last, on top
    x = np.arange(lines.shape[1])
    segments = [np.column_stack([x, lines[i]]) for i in order]
    # Hundreds of lines are a picture, not a drawing: in the SVG they are one image.
    many = LineCollection(
        segments, cmap=_PALE, norm=Normalize(low, high), linewidths=0.9, rasterized=True, zorder=1
    )
    many.set_array(scores[order])
    axes.add_collection(many)
    best = min(BEST, len(order))
    for place, i in enumerate(order[::-1][:best]):
        marker, line = style.pick(style.MARKERS, place), style.pick(style.LINES, place)
        axes.plot(
            x, lines[i], color="black", linestyle=line, marker=marker, markersize=5, linewidth=1.3, zorder=3
        )
    for at, domain in enumerate(space):
        _axis(axes, at, domain)
    _end_axis(axes, len(space), low, high)
    axes.set_xlim(-0.35, len(space) + 0.45)
    axes.set_ylim(-0.06, 1.06)
    axes.set_yticks([])
    axes.grid(visible=False)
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
    names = [label(f"config/{domain.name}") + (", log" if domain.log else "") for domain in space]
    style.name_ticks(axes, [_wrapped(name) for name in [*names, score]], axis="x")
    axes.tick_params(axis="x", length=0, labelsize=8)
    axes.set_xlabel("hyperparameter, and the score it led to")
    axes.set_ylabel("each axis on its own scale")
    handles = [
        Line2D(
            [],
            [],
            color="black",
            linestyle=style.pick(style.LINES, place),
            marker=style.pick(style.MARKERS, place),
            markersize=5,
            label=f"{scores[i]:.3f}",
        )
        for place, i in enumerate(order[::-1][:best])
    ]
    handles.append(Line2D([], [], color="0.7", label="others, darker\nis higher"))
    legend_right(figure, handles, f"{len(done)} completed trials,\none seed each;\nthe best {best}:")
    return figure


_PALE = mpl.colors.LinearSegmentedColormap.from_list("pale", ["#DCE6F0", "#3B78B5"])


def _scaled(values: pd.Series, domain: Domain) -> np.ndarray:
    """Return values as heights 0 to 1 on the domain's own scale; choices evenly spaced."""
    if domain.choices:
        ordered = numeric(domain.choices)
        if ordered is not None:
            places = np.array([ordered.index(float(value)) for value in values], dtype=float)
        else:
            places = np.array([domain.choices.index(str(value)) for value in values], dtype=float)
        return places / (len(domain.choices) - 1)
    known = values.to_numpy(dtype=float)
    low, high = domain.low, domain.high
    if domain.log:
        known, low, high = np.log(known), np.log(low), np.log(high)
    return np.clip((known - low) / (high - low), 0, 1)


def _axis(axes: Axes, at: int, domain: Domain) -> None:
    """Draw one vertical axis with its values."""
    if domain.choices:
        ordered = numeric(domain.choices)
        names = list(domain.choices) if ordered is None else [tick(value) for value in ordered]
        marks = [(place / (len(names) - 1), name) for place, name in enumerate(names)]
    else:
        make: Any = np.geomspace if domain.log else np.linspace
        marks = [(place / 4, tick(value)) for place, value in enumerate(make(domain.low, domain.high, 5))]
    _rule(axes, at, marks)


def _end_axis(axes: Axes, at: int, low: float, high: float) -> None:
    _rule(axes, at, [(place / 4, f"{value:.3f}") for place, value in enumerate(np.linspace(low, high, 5))])


def _rule(axes: Axes, at: int, marks: Sequence[tuple[float, str]]) -> None:
    axes.plot([at, at], [0, 1], color="0.25", linewidth=1, zorder=2)
    for height, name in marks:
        axes.plot([at - 0.02, at + 0.02], [height, height], color="0.25", linewidth=1, zorder=2)
        axes.text(
            at + 0.04,
            height,
            plain_text(name),
            va="center",
            ha="left",
            fontsize=8,
            color="0.15",
            zorder=4,
            bbox=BLANK,
        )


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 17)
