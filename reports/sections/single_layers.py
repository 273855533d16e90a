"""Each hidden state alone, its projection trained or not, against the mixes of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from reports.cells import INTERVAL, named, summary, table_of
from reports.evidence.evidence import Evidence
from reports.plots import COLOURS, LINES, Look, legend, points, seeds_text, single
from reports.section import Section, Table
from reports.tables.arms import is_learned
from reports.tables.layers import single_layers
from reports.words.labels import LABELS

LOOKS = {
    "projection trained": Look(COLOURS[1], "s", ":"),
    "projection untrained": Look(COLOURS[3], "D", ":"),
}


@dataclass(frozen=True)
class Frames:
    """single: as from `layers.single_layers`, with x and series; mixes: name -> row of an arm that mixes all layers."""

    single: pd.DataFrame
    mixes: Mapping[str, Mapping[str, Any]]
    score: str


def frames(evidence: Evidence) -> Frames | None:
    alone = single_layers(evidence.trials, evidence.plan, evidence.split).dropna(subset=["mean"])
    if alone.empty:
        return None
    # Of a study of single layers the control is the mix that they are compared with.
    control = evidence.row_of(evidence.plan.control)
    learned = control if control and is_learned(control["mix"], control["fusion"]) else None
    untrained = (
        evidence.row_of(arm.name)
        for arm in evidence.plan.arms
        if arm.config.get("train_projections") is False and arm.config.get("mix", "learned") == "learned"
    )
    mixes = {
        "learned mix": learned or evidence.row_of(evidence.learned_arm),
        "learned mix, projections untrained": next(untrained, None),
    }
    kinds = dict(zip((True, False), LOOKS, strict=True))
    x = alone["layer"].str.removeprefix("layer ")
    return Frames(
        alone.assign(x=x, series=alone["trained"].map(kinds)).sort_values("state", kind="stable"),
        {name: row for name, row in mixes.items() if row and not pd.isna(row["mean"])},
        evidence.scored,
    )


def tables(frames: Frames) -> Sequence[Table]:
    heads = {"layer": "layer", "": "series", f"{frames.score}, {INTERVAL}": summary}
    mixes = [[name, named(row["arm"]), summary(row)] for name, row in frames.mixes.items()]
    return [
        table_of(frames.single, heads),
        Table(["mix of all layers", "arm", f"{frames.score}, {INTERVAL}"], mixes),
    ]


def draw(frames: Frames) -> Figure:
    """Score of each single layer with its interval, against the line and band of the learned mix."""
    figure, axes = single(3.2, str(LABELS["layer"]), frames.score)
    states = frames.single["state"]
    whole = states.nunique() == np.ptp(states) + 1  # else a line would skip some
    points(frames.single, axes, joined=bool(whole), looks=LOOKS)
    entries = {name: how for name, how in LOOKS.items() if name in set(frames.single["series"])}
    for place, (name, mix) in enumerate(frames.mixes.items()):
        entries[name] = Look(COLOURS[3 * place], "", LINES[place])
        axes.axhline(mix["mean"], color=COLOURS[3 * place], linestyle=LINES[place], zorder=1)
        if not pd.isna(mix["low"]):
            axes.axhspan(mix["low"], mix["high"], color=COLOURS[3 * place], alpha=0.15, linewidth=0, zorder=0)
    legend(figure, entries, f"mean and 95% interval, {seeds_text(frames.single['n'])}")
    return figure


SECTION = Section(
    "Layers",
    frames,
    tables,
    {"single_layers": draw},
    "Score of each single layer against the learned mix of all",
)
