"""Curves: scores over training steps by arm, and scores over the number of training examples."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from reports.drawing import style
from reports.drawing.pieces import legend_right, point, seeds_text, unit_below
from reports.drawing.style import (
    COLOURS,
    LINES,
    MARKERS,
    levels,
    new_figure,
    pick,
    plain_text,
    say_empty,
    styled,
)
from reports.reading.frames import records
from reports.words.labels import LABELS

NO_CURVES = "Nothing to draw: no history of evaluations of confirmed arms."
NO_SIZES = "Nothing to draw: no confirmed trials at different numbers of training examples."
PER_PANEL = 6
REST = "other arms"
CONTROL = "control"


@styled
def learning_curves(curves: pd.DataFrame, arms: pd.DataFrame, label: str, control: str = "") -> Figure:
    """Mean best validation score so far against steps, a panel per alpha of the core, one for other arms.

    curves: as from `curves.learning_curves`; arms: as from `tables.arms`. Bands are 95% t intervals.
    """
    panels = _panels(arms[arms["arm"].isin(set(curves["arm"]))])
    if not panels:
        figure = new_figure(3.7)
        say_empty(figure.add_subplot(), NO_CURVES)
        return figure
    across = min(len(panels), 3)
    down = math.ceil(len(panels) / across)
    names = max(len(str(name)) for name in curves["arm"])
    columns = 4 if any(title.startswith("α") for title, _ in panels) or names < 20 else 2
    entries = (
        1 + max(len(of_panel) for _, of_panel in panels) + (len(panels[-1][1]) if len(panels) > 1 else 0)
    )
    figure = new_figure(1.0 + 2.2 * down + 0.2 * math.ceil(entries / columns))
    grid = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)
    looks = style.arm_styles(arms)
    weights = levels(arms.loc[arms["group"] == "core", "entropy_weight"])
    handles: dict[str, Line2D] = {}
    reference = curves[curves["arm"] == control]
    for axes, (title, of_panel) in zip(grid.flat, panels, strict=False):
        for place, arm in enumerate(records(of_panel)):
            colour, marker = looks[arm["arm"]]
            core = arm["group"] == "core" and arm["entropy_weight"] in weights
            line = pick(LINES, weights.index(arm["entropy_weight"]) if core else place + 3 * bool(weights))
            name = f"λ = {arm['entropy_weight']:g}" if core else plain_text(arm["arm"])
            _curve(axes, curves[curves["arm"] == arm["arm"]], colour, marker, line, place)
            handles.setdefault(name, Line2D([], [], color=colour, marker=marker, linestyle=line, label=name))
        if len(reference) and control not in set(of_panel["arm"]):
            axes.plot(reference["step"], reference["mean"], color="0.35", linewidth=0.9, zorder=1)
            handles.setdefault(CONTROL, Line2D([], [], color="0.35", linewidth=0.9, label=CONTROL))
        axes.set_title(plain_text(title), loc="left", fontsize=10)
    for spare in grid.flat[len(panels) :]:
        spare.set_axis_off()
    for place, axes in enumerate(grid.flat[: len(panels)]):
        axes.set_ylabel(unit_below(label))
        axes.set_xlabel(LABELS["step"])
        axes.yaxis.label.set_visible(place % across == 0)
        axes.xaxis.label.set_visible(place + across >= len(panels))
        axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
        axes.tick_params(labelbottom=place + across >= len(panels))
    low, top = curves["mean"].quantile(0.02), curves["mean"].max()
    if top - low > 1e-9:  # where the means are: a band of two seeds may be wider than the scale
        grid[0, 0].set_ylim(low - 0.15 * (top - low), top + 0.3 * (top - low))
    ordered = sorted(handles.values(), key=lambda handle: handle is handles.get(CONTROL))  # it comes last
    title = f"best score so far, mean and 95% band, {seeds_text(curves['n'])}"
    figure.legend(handles=ordered, loc="outside lower center", ncols=columns, title=title, frameon=False)
    return figure


@styled
def score_by_size(sizes: pd.DataFrame, label: str) -> Figure:
    """Mean score against the number of training examples, a line per kind of arm.

    sizes: as from `data_size.by_size`.
    """
    figure = new_figure(3.9)
    axes = figure.add_subplot()
    shown = sizes.dropna(subset=["mean"])
    if shown.empty:
        say_empty(axes, NO_SIZES)
        return figure
    handles = []
    lines = list(dict.fromkeys(shown["line"]))
    for place, name in enumerate(lines):
        rows = shown[shown["line"] == name].sort_values("examples")
        colour, marker, line = pick(COLOURS, place), pick(MARKERS, place), pick(LINES, place)
        x = rows["examples"] * 1.02 ** (
            place - (len(lines) - 1) / 2
        )  # apart, so that bars do not hide each other
        axes.plot(x, rows["mean"], color=colour, linestyle=line)
        for at, row in zip(x, records(rows), strict=True):
            point(axes, at, row["mean"], row["low"], row["high"], colour, marker, along="y")
        handles.append(Line2D([], [], color=colour, linestyle=line, marker=marker, label=plain_text(name)))
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    known = levels(shown["examples"])
    if len(known) <= 8:
        axes.set_xticks(known)
    axes.xaxis.set_minor_locator(NullLocator())
    legend_right(figure, handles, seeds_text(shown["n"]))
    axes.set_xlabel("training examples (count), log scale")
    axes.set_ylabel(unit_below(label))
    return figure


def _panels(arms: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Return title and arms of each panel: the core by alpha, then all others, six at most in one."""
    core = arms[arms["group"] == "core"].dropna(subset=["alpha", "entropy_weight"])
    panels = [
        (f"α = {alpha:g}", core[core["alpha"] == alpha].sort_values("entropy_weight"))
        for alpha in levels(core["alpha"])
    ]
    rest = arms[~arms["arm"].isin(core["arm"])]
    for start in range(0, len(rest), PER_PANEL):
        panels.append((REST if panels else "arms", rest.iloc[start : start + PER_PANEL]))
    return panels


def _curve(axes: Axes, rows: pd.DataFrame, colour: str, marker: str, line: object, place: int) -> None:
    apart = max(1, len(rows) // 5)
    axes.plot(
        rows["step"],
        rows["mean"],
        color=colour,
        linestyle=line,
        marker=marker,
        markevery=(place * apart // 3 % apart, apart),  # lines that coincide show each other's markers
        markersize=5,
        linewidth=1.4,
        zorder=3,
    )
    axes.fill_between(
        rows["step"].to_numpy(dtype=float),
        rows["low"].to_numpy(dtype=float),
        rows["high"].to_numpy(dtype=float),
        color=colour,
        alpha=0.15,
        linewidth=0,
        zorder=2,
    )
