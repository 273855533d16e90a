"""How figures look: one colour per arm, and a marker, line or hatch next to every colour.

The colours are Okabe and Ito's, and two of Tol's, told apart by most eyes; in black and white the marker, the line
style or the hatch tells what the colour does. A core arm has the colour of its line (its levels of all factors but the
first), so that points of one arm look alike in every figure.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from adalayers.escaping import plain

WIDTH = 8.0
"""Inches: about the width of a page on GitHub at 110 dots per inch, so that 10 points read as text."""

RC: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.labelsize": 10,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.fontsize": 9,
    "axes.grid": True,
    "grid.color": "0.88",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 6.5,
    "savefig.facecolor": "white",
    "svg.hashsalt": "adalayers",  # the same figure is the same file
    "svg.fonttype": "none",  # text stays text: to be searched and read aloud, and a third of the size
}

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#661100", "#999933")
CONTROL = COLOURS[0]
"""Of the control, whose line is the first of the core, and of what stands for it."""
MARKERS = ("o", "s", "^", "D", "v", "P")
LINES: tuple[Any, ...] = ("-", "--", ":", "-.", (0, (6, 1, 1, 1, 1, 1)), (0, (1, 3)))
HATCHES = ("", "///", "xxx", "\\\\\\", "++", "--")

ROLES = {
    "published": ("#000000", "*"),
    "best": ("#8B3A8B", "X"),
    "uniform": ("#777777", "p"),
    "last": ("#A0722A", "h"),
}
OTHER = ("#444444", "d")

LONGEST = 200
"""Characters beyond which a text in a figure is cut."""

LEGEND_CHARACTERS = 80
"""Characters of names side by side along x above which they would overlap, so are written at an angle."""


@contextlib.contextmanager
def own_style() -> Iterator[None]:
    """Draw with these settings alone, whatever a matplotlibrc says, and leave matplotlib's own as they were."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(RC)
        yield


styled = own_style()
"""Decorator: draw so."""


def new_figure(height: float, width: float = WIDTH) -> Figure:
    """Return an empty figure of `width` x `height` inches that lays itself out."""
    return Figure(figsize=(width, height), layout="constrained")


def pick(options: tuple[Any, ...], position: int) -> Any:
    """Return the option for a position, starting again where there are more places than options."""
    return options[position % len(options)]


def look(position: int) -> tuple[str, str, Any]:
    """Return colour, marker and line for a position; where colours come again, with another marker and line."""
    again = position + position // len(COLOURS)
    return pick(COLOURS, position), pick(MARKERS, again), pick(LINES, again)


def arm_styles(arms: pd.DataFrame, lines: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return arm -> (colour, marker); `arms` has arm, role and line; `lines`: those of the core, in order.

    Without a core, arms of no known role take the colours of their places in the table.
    """
    styles: dict[str, tuple[str, str]] = {}
    others = 0
    for name, role, line in zip(arms["arm"], arms["role"], arms["line"], strict=True):
        if role == "core" and line in lines:
            styles[name] = look(lines.index(line))[:2]
        elif role in ROLES or lines:
            styles[name] = ROLES.get(role, OTHER)
        else:
            styles[name] = look(others)[:2]
            others += 1
    return styles


def plain_text(text: object) -> str:
    """Return text from data such that no dollar sign in it starts mathematics, and no control character is drawn."""
    clean = plain(text)
    return (clean if len(clean) <= LONGEST else clean[: LONGEST - 1] + "…").replace("$", r"\$")


def say_empty(axes: Axes, why: str) -> None:
    """Write why there is nothing to draw where the drawing would be."""
    axes.set_axis_off()
    axes.text(
        0.5, 0.5, why, ha="center", va="center", transform=axes.transAxes, fontsize=11, color="0.3", wrap=True
    )


def name_ticks(axes: Axes, values: Iterable[object], *, axis: str) -> None:
    """Put one tick and its name at 0, 1, 2... on an axis of categories."""
    names = [plain_text(value) for value in values]
    (axes.set_xticks if axis == "x" else axes.set_yticks)(range(len(names)), names)
    if (
        axis == "x"
        and len(names) * max((len(line) for name in names for line in name.split("\n")), default=0)
        > LEGEND_CHARACTERS
    ):
        axes.tick_params(axis="x", labelrotation=30)
        for tick in axes.get_xticklabels():
            tick.set_horizontalalignment("right")
