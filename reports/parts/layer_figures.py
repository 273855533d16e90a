"""Figures by layer: single-layer baselines (thesis 10, 14, 18), and p~ over the depth of several backbones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from reports.drawing import style
from reports.drawing.pieces import brief, legend_right, point, seeds_text, unit_below
from reports.drawing.style import (
    COLOURS,
    GROUPS,
    LINES,
    MARKERS,
    new_figure,
    pick,
    plain_text,
    say_empty,
    styled,
)
from reports.reading.frames import records
from reports.words.labels import LABELS

NO_SINGLE = "Nothing to draw: no completed trials of single-layer arms."
NO_PROFILES = "Nothing to draw: no history of learned mix weights."


@styled
def single_layers(single: pd.DataFrame, learned: Mapping[str, float] | None, label: str) -> Figure:
    """Score of each single layer with its interval, against the line and band of the learned mix.

    single:  as from `layers.single_layers`; learned: the row of `tables.arms` of the learned mix, or None.
    """
    figure = new_figure(3.7)
    axes = figure.add_subplot()
    shown = single.dropna(subset=["mean"]).drop_duplicates("state")
    if shown.empty:
        say_empty(axes, NO_SINGLE)
        return figure
    handles: list[Line2D | Patch] = []
    axes.plot(range(len(shown)), shown["mean"], color=COLOURS[1], linewidth=1, linestyle=":", zorder=1)
    for place, row in enumerate(records(shown)):
        last = row["arm"] == "last"
        colour, marker = GROUPS["last"] if last else (COLOURS[1], "s")
        point(axes, place, row["mean"], row["low"], row["high"], colour, marker, along="y")
    handles.append(Line2D([], [], color=COLOURS[1], marker="s", linestyle=":", label="one layer alone"))
    if (shown["arm"] == "last").any():
        colour, marker = GROUPS["last"]
        handles.append(Line2D([], [], color=colour, marker=marker, linestyle="none", label="arm `last`"))
    if learned is not None and not pd.isna(learned["mean"]):
        axes.axhline(learned["mean"], color=COLOURS[0], linewidth=1.6, zorder=2)
        name = plain_text(f"learned mix,\nn = {learned['n']:.0f} seeds")
        handles.append(Line2D([], [], color=COLOURS[0], linewidth=1.6, label=name))
        if not pd.isna(learned["low"]):
            axes.axhspan(learned["low"], learned["high"], color=COLOURS[0], alpha=0.15, linewidth=0, zorder=0)
            handles.append(Patch(color=COLOURS[0], alpha=0.15, label="its 95% interval"))
    style.name_ticks(axes, [brief(name) for name in shown["layer"]], axis="x")
    legend_right(figure, handles, f"single layers,\n{seeds_text(shown['n'])}")
    axes.set_xlabel(LABELS["layer"])
    axes.set_ylabel(unit_below(label))
    return figure


@styled
def layer_profiles(profiles: Sequence[tuple[str, pd.DataFrame]]) -> Figure:
    """Mix weights over relative depth, a line per backbone and dataset, 1 being the uniform mix.

    profiles: name and frame of each, as from `layers.profile`.
    """
    figure = new_figure(4.0)
    axes = figure.add_subplot()
    shown = [(name, profile) for name, profile in profiles if len(profile)]
    if not shown:
        say_empty(axes, NO_PROFILES)
        return figure
    handles = []
    for place, (name, profile) in enumerate(shown):
        colour, marker, line = pick(COLOURS, place), pick(MARKERS, place), pick(LINES, place)
        axes.plot(profile["depth"], profile["relative"], color=colour, linestyle=line, linewidth=1.4)
        for row in records(profile):
            point(axes, row["depth"], row["relative"], row["low"], row["high"], colour, marker, along="y")
        text = f"{name}\n({len(profile)} states, n = {profile['n'].max()})"
        handles.append(Line2D([], [], color=colour, linestyle=line, marker=marker, label=plain_text(text)))
    axes.axhline(1, color="0.3", linestyle="--", linewidth=1, zorder=1)
    handles.append(Line2D([], [], color="0.3", linestyle="--", linewidth=1, label="uniform mix"))
    legend_right(figure, handles, "best learned arm of each")
    axes.set_xlabel("relative depth (0: embeddings, 1: last layer)")
    axes.set_ylabel("mix weight p̃ × number of states\n(1: as in the uniform mix)")
    axes.set_xlim(-0.03, 1.05)
    axes.set_ylim(bottom=0)
    return figure
