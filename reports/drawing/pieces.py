"""Pieces that several figures draw alike: a point with its interval, a legend, a labelled heat map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle

from reports.drawing.style import plain_text

BLANK = {"facecolor": "white", "edgecolor": "none", "pad": 0.4}
"""A ground for numbers, so that no line runs through them."""


def point(
    axes: Axes, x: float, y: float, low: float, high: float, colour: str, marker: str, *, along: str
) -> None:
    """Draw one point with its interval along "x" or "y", hollow where it has none."""
    if np.isnan(x) or np.isnan(y):
        return
    has_interval = not (np.isnan(low) or np.isnan(high))
    if has_interval:
        middle = x if along == "x" else y
        bars: dict[str, Any] = {f"{along}err": [[max(0.0, middle - low)], [max(0.0, high - middle)]]}
        axes.errorbar(x, y, **bars, color=colour, linewidth=1.2, capsize=3, zorder=2)
    fill = colour if has_interval else "white"
    axes.plot([x], [y], marker=marker, color=colour, markerfacecolor=fill, linestyle="none", zorder=3)


def heat_map(
    axes: Axes,
    shades: np.ndarray,
    texts: Sequence[Sequence[str]],
    low: float,
    high: float,
    fontsize: float = 9,
) -> AxesImage:
    """Draw a cell per value of `shades` [rows, columns], its text on it; cells without a value are hatched.

    One hue from light to dark, so that the order survives a black and white printer.
    """
    colours = mpl.colormaps["Blues"].with_extremes(bad="white")
    image = axes.imshow(np.ma.masked_invalid(shades), cmap=colours, vmin=low, vmax=high, aspect="auto")
    centred: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": fontsize}
    hatched: dict[str, Any] = {"facecolor": "none", "edgecolor": "0.8", "hatch": "///", "linewidth": 0}
    for (y, x), value in np.ndenumerate(shades):
        if np.isnan(value):
            axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, **hatched))
            axes.text(x, y, texts[y][x], **centred, **({"bbox": BLANK} if texts[y][x] else {}))
        else:
            dark = high > low and (value - low) / (high - low) > 0.65
            axes.text(x, y, texts[y][x], color="white" if dark else "black", **centred)
    axes.grid(visible=False)
    return image


def legend_right(figure: Figure, handles: Sequence[Artist], title: str) -> None:
    figure.legend(handles=handles, loc="outside right upper", title=title, frameon=False, alignment="left")


def seeds_text(counts: pd.Series) -> str:
    """Return "n = 5 seeds", or "n = 3 to 5 seeds" where arms differ."""
    low, high = int(counts.min()), int(counts.max())
    return f"n = {high} seed{'s' * (high != 1)}" if low == high else f"n = {low} to {high} seeds"


def brief(layer: str) -> str:
    """Return a layer's name as short as a tick wants it."""
    return layer.removeprefix("layer ").replace("embeddings", "emb.")


def unit_below(label: str) -> str:
    """Return a label with its unit on a line of its own; data in it draws no mathematics."""
    return plain_text(label).replace(" (", "\n(")
