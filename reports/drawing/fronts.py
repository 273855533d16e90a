"""Scores against costs: a numbered point per arm, and the front of those that none beats in both as a line."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from reports.drawing.pieces import legend_right
from reports.drawing.style import plain_text
from reports.reading.frames import records

APART = 14.0
"""Pixels between points below which their numbers would cover each other."""


def cost_panel(
    axes: Axes,
    arms: pd.DataFrame,
    cost: str,
    front: Sequence[str],
    looks: Mapping[str, tuple[str, str]],
    names: Sequence[str],
) -> None:
    """Draw the score of arms against a cost.

    Args:
        axes: Drawn on.
        arms: With arm, score, kind and the column `cost`.
        cost: On a logarithmic scale where all are above 0.
        front: Arms joined by a line, by rising cost.
        looks: Kind -> colour and marker.
        names: Arms that are numbered by their place here.
    """
    costed = arms.dropna(subset=[cost, "score"])
    on_front = costed.set_index("arm").reindex(list(front))
    axes.plot(on_front[cost], on_front["score"], "-", color="0.4", linewidth=1.0, zorder=1)
    for row in records(costed):
        colour, marker = looks[row["kind"]]
        axes.plot(row[cost], row["score"], marker, color=colour, markersize=5.5, zorder=3)
    if (costed[cost] > 0).all() and len(costed):
        axes.set_xscale("log")
        few = costed[cost].max() < 100 * costed[cost].min()  # too few powers of ten to read it by
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}".replace("e+", "e")))
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.margins(x=0.12, y=0.1)
    axes.autoscale_view()
    for point, text in _labels(axes, costed[costed["arm"].isin(names)], cost, names):
        axes.annotate(text, point, xytext=(5, 4), textcoords="offset points", fontsize=9, zorder=4)


def _labels(
    axes: Axes, arms: pd.DataFrame, cost: str, names: Sequence[str]
) -> list[tuple[tuple[float, float], str]]:
    """Return where numbers stand and what they say: "2, 7" for points so near that theirs would cover each other."""
    pixels: Any = axes.transData.transform(arms[[cost, "score"]].to_numpy(float)) if len(arms) else []
    groups: list[tuple[Any, tuple[float, float], list[int]]] = []
    for point, row in zip(pixels, records(arms), strict=True):
        near = next((numbers for first, _, numbers in groups if (abs(point - first) < APART).all()), None)
        if near is None:
            near = []
            groups.append((point, (row[cost], row["score"]), near))
        near.append(names.index(row["arm"]) + 1)
    return [(point, ", ".join(map(str, sorted(numbers)))) for _, point, numbers in groups]


def front_legend(figure: Figure, looks: Mapping[str, tuple[str, str]], names: Sequence[str]) -> None:
    """Say what the kinds, the line and the numbers are."""
    handles = [
        Line2D([], [], color=colour, marker=marker, linestyle="none", label=kind)
        for kind, (colour, marker) in looks.items()
    ]
    handles.append(Line2D([], [], color="0.4", linewidth=1.0, label="front: none is better\nand cheaper"))
    for number, name in enumerate(names, start=1):
        label = plain_text(textwrap.fill(f"{number}: {name}", 34))
        handles.append(Line2D([], [], linestyle="none", label=label))
    legend_right(figure, handles, "means over seeds")
