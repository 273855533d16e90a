"""Each single layer against the learned mix (thesis figures 10, 14, 18)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from adalayers.results.intervals import LEVEL
from reports.drawing import style
from reports.drawing.pieces import brief, legend_right, point, seeds_text, unit_below
from reports.drawing.style import COLOURS, CONTROL, LINES, new_figure
from reports.evidence.evidence import Evidence
from reports.parts.cells import summary
from reports.parts.part import Part, figure_link
from reports.reading.frames import records
from reports.tables import layers
from reports.tables.arms import is_learned
from reports.words.labels import LABELS, AxisLabel
from reports.words.text import NONE, code, escape, folded, table

PROJECTION_STYLES = {
    True: ("projection trained", COLOURS[1], "s"),
    False: ("projection untrained", COLOURS[3], "D"),
}
"""Whether the projection was trained -> name, colour, marker."""


@dataclass(frozen=True)
class Info:
    """What is shown of single layers.

    Attributes:
        single: As from `layers.single_layers`, those that have a score.
        learned: The row of `tables.arms` of the learned mix, or None.
        chosen: Arm -> its mean on validation, by which the best layer is picked.
        untrained: That of the learned mix of untrained projections, the fair line for layers whose projection is
            untrained.
    """

    single: pd.DataFrame
    learned: Mapping[str, Any] | None
    score: AxisLabel
    chosen: Mapping[str, float]
    untrained: Mapping[str, Any] | None = None

    @property
    def kinds(self) -> list[bool]:
        """Whether projections were trained: of the two, what there is."""
        return [trained for trained in PROJECTION_STYLES if trained in set(self.single["trained"])]

    def arms_of(self, trained: bool) -> pd.DataFrame:
        return self.single[self.single["trained"] == trained]


def info(evidence: Evidence) -> Info | None:
    single = layers.single_layers(evidence.trials, evidence.plan, evidence.split).dropna(subset=["mean"])
    if single.empty:
        return None
    # Of a study of single layers the control is the mix that they are compared with.
    control = evidence.row_of(evidence.plan.control)
    learned = control if control and is_learned(str(control["mix"]), str(control["fusion"])) else None
    untrained = (
        evidence.row_of(arm.name)
        for arm in evidence.plan.arms
        if arm.config.get("train_projections") is False and arm.config.get("mix", "learned") == "learned"
    )
    scored = [
        row if row and not pd.isna(row["mean"]) else None
        for row in (learned or evidence.row_of(evidence.learned_arm), next(untrained, None))
    ]
    chosen = {row["arm"]: row["val_mean"] for row in records(evidence.arms.dropna(subset=["val_mean"]))}
    return Info(single, scored[0], evidence.scored, chosen, scored[1])


def section(info: Info) -> list[str]:
    scored, lines = info.score.name, []
    if info.learned:
        lines.append(f"The line is {code(info.learned['arm'])}, which learns its mix of all layers.")
    if info.untrained:
        lines.append(
            f"The dashed one is {code(info.untrained['arm'])}, with {summary(info.untrained)}: what layers with "
            "untrained projections compare with."
        )
    score = {(row["state"], row["trained"]): summary(row) for row in records(info.single)}
    rows = [
        [escape(row["layer"]), *(score.get((row["state"], kind), NONE) for kind in info.kinds)]
        for row in records(info.single.drop_duplicates("state"))
    ]
    heads = [
        "layer",
        *(f"{PROJECTION_STYLES[kind][0]}: {scored}, mean [{LEVEL:.0%} interval]" for kind in info.kinds),
    ]
    return [
        "The same network with all of the mix on one layer. Intervals are t intervals over seeds, not corrected: "
        f"verdicts are under *Quality*. {' '.join(lines)}",
        figure_link("single_layers", f"{scored} of each single layer against the learned mix"),
        folded("The layers as a table", len(rows), table(heads, rows)),
    ]


def draw(info: Info) -> Figure:
    """Score of each single layer with its interval, against the line and band of the learned mix."""
    figure = new_figure(3.7)
    axes = figure.add_subplot()
    handles: list[Line2D | Patch] = []
    states = info.single.drop_duplicates("state")
    positions = {state: position for position, state in enumerate(states["state"])}
    for kind in info.kinds:
        name, colour, marker = PROJECTION_STYLES[kind]
        rows = info.arms_of(kind)
        if (rows["state"].astype(int).diff().dropna() == 1).all():  # else the line would skip some
            axes.plot(
                rows["state"].map(positions), rows["mean"], color=colour, linewidth=1, linestyle=":", zorder=1
            )
        for row in records(rows):
            x = positions[row["state"]]
            point(axes, x, row["mean"], row["low"], row["high"], colour, marker, along="y")
        handles.append(Line2D([], [], color=colour, marker=marker, linestyle=":", label=name))
    mixes = [
        ("learned mix", info.learned, CONTROL, LINES[0]),
        ("learned mix, untrained", info.untrained, PROJECTION_STYLES[False][1], LINES[1]),
    ]
    for name, mix, colour, line in mixes:
        if mix:
            axes.axhline(mix["mean"], color=colour, linewidth=1.6, linestyle=line, zorder=2)
            label = f"{name},\nn = {mix['n']:.0f} seeds"
            handles.append(Line2D([], [], color=colour, linewidth=1.6, linestyle=line, label=label))
    if info.learned and not pd.isna(info.learned["low"]):
        axes.axhspan(
            info.learned["low"], info.learned["high"], color=CONTROL, alpha=0.15, linewidth=0, zorder=0
        )
        handles.append(Patch(color=CONTROL, alpha=0.15, label="its 95% interval"))
    style.name_ticks(axes, [brief(name) for name in states["layer"]], axis="x")
    legend_right(figure, handles, f"single layers,\n{seeds_text(info.single['n'])}")
    axes.set_xlabel(LABELS["layer"])
    axes.set_ylabel(unit_below(info.score))
    return figure


def answer(info: Info) -> list[str]:
    """Name the layer that validation picks, trained and not, next to the mix."""
    parts = []
    for kind in info.kinds:
        layers_of = [row for row in records(info.arms_of(kind)) if row["arm"] in info.chosen]
        if layers_of:
            best = max(layers_of, key=lambda row: info.chosen[row["arm"]])
            parts.append(
                f"with its {PROJECTION_STYLES[kind][0]}, {escape(best['layer'])} has {summary(best)}"
            )
    parts += [f"the learned mix has {summary(info.learned)}"] if info.learned else []
    return [f"**Layers**, each the best on validation ({info.score.name}): {'; '.join(parts)}."]


PART = Part("Single layers", info, section, {"single_layers": draw}, answer)
