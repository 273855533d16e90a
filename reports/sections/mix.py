"""The mix of every arm: entropy and live layers, and the weights of every trained model by level of a factor."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from reports import plots
from reports.evidence.evidence import Evidence
from reports.reading.factors import cell_names, column, in_order, level, level_name, levels, short
from reports.reading.frames import records
from reports.section import INTERVAL, Section, named, summary, table_of
from reports.tables import mix
from reports.tables.arms import confirmed
from reports.words import LABELS

PANELS = 4
"""Most levels that have a panel of their own: the ends, and evenly between them."""


def section(evidence: Evidence) -> Section | None:
    if evidence.mix_by_arm.empty:
        return None
    heads = {
        "arm": lambda row: named(row["arm"]),
        f"entropy (nats), {INTERVAL}": lambda row: summary(row, "entropy_"),
        f"live layers, {INTERVAL}": lambda row: summary(row, "live_", digits=1),
    }
    caption = "Entropy of p̃ at the best epoch: 0 when one layer has all the weight, ln(layers) when all share it alike."
    table, figure = table_of(evidence.mix_by_arm, heads, caption), draw(evidence)
    figures = {"mix_layers": figure} if figure else {}
    return Section("The mix", [table], figures, "Mix weights of every trained model")


def draw(evidence: Evidence) -> Figure | None:
    """Mix weight against layer, a panel per level of the first factor, a line per trained model of the core."""
    factors, core = evidence.request.factors, evidence.core
    if core.empty:
        return None
    rows = confirmed(evidence.trials)
    rows = rows[rows["arm"].isin(set(core["arm"]))]
    weights = mix.at_best(rows, evidence.loaded.history).merge(rows[["trial_id", "arm"]], on="trial_id")
    cells = core.assign(x=core[column(factors[0].name)], series=cell_names(core, factors[1:]))
    models = weights.merge(cells[["arm", "x", "series"]], on="arm")
    columns, values = mix.weight_columns(models), levels(models["x"])
    if not columns or not values:
        return None
    if len(values) > PANELS:
        values = [values[round(place)] for place in np.linspace(0, len(values) - 1, PANELS)]
    looks = plots.looks_of(in_order(cells, factors[1:])["series"])
    titles = [f"{short(factors[0])} = {level_name(value)}" for value in values]
    figure, axes = plots.panels(titles, 2.4, x="layer", y=str(LABELS["mix/weight"]), most=PANELS)
    places, spacing = np.arange(len(columns)), max(1, len(columns) // 6)
    names = [mix.state_name(name).removeprefix("layer ") for name in columns]
    for panel, value in zip(axes, values, strict=True):
        for row in records(models[[level(one) == value for one in models["x"]]]):
            colour = looks[row["series"]].colour
            panel.plot(places, [row[name] for name in columns], color=colour, linewidth=0.8, alpha=0.6)
        panel.set_xticks(places[::spacing], names[::spacing])
    plots.at_least(axes[0], 0.2 / len(columns))
    plots.legend(figure, looks if len(looks) > 1 else {}, "a line per trained model")
    return figure
