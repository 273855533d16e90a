"""The mix of every arm: entropy and live layers, and the weights of every trained model by level of a factor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from reports import plots
from reports.cells import INTERVAL, named, summary, table_of
from reports.evidence.evidence import Evidence
from reports.reading.factors import cell_names, column, level, level_name, levels, short
from reports.reading.frames import records
from reports.section import Section, Table
from reports.tables import mix
from reports.tables.arms import confirmed
from reports.words.labels import LABELS

PANELS = 4
"""Most levels that have a panel of their own: the ends, and evenly between them."""


@dataclass(frozen=True)
class Frames:
    """models: a row per trained model of the core: columns of mix weights, x (level of the first factor), series."""

    evidence: Evidence
    models: pd.DataFrame


def frames(evidence: Evidence) -> Frames | None:
    if not evidence.has_mix:
        return None
    factors, core = evidence.request.factors, evidence.core
    rows = confirmed(evidence.trials)
    rows = rows[rows["arm"].isin(set(core["arm"]))]
    models = mix.at_best(rows, evidence.loaded.history).merge(rows[["trial_id", "arm"]], on="trial_id")
    first = core[column(factors[0].name)] if factors else core["arm"]
    cells = core[["arm"]].assign(x=first, series=cell_names(core, factors[1:]))
    return Frames(evidence, models.merge(cells, on="arm"))


def tables(frames: Frames) -> Sequence[Table]:
    heads = {
        "arm": lambda row: named(row["arm"]),
        f"entropy (nats), {INTERVAL}": lambda row: summary(row, "entropy_"),
        f"live layers, {INTERVAL}": lambda row: summary(row, "live_", digits=1),
    }
    caption = "Entropy of p̃ at the best epoch: 0 when one layer has all the weight, ln(layers) when all share it alike."
    return [table_of(frames.evidence.mix_by_arm, heads, caption)]


def draw(frames: Frames) -> Figure | None:
    """Mix weight against layer, a panel per level of the first factor, a line per trained model."""
    columns, values = mix.weight_columns(frames.models), levels(frames.models["x"])
    if not columns or not values:
        return None
    if len(values) > PANELS:
        values = [values[round(place)] for place in np.linspace(0, len(values) - 1, PANELS)]
    first, lines = short(frames.evidence.request.factors[0]), frames.evidence.lines
    looks = plots.looks_of(lines if len(frames.evidence.request.factors) > 1 else [""])
    titles = [f"{first} = {level_name(value)}" for value in values]
    figure, axes = plots.panels(titles, 2.4, x="layer", y=str(LABELS["mix/weight"]), most=PANELS)
    places, spacing = np.arange(len(columns)), max(1, len(columns) // 6)
    names = [mix.state_name(name).removeprefix("layer ") for name in columns]
    for panel, value in zip(axes, values, strict=True):
        for row in records(frames.models[[level(one) == value for one in frames.models["x"]]]):
            colour = looks[row["series"]].colour
            panel.plot(places, [row[name] for name in columns], color=colour, linewidth=0.8, alpha=0.6)
        panel.set_xticks(places[::spacing], names[::spacing])
    plots.at_least(axes[0], 0.2 / len(columns))
    plots.legend(figure, looks if len(looks) > 1 else {}, "a line per trained model")
    return figure


SECTION = Section("The mix", frames, tables, {"mix_layers": draw}, "Mix weights of every trained model")
