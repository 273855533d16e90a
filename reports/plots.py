"""The figures of a report: how they look, and the six of which all are made, each drawing a tidy frame on axes.

Columns have one name in all of them: `mean`, `low`, `high` (NaN: no interval, and a hollow point), `series` (whose look
a row has). Figures are read at 600 pixels. Colours are those of `palette`, told apart by most
eyes; marker and line tell the same in black and white.
"""

from __future__ import annotations

import contextlib
import math
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from adalayers.escaping import plain
from adalayers.results.palette import COLOURS
from reports.reading.factors import level_name, levels, numeric
from reports.reading.frames import records
from reports.words import cut

WIDTH = 7.0
"""Inches; at 600 pixels 10 points are still text."""
RC: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.labelsize": 10,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.fontsize": 9,
    "legend.title_fontsize": 9,
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
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINES: tuple[Any, ...] = ("-", "--", ":", "-.", (0, (6, 1, 1, 1, 1, 1)))
GREY = "0.35"
LONGEST = 200
"""Characters beyond which a text in a figure is cut."""
BLANK = {"facecolor": "white", "edgecolor": "none", "pad": 0.4}
"""A ground for numbers, so that no line runs through them."""


class Look(NamedTuple):
    """How a series is drawn."""

    colour: str
    marker: str = "o"
    line: Any = "-"


UNDECIDED = Look("#777777", "d")
Looks = Mapping[Any, Look]


def look(place: int) -> Look:
    """Return the look of the series at a place; no two of the first 112 share colour and marker."""
    return Look(*(options[place % len(options)] for options in (COLOURS, MARKERS, LINES)))


def looks_of(names: Iterable[Any]) -> dict[Any, Look]:
    """Return name -> look, by their order."""
    return {name: look(place) for place, name in enumerate(dict.fromkeys(names))}


@contextlib.contextmanager
def own_style() -> Iterator[None]:
    """Draw with these settings alone, whatever a matplotlibrc says, and leave matplotlib's own as they were."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(RC)
        yield


styled = own_style()
"""Decorator: draw so."""


def plain_text(text: object) -> str:
    """Return text from data such that no dollar sign in it starts mathematics, and no control character is drawn."""
    return cut(plain(text), LONGEST).replace("$", r"\$")


def panels(
    titles: Sequence[str], height: float, *, x: str = "", y: str = "", most: int = 3, share: bool = True
) -> tuple[Figure, list[Axes]]:
    """Return a figure with a panel per title, at most so many beside each other, labelled at its outer edges.

    Args:
        titles: Of the panels.
        height: Of a row of them, in inches.
        x: What the axes along x show; y: along y.
        most: Panels in a row.
        share: Whether all have the same axes.
    """
    across = max(1, min(len(titles), most))
    down = math.ceil(len(titles) / across)
    figure = Figure(figsize=(WIDTH, 0.4 + height * max(1, down)), layout="constrained")
    grid = figure.subplots(down, across, sharex=share, sharey=share, squeeze=False)
    for spare in grid.flat[len(titles) :]:
        spare.set_axis_off()
    shown: list[Axes] = list(grid.flat[: len(titles)])
    for place, (axes, title) in enumerate(zip(shown, titles, strict=True)):
        axes.set_title(textwrap.fill(plain_text(title), 78 // across))
        lowest = place + across >= len(titles)
        axes.set_xlabel(_wrapped(x, 84 // across), visible=lowest)
        axes.tick_params(labelbottom=lowest or not share)
        axes.set_ylabel(_wrapped(y, int(12 * height)), visible=place % across == 0)
    return figure, shown


def single(height: float, x: str, y: str) -> tuple[Figure, Axes]:
    """Return a figure of one panel."""
    figure, (axes,) = panels([""], height - 0.4, x=x, y=y)
    return figure, axes


def legend(
    figure: Figure, entries: Mapping[Any, Look | Artist], title: str = "", *, lines: bool = True
) -> None:
    """Say below a figure what its looks are; one entry alone needs no name, `title` stays.

    lines: whether series are joined by lines
    """
    artists: list[Artist] = []
    for name, how in entries.items():
        if isinstance(how, Look):
            line: Any = how.line if lines else "none"
            how = Line2D([], [], color=how.colour, marker=how.marker, linestyle=line)
        how.set_label(textwrap.fill(plain_text(name), 60))
        artists.append(how)
    longest = max((len(str(artist.get_label())) for artist in artists), default=1)
    columns = max(1, min(len(artists), 88 // (min(longest, 60) + 7)))
    figure.set_figheight(figure.get_figheight() + 0.2 * (math.ceil(len(artists) / columns) + bool(title)))
    figure.legend(
        handles=artists, loc="outside lower center", ncols=columns, title=plain_text(title), frameon=False
    )


def name_ticks(axes: Axes, values: Iterable[object], *, axis: str) -> None:
    """Put one tick and its name at 0, 1, 2... on an axis of categories."""
    # No line ends within "α = 64".
    names = [textwrap.fill(plain_text(value).replace(" = ", "\u00a0=\u00a0"), 44) for value in values]
    (axes.set_xticks if axis == "x" else axes.set_yticks)(range(len(names)), names)
    longest = max((len(line) for name in names for line in name.split("\n")), default=0)
    spec = axes.get_subplotspec()
    # They would overlap.
    if axis == "x" and len(names) * longest > 66 / (spec.get_gridspec().ncols if spec else 1):
        for tick in axes.get_xticklabels():
            tick.set(rotation=30, horizontalalignment="right")


def seeds_text(counts: pd.Series) -> str:
    """Return "n = 5 seeds", or "n = 3 to 5 seeds" where arms differ."""
    low, high = int(counts.min()), int(counts.max())
    return f"n = {high} seed{'s' * (high != 1)}" if low == high else f"n = {low} to {high} seeds"


def point(axes: Axes, x: float, y: float, low: float, high: float, look: Look, *, along: str = "y") -> None:
    """Draw one point with its interval along "x" or "y", hollow where it has none."""
    if np.isnan(x) or np.isnan(y):
        return
    middle, has_interval = (x if along == "x" else y), not (np.isnan(low) or np.isnan(high))
    if has_interval:
        bars: dict[str, Any] = {f"{along}err": [[max(0.0, middle - low)], [max(0.0, high - middle)]]}
        axes.errorbar(x, y, **bars, color=look.colour, linewidth=1.2, capsize=3, zorder=2)
    fill = look.colour if has_interval else "white"
    axes.plot(
        [x], [y], marker=look.marker, color=look.colour, markerfacecolor=fill, linestyle="none", zorder=3
    )


def points(
    frame: pd.DataFrame, axes: Axes, *, looks: Looks, scale: str = "choice", joined: bool = True
) -> None:
    """Draw a point per row of x, mean, low, high, series, its interval along y; series stand a little apart.

    scale:  "linear", "log", or "choice": levels of x side by side, as where x holds anything but numbers
    joined: whether a line runs through the points of a series
    """
    found = levels(frame["x"])
    numbers = numeric(found)
    if numbers is None or scale == "choice" or (scale == "log" and min(numbers, default=1.0) <= 0):
        scale, numbers = "choice", [float(place) for place in range(len(found))]
    where = np.log(numbers) if scale == "log" else np.array(numbers)
    gap, span = (float(np.diff(where).min()), float(np.ptp(where))) if len(where) > 1 else (1.0, 1.0)
    series = list(dict.fromkeys(frame["series"]))
    step = max(min(0.06 * gap, 0.4 * gap / len(series)), 0.008 * span) if len(series) > 1 else 0.0
    for index, name in enumerate(series):
        rows = frame[frame["series"] == name]
        keys = [levels([value])[0] for value in rows["x"]]
        at = where[[found.index(key) for key in keys]] + step * (index - (len(series) - 1) / 2)
        at = np.exp(at) if scale == "log" else at
        order = np.argsort(at, kind="stable")
        if joined:
            means = rows["mean"].to_numpy(dtype=float)[order]
            axes.plot(at[order], means, color=looks[name].colour, linestyle=looks[name].line, linewidth=1.3)
        for x, row in zip(at, records(rows), strict=True):
            point(axes, float(x), row["mean"], row["low"], row["high"], looks[name])
    if scale == "choice":
        name_ticks(axes, map(level_name, found), axis="x")
        axes.set_xlim(-0.5, len(found) - 0.5)
        return
    if scale == "log":
        axes.set_xscale("log", base=2)
        axes.xaxis.set_minor_locator(NullLocator())
    # What is measured, and no level, is long to write.
    if len(numbers) <= 7 and all(value == float(f"{value:.3g}") for value in numbers):
        axes.set_xticks(numbers)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))


def forest(frame: pd.DataFrame, axes: Axes, *, zone: float, looks: Looks) -> None:
    """Draw a row per row of name, mean, low, high, series: its mean with its interval, the first on top.

    Intervals that are much wider than the rest run out of the frame, and say so with an arrow.

    Args:
        frame: May have `values`, one per seed, drawn as dots.
        axes: Drawn on.
        zone: Half the width of the zone of no difference around 0.
        looks: Series -> look.
    """
    inner = [float(mean) for mean in frame["mean"].dropna()]
    for y, row in enumerate(records(frame)):
        how, values = looks[row["series"]], list(row.get("values", ()))
        spread = np.linspace(-0.22, 0.22, len(values)) if len(values) > 1 else np.zeros(len(values))
        axes.plot(values, y + spread, ".", color=how.colour, alpha=0.45, markersize=5, zorder=2)
        point(axes, row["mean"], y, row["low"], row["high"], how, along="x")
        inner += values
    axes.axvspan(-zone, zone, color="0.92", zorder=0)
    axes.axvline(0, color=GREY, linewidth=1, zorder=1)
    inner += [-1.5 * zone, 1.5 * zone]
    least, most = min(inner), max(inner)
    reach = 0.75 * max(most - least, 1e-9)
    left = max(least - reach, np.nanmin([least, *frame["low"].astype(float)]))
    right = min(most + reach, np.nanmax([most, *frame["high"].astype(float)]))
    margin = 0.06 * max(right - left, 1e-9)
    axes.set_xlim(left - margin, right + margin)
    for y, row in enumerate(records(frame)):
        for end, edge, marker in ((row["low"], left - margin, "<"), (row["high"], right + margin, ">")):
            if end < edge if marker == "<" else end > edge:
                colour = looks[row["series"]].colour
                axes.plot(edge, y, marker, color=colour, markersize=7, clip_on=False, zorder=4)
    name_ticks(axes, frame["name"], axis="y")
    axes.set_ylim(len(frame) - 0.4, -0.6)
    axes.xaxis.set_major_locator(MaxNLocator(5))


def curves(frame: pd.DataFrame, axes: Axes, *, looks: Looks | None = None) -> None:
    """Draw a line per series of step and mean, over its band from low to high where it has one.

    Markers are set so that lines that coincide show each other's.
    """
    looks = looks or looks_of(frame["series"])
    for index, (name, rows) in enumerate(frame.groupby("series", sort=False)):
        how, spacing = looks[name], max(1, len(rows) // 5)
        axes.plot(
            *(rows["step"], rows["mean"]),
            label=plain_text(name),
            color=how.colour,
            linestyle=how.line,
            marker=how.marker,
            markevery=(index * spacing // 3 % spacing, spacing),
            markersize=5,
            linewidth=1.4,
            zorder=3,
        )
        if "low" in rows:
            step, low, high = (rows[end].to_numpy(dtype=float) for end in ("step", "low", "high"))
            axes.fill_between(step, low, high, color=how.colour, alpha=0.15, linewidth=0, zorder=2)
    axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))


def heatmap(frame: pd.DataFrame, axes: Axes, *, texts: pd.DataFrame, high: float, fontsize: float) -> None:
    """Draw a cell per value of a wide frame with the text on it, light to dark from 0 to `high`.

    One hue, so that the order survives a black and white printer; cells without a value are hatched.
    """
    shades = frame.to_numpy(dtype=float)
    colours = mpl.colormaps["Blues"].with_extremes(bad="white")
    axes.imshow(np.ma.masked_invalid(shades), cmap=colours, vmin=0, vmax=high, aspect="auto")
    centred: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": fontsize}
    hatched: dict[str, Any] = {"facecolor": "none", "edgecolor": "0.8", "hatch": "///", "linewidth": 0}
    for (y, x), value in np.ndenumerate(shades):
        text = str(texts.iat[y, x])
        if np.isnan(value):
            axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, **hatched))
        dark = value / high > 0.65
        ground = {"bbox": BLANK} if np.isnan(value) and text else {}
        axes.text(x, y, text, color="white" if dark else "black", **centred, **ground)
    name_ticks(axes, (str(name).replace(" ", "\n") for name in frame.columns), axis="x")
    name_ticks(axes, frame.index, axis="y")
    axes.grid(visible=False)


def front(frame: pd.DataFrame, axes: Axes, *, looks: Looks) -> None:
    """Draw a point per row of cost, mean, series, and a line through the rows that are `on_front`.

    On a logarithmic scale where all costs are above 0 and differ by a factor of two. Rows that have a `number` show it;
    those that lie together share one text.
    """
    shown = frame.dropna(subset=["cost", "mean"])
    ahead = shown[shown["on_front"].astype(bool)].sort_values("cost")
    axes.plot(ahead["cost"], ahead["mean"], "-", color="0.4", linewidth=1.0, zorder=1)
    for row in records(shown):
        point(axes, row["cost"], row["mean"], row["mean"], row["mean"], looks[row["series"]])
    if len(shown) and shown["cost"].max() < 2 * shown["cost"].min():
        axes.xaxis.set_major_locator(MaxNLocator(4))
    elif len(shown) and (shown["cost"] > 0).all():
        axes.set_xscale("log")
        few = shown["cost"].max() < 100 * shown["cost"].min()  # too few powers of ten to read it by
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}".replace("e+", "e")))
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.margins(x=0.12, y=0.12)
    axes.autoscale_view()
    numbered = shown.dropna(subset=["number"])
    data = numbered[["cost", "mean"]].to_numpy(float)
    places = axes.transAxes.inverted().transform(axes.transData.transform(data))
    together: list[tuple[Any, Any, list[int]]] = []
    for xy, place, number in zip(data, places, numbered["number"].astype(int), strict=True):
        near = next((own for _, first, own in together if (abs(place - first) < 0.05).all()), [])
        if not near:
            together.append((xy, place, near))
        near.append(number)
    for xy, _, numbers in together:
        text = ", ".join(map(str, sorted(numbers)))
        beside = axes.annotate(text, xy, xytext=(5, 5), textcoords="offset points", fontsize=9, zorder=4)
        beside.set_in_layout(False)


def bars(frame: pd.DataFrame, axes: Axes, *, looks: Looks | None = None) -> None:
    """Draw a horizontal bar per row of name, mean, low, high, series, its value beside it, the first on top."""
    looks = looks or looks_of(frame["series"])
    for y, row in enumerate(records(frame)):
        axes.barh(y, row["mean"], height=0.62, color=looks[row["series"]].colour)
        point(axes, row["mean"], y, row["low"], row["high"], Look("black", ""), along="x")
        end = np.nanmax([row["high"], row["mean"]]), y
        text = f"{row['mean']:.2f}"
        axes.annotate(text, end, xytext=(5, 0), textcoords="offset points", va="center", fontsize=9)
    name_ticks(axes, frame["name"], axis="y")
    axes.set_ylim(len(frame) - 0.4, -0.6)
    axes.set_xlim(0, 1.15 * np.nanmax([1e-9, *frame["high"].astype(float), *frame["mean"].astype(float)]))
    axes.grid(visible=False, axis="y")


def marked(axes: Axes, value: float, text: str) -> None:
    """Draw a dashed line at a value of y, with its name."""
    axes.axhline(value, color=GREY, linestyle="--", linewidth=1, zorder=1)
    beside, across = text.replace(" ", "\n"), axes.get_yaxis_transform()
    axes.text(1.01, value, beside, transform=across, va="center", fontsize=8, color=GREY)


def at_least(axes: Axes, span: float) -> None:
    """Let the y axis span at least so much around its middle, so that noise stays small."""
    low, high = axes.get_ylim()
    if high - low < span:
        axes.set_ylim((low + high - span) / 2, (low + high + span) / 2)


def _wrapped(label: str, characters: int) -> str:
    """Return a label with its unit on a line of its own; data in it draws no mathematics."""
    name, _, unit = plain_text(label).partition(" (")
    return textwrap.fill(name, max(characters, 12)) + (f"\n({unit}" if unit else "")
