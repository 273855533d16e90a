"""Score against the number of training examples, where it was varied."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullLocator

from reports.drawing.pieces import legend_right, point, seeds_text, unit_below
from reports.drawing.style import COLOURS, LINES, MARKERS, new_figure, pick, plain_text, say_empty, styled
from reports.evidence.data_size import by_size
from reports.evidence.evidence import Evidence
from reports.evidence.statistics import LEVEL
from reports.parts.part import Part, figure_link
from reports.reading.frames import records
from reports.words.text import escape, estimate, folded, table

NO_SIZES = "Nothing to draw: no confirmed trials at different numbers of training examples."


@dataclass(frozen=True)
class Info:
    """sizes: as from `data_size.by_size`."""

    sizes: pd.DataFrame
    score: str


def info(evidence: Evidence) -> Info | None:
    sizes = by_size(evidence.trials, evidence.plan, evidence.split)
    return None if sizes.empty else Info(sizes, evidence.scored)


def section(info: Info) -> list[str]:
    sizes, scored = info.sizes, info.score.split(" (")[0]
    rows = [
        [
            escape(row["line"]),
            f"{row['examples']:,.0f}",
            estimate(row["mean"], row["low"], row["high"], row["n"]),
        ]
        for row in records(sizes)
    ]
    return [
        "Intervals are t intervals over seeds, not corrected.",
        figure_link("score_by_size", f"{scored} against the number of training examples"),
        folded(
            "The scores as a table",
            len(rows),
            table(["arm", "training examples", f"{scored}, mean [{LEVEL:.0%} interval]"], rows),
        ),
    ]


@styled
def draw(info: Info) -> Figure:
    """Mean score against the number of training examples, a line per kind of arm."""
    figure = new_figure(3.9)
    axes = figure.add_subplot()
    shown = info.sizes.dropna(subset=["mean"])
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
    known = sorted(shown["examples"].unique())
    if len(known) <= 8:
        axes.set_xticks(known)
    axes.xaxis.set_minor_locator(NullLocator())
    legend_right(figure, handles, seeds_text(shown["n"]))
    axes.set_xlabel("training examples (count), log scale")
    axes.set_ylabel(unit_below(info.score))
    return figure


PART = Part("Score against data size", info, section, {"score_by_size": draw})
