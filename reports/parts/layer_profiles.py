"""Where in the depth of several backbones the learned mix puts its weight: a part of the cover."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from reports.drawing.pieces import legend_right, point
from reports.drawing.style import COLOURS, LINES, MARKERS, new_figure, pick, plain_text
from reports.parts.part import figure_link
from reports.reading.frames import records
from reports.words.text import code, escape, estimate, folded, table


@dataclass(frozen=True)
class Profile:
    """One case: its name and its link in Markdown, the best learned arm, its weights as from `layers.profile`."""

    name: str
    link: str
    arm: str | None
    profile: pd.DataFrame


def section(profiles: Sequence[Profile]) -> list[str]:
    rows = [
        [
            *(case.link, code(case.arm), escape(row["layer"])),
            *(f"{row['depth']:.2f}", estimate(row["relative"], row["low"], row["high"], row["n"], 2)),
        ]
        for case in profiles
        for row in records(case.profile)
    ]
    heads = ["report", "arm", "layer", "relative depth", "p̃ × number of states, mean [95% interval]"]
    return [
        "Mix weights at the best epoch of the best learned arm of each, over the depth of its backbone, times "
        "the number of hidden states mixed, so that 1 is the uniform mix whatever that number.",
        figure_link("layer_profiles", "Mix weights over relative depth, a line per backbone and dataset"),
        folded("The profiles as a table", len(rows), table(heads, rows)),
    ]


def draw(profiles: Sequence[Profile]) -> Figure:
    """Mix weights over relative depth, a line per backbone and dataset, 1 being the uniform mix."""
    figure = new_figure(4.0)
    axes = figure.add_subplot()
    handles = []
    for position, case in enumerate(profiles):
        profile, colour = case.profile, pick(COLOURS, position)
        marker, line = pick(MARKERS, position), pick(LINES, position)
        axes.plot(profile["depth"], profile["relative"], color=colour, linestyle=line, linewidth=1.4)
        for row in records(profile):
            point(axes, row["depth"], row["relative"], row["low"], row["high"], colour, marker, along="y")
        text = f"{case.name}\n({len(profile)} states, n = {profile['n'].max()})"
        handles.append(Line2D([], [], color=colour, linestyle=line, marker=marker, label=plain_text(text)))
    axes.axhline(1, color="0.3", linestyle="--", linewidth=1, zorder=1)
    handles.append(Line2D([], [], color="0.3", linestyle="--", linewidth=1, label="uniform mix"))
    legend_right(figure, handles, "best learned arm of each")
    axes.set_xlabel("relative depth (0: embeddings, 1: last layer)")
    axes.set_ylabel("mix weight p̃ × number of states\n(1: as in the uniform mix)")
    axes.set_xlim(-0.03, 1.05)
    axes.set_ylim(bottom=0)
    return figure
