"""Every completed search trial across its hyperparameters to its score."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from reports.drawing import style
from reports.drawing.pieces import BLANK, legend_right, tick
from reports.drawing.style import new_figure, plain_text, say_empty, styled
from reports.evidence.evidence import Evidence
from reports.parts.part import Part, figure_link
from reports.reading.load import Plan
from reports.reading.space import Domain, numeric

NO_POINTS = "Nothing to draw: no completed search trials."
BEST = 5
"""Trials drawn apart from the rest."""
MANY = 500
"""Most lines that are drawn one by one in an SVG."""
FEWEST = 10
"""Completed trials below which the table of trials is the better picture."""


@dataclass(frozen=True)
class Info:
    """points: as from `importances.search_points`."""

    points: pd.DataFrame
    space: tuple[Domain, ...]
    plan: Plan
    score: str


def info(evidence: Evidence) -> Info | None:
    if evidence.searches > 1 or (evidence.points["status"] == "completed").sum() < FEWEST:
        return None
    return Info(evidence.points, tuple(evidence.space[0]), evidence.plan, evidence.chosen)


def section(info: Info) -> list[str]:
    drawn = figure_link("search_parallel", "Every completed search trial across its hyperparameters")
    if not (info.points["status"] == "completed").any() or len(info.space) < 2:
        return [drawn]
    return [
        "A line per completed trial, from its hyperparameters to its score; the table of trials above holds "
        "the same numbers.",
        drawn,
    ]


@styled
def draw(info: Info) -> Figure:
    """A line per completed search trial across its hyperparameters to its score; the best ones apart."""
    points, space = info.points, info.space
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
    order = np.argsort(-scores if info.plan.mode == "min" else scores, kind="stable")  # best last, on top
    x = np.arange(lines.shape[1])
    segments = [np.column_stack([x, lines[i]]) for i in order]
    # Hundreds of lines are a picture, not a drawing: in the SVG they are one image, of 300 KB; a few are not.
    many = LineCollection(
        segments,
        cmap=_PALE,
        norm=Normalize(low, high),
        linewidths=0.9,
        rasterized=len(segments) > MANY,
        zorder=1,
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
    # Short, for they stand close to each other: what a hyperparameter means stands on the page.
    names = [info.plan.short(each.name).partition(", ")[0] + (", log" if each.log else "") for each in space]
    style.name_ticks(axes, [_wrapped(name) for name in [*names, info.score]], axis="x")
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


PART = Part("Where the search went", info, section, {"search_parallel": draw})
