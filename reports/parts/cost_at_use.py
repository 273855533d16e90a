"""Score against the cost at use, with the Pareto front: the arms that none beats in both."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from reports.drawing.fronts import cost_panel, front_legend, number_points
from reports.drawing.pieces import unit_below
from reports.drawing.style import COLOURS, new_figure
from reports.evidence.evidence import Evidence
from reports.parts.part import Part, figure_link
from reports.reading.frames import records
from reports.tables.costs import front as pareto_front
from reports.words.labels import AxisLabel
from reports.words.text import code, folded, number, several, table

MIN_COST_DIFFERENCE = 0.1
"""Share by which the dearest arm of the front must cost more than the cheapest: below it, cost decides nothing."""
NAMED = 8
"""Most arms of the front named in the figure."""


@dataclass(frozen=True)
class Info:
    """costs: as from `costs.by_arm`, with operations, per token, in millions; front: the arms on it, by rising cost."""

    costs: pd.DataFrame
    front: tuple[str, ...]
    score: AxisLabel
    layers: int


def info(evidence: Evidence) -> Info | None:
    if len({arm.fusion for arm in evidence.plan.arms}) > 1:
        return None  # what methods cost has a part of its own
    backbone = evidence.loaded.study.environment.backbone
    # A base model that was changed runs for one task alone.
    costs = evidence.costs[evidence.costs["intact"].astype(bool)]
    weights = costs["layers"] * (backbone.layer_parameters or float("nan")) + costs["weights"]
    costs = costs.assign(operations=2e-6 * weights)
    costed = costs.dropna(subset=["operations", "score"]).set_index("arm")["operations"]
    log_costs = np.log(costs["operations"].where(costs["operations"] > 0)).round(2)  # alike within 1%
    front = pareto_front(costs.assign(operations=log_costs), "operations")
    if not front or costed[front[-1]] < (1 + MIN_COST_DIFFERENCE) * costed[front[0]]:
        return None
    return Info(costs, tuple(front), evidence.scored, backbone.layers)


def section(info: Info) -> list[str]:
    scored = info.score.name
    rows = [
        [
            code(row["arm"]),
            number(row["live"], 2),
            f"{number(row['layers'], 2)} of {info.layers}",
            number(row["operations"]),
            f"{number(row['score'])} (n = {row['n']})",
        ]
        for row in records(info.costs.sort_values("operations", kind="stable"))
    ]
    heads = [
        "arm",
        "live layers",
        "layers that must run",
        "operations per token (millions)",
        f"mean {scored}",
    ]
    return [
        "The cost at use is **computed**, not measured: two operations per weight and token, of the base model up to "
        "the deepest live layer, the live projections and the head (also the size of these weights in float16, in "
        "MB); means over seeds, no interval. Pareto front, costs within 1% taken as equal: "
        f"{several([code(arm) for arm in info.front], 6)}.",
        figure_link("cost_at_use", f"{scored} against the operations per token at use"),
        folded("Cost and score of each arm", len(rows), table(heads, rows)),
    ]


def draw(info: Info) -> Figure:
    """Mean score of each arm against its operations per token; the front is a line."""
    figure = new_figure(3.8)
    axes = figure.add_subplot()
    names, looks = info.front[:NAMED], {"arm": (COLOURS[0], "o")}
    cost_panel(axes, info.costs.assign(kind="arm"), "operations", info.front, looks)
    front_legend(figure, looks, names)
    axes.set_xlabel("operations per token at use (millions, computed)")
    axes.set_ylabel(unit_below(info.score))
    figure.draw_without_rendering()
    number_points(axes, info.costs, "operations", names)
    return figure


PART = Part("Cost at use", info, section, {"cost_at_use": draw})
