"""Each single layer against the learned mix (thesis figures 10, 14, 18)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from reports.drawing import style
from reports.drawing.pieces import brief, legend_right, point, seeds_text, unit_below
from reports.drawing.style import COLOURS, new_figure, plain_text, say_empty, styled
from reports.evidence import layers
from reports.evidence.evidence import Evidence
from reports.evidence.statistics import LEVEL
from reports.evidence.tables import is_learned
from reports.parts.part import Part, figure_link
from reports.reading.frames import records
from reports.words.labels import LABELS, Label
from reports.words.text import NONE, code, escape, estimate, folded, table

KINDS = {
    True: ("projection trained", COLOURS[1], "s"),
    False: ("projection untrained", COLOURS[3], "D"),
}
"""Whether the projection was trained -> name, colour, marker."""

NO_SINGLE = "Nothing to draw: no completed trials of single-layer arms."


@dataclass(frozen=True)
class Info:
    """single: as from `layers.single_layers`; learned: the row of `tables.arms` of the learned mix, or None.

    untrained: that of the learned mix of untrained projections, the fair line for layers whose projection is untrained
    """

    single: pd.DataFrame
    learned: Mapping[str, Any] | None
    score: Label
    untrained: Mapping[str, Any] | None = None


def info(evidence: Evidence) -> Info | None:
    single = layers.single_layers(evidence.trials, evidence.plan, evidence.split)
    if single.empty:
        return None
    # Of a study of single layers the control is the mix that they are compared with.
    control = evidence.row_of(evidence.plan.control)
    learned = control if control and is_learned(str(control["mix"]), str(control["fusion"])) else None
    fair = next(
        (
            arm.name
            for arm in evidence.plan.arms
            if arm.config.get("train_projections") is False and arm.config.get("mix", "learned") == "learned"
        ),
        None,
    )
    return Info(
        single,
        learned or evidence.row_of(evidence.learned_arm),
        evidence.scored,
        evidence.row_of(fair) if fair else None,
    )


def section(info: Info) -> list[str]:
    learned, scored = info.learned, info.score.name
    against = (
        f"The line is {code(learned['arm'])}, which learns its mix of all layers."
        if learned
        else "No arm that learns its mix has a score."
    )
    kinds = [kind for kind in KINDS if kind in set(info.single["trained"])]
    score = {
        (row["state"], row["trained"]): estimate(row["mean"], row["low"], row["high"], row["n"])
        for row in records(info.single)
    }
    rows = [
        [escape(row["layer"]), *(score.get((row["state"], kind), NONE) for kind in kinds)]
        for row in records(info.single.drop_duplicates("state"))
    ]
    return [
        "The same network with all of the mix on one layer. Intervals are t intervals over seeds, not corrected: "
        f"verdicts are under *Quality*. {against}{_fair(info)}",
        figure_link("single_layers", f"{scored} of each single layer against the learned mix"),
        folded(
            "The layers as a table",
            len(rows),
            table(
                ["layer", *(f"{KINDS[kind][0]}: {scored}, mean [{LEVEL:.0%} interval]" for kind in kinds)],
                rows,
            ),
        ),
    ]


def _fair(info: Info) -> str:
    row = info.untrained
    if row is None or pd.isna(row["mean"]):
        return ""
    return (
        f" The dashed one is {code(row['arm'])}, with {estimate(row['mean'], row['low'], row['high'], row['n'])}: what "
        "layers with untrained projections compare with."
    )


@styled
def draw(info: Info) -> Figure:
    """Score of each single layer with its interval, against the line and band of the learned mix."""
    learned = info.learned
    figure = new_figure(3.7)
    axes = figure.add_subplot()
    shown = info.single.dropna(subset=["mean"])
    if shown.empty:
        say_empty(axes, NO_SINGLE)
        return figure
    handles: list[Line2D | Patch] = []
    layers = shown.drop_duplicates("state")
    places = {state: place for place, state in enumerate(layers["state"])}
    for kind, (name, colour, marker) in KINDS.items():
        rows = shown[shown["trained"] == kind]
        if rows.empty:
            continue
        at = [places[state] for state in rows["state"]]
        numbers_of = [int(state) for state in rows["state"]]
        if numbers_of == list(
            range(numbers_of[0], numbers_of[0] + len(numbers_of))
        ):  # else it would skip some
            axes.plot(at, rows["mean"], color=colour, linewidth=1, linestyle=":", zorder=1)
        for place, row in zip(at, records(rows), strict=True):
            point(axes, place, row["mean"], row["low"], row["high"], colour, marker, along="y")
        handles.append(Line2D([], [], color=colour, marker=marker, linestyle=":", label=name))
    if learned is not None and not pd.isna(learned["mean"]):
        axes.axhline(learned["mean"], color=COLOURS[0], linewidth=1.6, zorder=2)
        name = plain_text(f"learned mix,\nn = {learned['n']:.0f} seeds")
        handles.append(Line2D([], [], color=COLOURS[0], linewidth=1.6, label=name))
        if not pd.isna(learned["low"]):
            axes.axhspan(learned["low"], learned["high"], color=COLOURS[0], alpha=0.15, linewidth=0, zorder=0)
            handles.append(Patch(color=COLOURS[0], alpha=0.15, label="its 95% interval"))
    if info.untrained is not None and not pd.isna(info.untrained["mean"]):
        colour = KINDS[False][1]
        axes.axhline(info.untrained["mean"], color=colour, linewidth=1.4, linestyle="--", zorder=1)
        name = plain_text(f"learned mix, untrained,\nn = {info.untrained['n']:.0f} seeds")
        handles.append(Line2D([], [], color=colour, linewidth=1.4, linestyle="--", label=name))
    style.name_ticks(axes, [brief(name) for name in layers["layer"]], axis="x")
    legend_right(figure, handles, f"single layers,\n{seeds_text(shown['n'])}")
    axes.set_xlabel(LABELS["layer"])
    axes.set_ylabel(unit_below(info.score))
    return figure


def answer(info: Info) -> list[str]:
    """Name the best layer, trained and not, next to the mix."""
    learned = info.learned
    parts = []
    for kind, (name, _, _) in KINDS.items():
        rows = info.single[info.single["trained"] == kind].dropna(subset=["mean"])
        if len(rows):
            best = records(rows.sort_values("mean"))[-1]
            parts.append(
                f"with its {name}, {escape(best['layer'])} has the best mean, "
                f"{estimate(best['mean'], best['low'], best['high'], best['n'])}"
            )
    mix = (
        f"; the learned mix has {estimate(learned['mean'], learned['low'], learned['high'], learned['n'])}"
        if learned
        else ""
    )
    return [
        f"**Layers** ({info.score.name}): {'; '.join(parts)}{mix}. The best of many layers looks "
        "better than it is."
    ]


PART = Part("Single layers", info, section, {"single_layers": draw}, answer)
