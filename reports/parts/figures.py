"""Small tables -> figures: each takes the frame of a function in `tables` or `history_tables`.

Nothing here saves, shows, touches pyplot or changes its argument. Where there is nothing to draw, the
figure says why. Bars around a point are 95% t intervals over seeds; a point without a bar has none.
"""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from reports.drawing import style
from reports.drawing.pieces import BLANK, brief, heat_map, legend_right, point, seeds_text, unit_below
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

NO_CONFIRMED = "Nothing to draw: no completed trials of confirmed arms."
NO_CORE = "Nothing to draw: no completed trials in the factorial core."
NO_SEARCH = "Nothing to draw: no completed or stopped trials in the search stage."
NO_HISTORY = "Nothing to draw: no history of evaluations."
NO_WEIGHTS = "Nothing to draw: no history of learned mix weights."


@styled
def arm_scores(arms: pd.DataFrame, label: str, control: str = "") -> Figure:
    """Mean score of every arm with its interval, a row each; `arms` as from `tables.arms`."""
    shown = arms.dropna(subset=["mean"]).reset_index(drop=True)
    figure = new_figure(1.3 + 0.32 * max(len(shown), 4))
    axes = figure.add_subplot()
    if shown.empty:
        say_empty(axes, NO_CONFIRMED)
        return figure
    looks = style.arm_styles(arms)
    for place, row in enumerate(records(shown)):
        colour, marker = looks[row["arm"]]
        point(axes, row["mean"], place, row["low"], row["high"], colour, marker, along="x")
    for at in shown.loc[shown["arm"] == control, "mean"]:
        axes.axvline(at, color="0.3", linestyle="--", linewidth=1, zorder=0)
        above = axes.get_xaxis_transform()
        axes.text(at, 1.01, "control", ha="center", va="bottom", fontsize=8, color="0.3", transform=above)
    names = [f"{name}  (n = {n:.0f})" for name, n in zip(shown["arm"], shown["n"], strict=True)]
    style.name_ticks(axes, names, axis="y")
    axes.set_ylim(len(shown) - 0.3, -0.7)  # first arm on top
    axes.margins(x=0.06)
    axes.set_xlabel(plain_text(label))
    axes.set_ylabel("arm (n = completed seeds)")
    return figure


@styled
def core_heatmap(core: pd.DataFrame, label: str) -> Figure:
    """Mean score in each cell of the factorial core, with n; `core` as from `tables.core`."""
    alphas, weights = levels(core["alpha"]), levels(core["entropy_weight"])
    figure = new_figure(1.6 + 0.75 * max(len(weights), 2))
    axes = figure.add_subplot()
    if core["mean"].notna().sum() == 0:
        say_empty(axes, NO_CORE)
        return figure
    grid = np.full((len(weights), len(alphas)), np.nan)
    counts = np.zeros(grid.shape, dtype=int)
    for row in records(core):
        at = weights.index(row["entropy_weight"]), alphas.index(row["alpha"])
        grid[at], counts[at] = row["mean"], row["n"]
    low, high = np.nanmin(grid), np.nanmax(grid)
    if high - low < 1e-9:
        low, high = low - 0.5, high + 0.5
    texts = [
        [f"{'no result' if np.isnan(grid[at]) else f'{grid[at]:.3f}'}\nn = {counts[at]}" for at in row]
        for row in ([(y, x) for x in range(len(alphas))] for y in range(len(weights)))
    ]
    image = heat_map(axes, grid, texts, low, high, fontsize=10)
    style.name_ticks(axes, [f"{alpha:g}" for alpha in alphas], axis="x")
    style.name_ticks(axes, [f"{weight:g}" for weight in weights], axis="y")
    axes.set_xlabel(LABELS["alpha"])
    axes.set_ylabel(LABELS["entropy_weight"])
    bar = figure.colorbar(image, ax=axes)
    bar.set_label(unit_below(f"mean {label}"))
    return figure


@styled
def search_trials(search: pd.DataFrame, label: str) -> Figure:
    """Every trial of the search at its alpha, marked by its entropy weight; stopped ones hollow and small.

    `search` as from `tables.search`.
    """
    figure = new_figure(3.9)
    axes = figure.add_subplot()
    shown = search.dropna(subset=["alpha", "score"])
    shown = shown[shown["alpha"] > 0]
    if shown.empty:
        say_empty(axes, NO_SEARCH)
        return figure
    names = list(dict.fromkeys(shown.sort_values("entropy_weight")["band"]))
    for place, name in enumerate(names):
        colour, marker = pick(COLOURS, place), pick(MARKERS, place)
        of_band = shown[shown["band"] == name]
        for status, face, size in (("completed", colour, 52), ("stopped", "none", 26)):
            rows = of_band[of_band["status"] == status]
            axes.scatter(
                rows["alpha"],
                rows["score"],
                marker=marker,
                s=size,
                facecolors=face,
                edgecolors=colour,
                linewidths=1.2,
            )
    handles = [
        Line2D([], [], linestyle="none", marker=pick(MARKERS, i), color=pick(COLOURS, i), label=f"λ = {name}")
        for i, name in enumerate(names)
    ]
    grey: dict[str, Any] = {"linestyle": "none", "marker": "o", "color": "0.3"}
    handles += [Line2D([], [], **grey, label="filled: completed")]
    handles += [
        Line2D(
            [],
            [],
            **grey,
            markerfacecolor="none",
            markersize=4.5,
            label="hollow: stopped early\n(score so far)",
        )
    ]
    legend_right(figure, handles, "search trials, one seed each")
    _log_alpha(axes, levels(shown["alpha"]), tick_levels=False)
    axes.set_ylabel(unit_below(label))
    return figure


@styled
def score_by_alpha(core: pd.DataFrame, label: str) -> Figure:
    """Mean score against alpha, a line per entropy weight; `core` as from `tables.core`."""
    figure = new_figure(3.9)
    axes = figure.add_subplot()
    if core["mean"].notna().sum() == 0:
        say_empty(axes, NO_CORE)
        return figure
    _lines(figure, axes, core, f"core arms,\n{seeds_text(core['n'])}")
    axes.set_ylabel(unit_below(label))
    return figure


@styled
def convergence(by_arm: pd.DataFrame) -> Figure:
    """Median step of convergence against alpha, a line per entropy weight; bars: earliest to latest trial.

    `by_arm` as from `history_tables.convergence_by_arm`. A median that was not reached sits on the top
    edge with an upward triangle.
    """
    figure = new_figure(3.9)
    axes = figure.add_subplot()
    core = by_arm[(by_arm["group"] == "core") & (by_arm["n"] > 0)].dropna(subset=["alpha", "entropy_weight"])
    if core.empty:
        say_empty(axes, NO_HISTORY)
        return figure
    finite = core[["median", "low", "high"]].to_numpy(dtype=float)
    finite = finite[np.isfinite(finite)]
    top = 1.12 * finite.max() if finite.size else 1.0
    never = core["median"].map(np.isinf)
    drawn = core.assign(**{name: core[name].clip(upper=top) for name in ("low", "high")})
    drawn["mean"] = core["median"].mask(never)
    _lines(figure, axes, drawn, f"core arms,\n{seeds_text(core['n'])}")
    weights = levels(core["entropy_weight"])
    for row in records(core[never]):
        place = weights.index(row["entropy_weight"])
        x = row["alpha"] * _nudge(place, len(weights))
        axes.plot(
            [x], [top], marker=10, color=pick(COLOURS, place), markersize=10, linestyle="none", clip_on=False
        )
    if never.any():
        axes.text(
            0.01,
            0.93,
            "▲ not reached by half of the seeds or more",
            transform=axes.transAxes,
            va="top",
            fontsize=9,
        )
    axes.set_ylim(0, top * 1.04)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylabel("median step of convergence\n(training steps)")
    return figure


@styled
def mix_by_entropy_weight(mix: pd.DataFrame) -> Figure:
    """Entropy of p~ and live layers against the entropy weight, a line per alpha.

    `mix` as from `tables.mix_by_arm`.
    """
    figure = new_figure(4.0)
    core = mix[(mix["group"] == "core")].dropna(subset=["alpha", "entropy_weight"])
    core = core[(core["entropy_n"] > 0) | (core["live_n"] > 0)]
    if core.empty:
        say_empty(figure.add_subplot(), NO_CORE)
        return figure
    looks = style.arm_styles(mix)
    weights, alphas = levels(core["entropy_weight"]), levels(core["alpha"])
    panels = figure.subplots(1, 2)
    for axes, prefix, name in zip(
        panels, ("entropy_", "live_"), ("mix/entropy", "mix/live_layers"), strict=True
    ):
        for place, alpha in enumerate(alphas):
            rows = core[core["alpha"] == alpha].sort_values("entropy_weight")
            places = [weights.index(weight) for weight in rows["entropy_weight"]]
            at = np.array(places, dtype=float) + 0.07 * (place - (len(alphas) - 1) / 2)
            axes.plot(at, rows[f"{prefix}mean"], color="0.35", linestyle=pick(LINES, place), linewidth=1.2)
            for x, row in zip(at, records(rows), strict=True):
                colour, marker = looks[row["arm"]][0], pick(MARKERS, place)
                point(
                    axes,
                    x,
                    row[f"{prefix}mean"],
                    row[f"{prefix}low"],
                    row[f"{prefix}high"],
                    colour,
                    marker,
                    along="y",
                )
        style.name_ticks(axes, [f"{weight:g}" for weight in weights], axis="x")
        axes.set_xlim(-0.4, len(weights) - 0.6)
        axes.set_xlabel("entropy weight λ (no unit;\nin order, not to scale)")
        axes.set_ylabel(LABELS[name])
        highest = core[[f"{prefix}mean", f"{prefix}high"]].to_numpy(dtype=float)
        known = highest[np.isfinite(highest)]
        top = known.max() if known.any() else 1.0
        axes.set_ylim(-0.04 * top, 1.06 * top)  # room for points at 0
    panels[1].yaxis.set_major_locator(MaxNLocator(integer=True))
    handles = [
        Line2D(
            [], [], color="0.35", linestyle=pick(LINES, i), marker=pick(MARKERS, i), label=f"α = {alpha:g}"
        )
        for i, alpha in enumerate(alphas)
    ]
    legend_right(figure, handles, f"core arms,\n{seeds_text(core['entropy_n'])}")
    return figure


@styled
def mix_weights(weights: pd.DataFrame, title: str = "") -> Figure:
    """The mix weights p~ of one trial, a bar per layer; `weights` as from `history_tables.mix_weights`."""
    figure = new_figure(3.4)
    axes = figure.add_subplot()
    if weights.empty:
        say_empty(axes, NO_WEIGHTS)
        return figure
    places = np.arange(len(weights))
    axes.bar(places, weights["weight"], color=COLOURS[0], edgecolor="black", linewidth=0.6, width=0.75)
    even = 1 / len(weights)
    axes.axhline(even, color="0.3", linestyle="--", linewidth=1, label=f"uniform mix, 1/{len(weights)}")
    many = len(weights) > 10
    for x, weight in enumerate(weights["weight"]):
        if not many or weight >= even:
            above: dict[str, Any] = {"xytext": (0, 2), "textcoords": "offset points"}
            axes.annotate(
                f"{weight:.2f}", (x, weight), **above, ha="center", va="bottom", fontsize=8, bbox=BLANK
            )
    style.name_ticks(axes, [brief(name) for name in weights["layer"]], axis="x")
    axes.margins(y=0.12)
    # Above the bars: inside, it would sit on one of them wherever it went.
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0.2, frameon=False)
    axes.set_xlabel(LABELS["layer"])
    axes.set_ylabel(LABELS["mix/weight"])
    axes.grid(visible=False, axis="x")
    if title:
        axes.set_title(plain_text(title), loc="left")
    return figure


@styled
def mix_history(mix: pd.DataFrame, title: str = "") -> Figure:
    """Each component of p~ over training steps; `mix` as from `history_tables.mix_history`."""
    layers = list(mix["layer"].drop_duplicates())
    figure = new_figure(max(3.7, 1.2 + 0.22 * min(len(layers), 25)))
    axes = figure.add_subplot()
    if mix.empty:
        say_empty(axes, NO_WEIGHTS)
        return figure
    # Dark to light by depth, and not to the palest end, which a page would swallow.
    shades = mpl.colormaps["viridis"](np.linspace(0.0, 0.85, len(layers)))
    for place, layer in enumerate(layers):
        rows = mix[mix["layer"] == layer]
        axes.plot(
            rows["step"],
            rows["weight"],
            color=shades[place],
            linestyle=pick(LINES, place),
            marker=pick(MARKERS, place),
            markevery=max(1, len(rows) // 8),
            markersize=4.5,
            linewidth=1.3,
            label=brief(layer),
        )
    handles, _ = axes.get_legend_handles_labels()
    legend_right(figure, handles, "layer")
    axes.set_xlabel(LABELS["step"])
    axes.set_ylabel(LABELS["mix/weight"])
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if title:
        axes.set_title(plain_text(title), loc="left")
    return figure


def _lines(figure: Figure, axes: Axes, core: pd.DataFrame, title: str) -> None:
    """Draw a line per entropy weight over alpha, through `mean` with bars from `low` to `high`.

    Points are a little apart so that bars do not hide each other; a missing mean breaks the line.
    """
    weights = levels(core["entropy_weight"])
    handles = []
    for place, weight in enumerate(weights):
        rows = core[core["entropy_weight"] == weight].sort_values("alpha")
        colour, marker, line = pick(COLOURS, place), pick(MARKERS, place), pick(LINES, place)
        handles.append(Line2D([], [], color=colour, linestyle=line, marker=marker, label=f"λ = {weight:g}"))
        x = rows["alpha"] * _nudge(place, len(weights))
        axes.plot(x, rows["mean"], color=colour, linestyle=line)
        for at, row in zip(x, records(rows), strict=True):
            point(axes, at, row["mean"], row["low"], row["high"], colour, marker, along="y")
    legend_right(figure, handles, title)
    _log_alpha(axes, levels(core["alpha"]))


def _nudge(place: int, of: int) -> float:
    """Return the factor that sets lines apart on the log axis of alpha, the middle one in its true place."""
    return float(1.07 ** (place - (of - 1) / 2))


def _log_alpha(axes: Axes, alphas: list[float], *, tick_levels: bool = True) -> None:
    """Make x the log axis of alpha, with a tick at each level, or at powers where levels are many or drawn."""
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    if tick_levels and len(alphas) <= 8:
        axes.set_xticks(alphas)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlim(alphas[0] / 1.6, alphas[-1] * 1.6)
    axes.set_xlabel(f"{LABELS['alpha']}, log scale")
