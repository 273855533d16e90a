"""Each hidden state alone, its projection trained or not, against the mixes of all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from reports import plots
from reports.evidence.evidence import Evidence
from reports.plots import COLOURS, LINES, Look
from reports.section import INTERVAL, Section, Table, named, summary, table_of
from reports.tables.mix import single_layers
from reports.words import LABELS

LOOKS = {
    "projection trained": Look(COLOURS[1], "s", ":"),
    "projection untrained": Look(COLOURS[3], "D", ":"),
}


def section(evidence: Evidence) -> Section | None:
    request = evidence.request
    alone = single_layers(evidence.arms, request, evidence.environment.hidden_states)
    if alone.empty:
        return None
    # Of a study of single layers the control is the mix that they are compared with.
    learned = request.control if request.control in evidence.learned else evidence.learned_arm
    mixes = {"learned mix": evidence.row_of(learned)}
    for arm in request.arms:
        if arm.config.get("train_projections") is False and arm.config.get("mix", "learned") == "learned":
            mixes.setdefault("learned mix, projections untrained", evidence.row_of(arm.name))
    shown = {name: row for name, row in mixes.items() if row and not pd.isna(row["mean"])}
    kinds = dict(zip((True, False), LOOKS, strict=True))
    alone = alone.assign(x=alone["layer"].str.removeprefix("layer "), series=alone["trained"].map(kinds))
    score = f"{evidence.scored}, {INTERVAL}"
    of_mixes = [[name, named(row["arm"]), summary(row)] for name, row in shown.items()]
    table = table_of(alone, {"layer": "layer", "": "series", score: summary})
    tables = [table, Table(["mix of all layers", "arm", score], of_mixes)]
    figures = {"single_layers": draw(alone, shown, evidence.scored)}
    return Section("Layers", tables, figures, "Score of each single layer against the learned mix of all")


def draw(alone: pd.DataFrame, mixes: Mapping[str, Mapping[str, Any]], score: str) -> Figure:
    """Score of each single layer with its interval, against the line and band of the learned mix."""
    figure, axes = plots.single(3.2, str(LABELS["layer"]), score)
    states = alone["state"]
    whole = states.nunique() == np.ptp(states) + 1  # else a line would skip some
    plots.points(alone, axes, joined=bool(whole), looks=LOOKS)
    entries = {name: how for name, how in LOOKS.items() if name in set(alone["series"])}
    for place, (name, mix) in enumerate(mixes.items()):
        entries[name] = Look(COLOURS[3 * place], "", LINES[place])
        axes.axhline(mix["mean"], color=COLOURS[3 * place], linestyle=LINES[place], zorder=1)
        if not pd.isna(mix["low"]):
            axes.axhspan(mix["low"], mix["high"], color=COLOURS[3 * place], alpha=0.15, linewidth=0, zorder=0)
    plots.legend(figure, entries, f"mean and 95% interval, {plots.seeds_text(alone['n'])}")
    return figure
