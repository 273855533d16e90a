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
from matplotlib.transforms import Bbox

from reports.drawing.pieces import legend_right
from reports.drawing.style import plain_text
from reports.reading.frames import records

APART = 14.0
"""Pixels between points below which they share one text of numbers."""
DIGIT, TALL, POINT = 7.5, 13.0, 5.0
"""Pixels: width of a digit, height of a text of numbers, half the width of a point."""
SIDES, RISES = ((1, 1), (1, 0), (0, 1), (0, 0)), (0, 1, -1, 2, -2, 3)
"""Where numbers may stand: right or left and above or below, and so many lines further; the first that covers nothing
is taken."""
MAX_NAMES_BESIDE, LEGEND_COLUMNS = 12, 3
"""Numbered names that stand beside the panels; more stand below them, in so many columns."""


def cost_panel(
    axes: Axes, arms: pd.DataFrame, cost: str, front: Sequence[str], looks: Mapping[str, tuple[str, str]]
) -> None:
    """Draw the score of arms against a cost.

    Args:
        axes: Drawn on.
        arms: With arm, score, kind and the column `cost`.
        cost: On a logarithmic scale where all are above 0.
        front: Arms joined by a line, by rising cost.
        looks: Kind -> colour and marker.
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


def number_points(axes: Axes, arms: pd.DataFrame, cost: str, names: Sequence[str]) -> None:
    """Write beside points which of `names` they are, from 1 on; the figure must be laid out by then."""
    costed = arms.dropna(subset=[cost, "score"])
    pixels: Any = axes.transData.transform(costed[[cost, "score"]].to_numpy(float)) if len(costed) else []
    near: list[tuple[Any, list[int]]] = []
    for point, name in zip(pixels, costed["arm"], strict=True):
        if name in names:
            numbers = next((of for first, of in near if (abs(point - first) < APART).all()), None)
            if numbers is None:
                numbers = []
                near.append((point, numbers))
            numbers.append(list(names).index(name) + 1)
    points = [Bbox.from_extents(x - POINT, y - POINT, x + POINT, y + POINT) for x, y in pixels]
    taken: list[Bbox] = []
    for (x, y), numbers in near:
        text = ", ".join(map(str, sorted(numbers)))
        places = [_place(x, y, side, rise, DIGIT * len(text)) for rise in RISES for side in SIDES]
        others = [
            *taken,
            *(box for box in points if abs(box.x0 + POINT - x) >= APART or abs(box.y0 + POINT - y) >= APART),
        ]
        free = [box for box in places if not box.count_overlaps(others) and axes.bbox.fully_containsx(box.x0)]
        box = next(iter(free), places[0])
        taken.append(box)
        to_data: Any = axes.transData.inverted().transform
        line = (
            {"arrowstyle": "-", "color": "0.6", "linewidth": 0.6}
            if abs(box.y0 + TALL / 2 - y) > TALL
            else None
        )
        how: dict[str, Any] = {"fontsize": 9, "va": "bottom", "arrowprops": line, "zorder": 4}
        axes.annotate(text, to_data((x, y)), to_data((box.x0, box.y0)), **how).set_in_layout(False)


def _place(x: float, y: float, side: tuple[int, int], rise: int, width: float) -> Bbox:
    """Return the pixels of a text beside a point at x, y: to its right or left, above or below, so many lines away."""
    right, up = side
    left = x + POINT + 2 if right else x - POINT - 2 - width
    return Bbox.from_bounds(left, y + (2 if up else -2 - TALL) + rise * TALL, width, TALL)


def legend_height(names: Sequence[str]) -> float:
    """Return the inches that a legend below the panels takes; 0 for one to their right."""
    return 0.75 + 0.26 * len(names) / LEGEND_COLUMNS if len(names) > MAX_NAMES_BESIDE else 0.0


def front_legend(figure: Figure, looks: Mapping[str, tuple[str, str]], names: Sequence[str]) -> None:
    """Say what the kinds, the line and the numbers are: to the right of the panels, of many arms below them."""
    handles = [
        Line2D([], [], color=colour, marker=marker, linestyle="none", label=kind)
        for kind, (colour, marker) in looks.items()
    ]
    handles.append(Line2D([], [], color="0.4", linewidth=1.0, label="front: none is better\nand cheaper"))
    for number, name in enumerate(names, start=1):
        label = plain_text(textwrap.fill(f"{number}: {name}", 38))
        handles.append(Line2D([], [], linestyle="none", label=label))
    if len(names) <= MAX_NAMES_BESIDE:
        legend_right(figure, handles, "means over seeds")
        return
    below: dict[str, Any] = {"loc": "outside lower center", "ncols": LEGEND_COLUMNS, "columnspacing": 1.0}
    figure.legend(handles=handles, title="means over seeds", frameon=False, alignment="left", **below)
