"""What each arm scores and costs, and the front of those that none beats in both."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from reports import names, plots
from reports.evidence.evidence import Evidence
from reports.plots import COLOURS, Look
from reports.reading.frames import records
from reports.section import Section, named, summary, table_of
from reports.tables import costs as costing
from reports.words import LABELS, number

KINDS = {
    "projected to k": Look(COLOURS[0], "o"),
    "own width": Look(COLOURS[4], "s"),
    "base model changed": Look(COLOURS[1], "^"),
}


SEEN = 0.1
"""Share by which costs differ at least where a figure shows them."""


FEW = 8
"""Arms up to which a figure names all; of more, those on a front."""


def section(evidence: Evidence) -> Section | None:
    costs = costing.compared(evidence.costs, evidence.request, evidence.environment.backbone)
    several = len({arm.fusion for arm in evidence.request.arms}) > 1
    if len(costs) < 2 or (not several and costing.alike(costs["operations"])):
        return None
    scores = {row["arm"]: summary(row) for row in records(evidence.arms)}
    heads = {
        "arm": lambda row: named(row["arm"]),
        evidence.scored.name: lambda row: scores[row["arm"]],
        "hidden states": "kind",
        "parameters trained": lambda row: number(row["parameters"], 0),
        "training: operations": lambda row: f"{row['training']:.1e}",
        "seconds (measured)": lambda row: number(row["seconds"], 0),
        "one more task: operations per token (millions)": lambda row: number(row["use"], 2),
        "operations per token at use (millions)": lambda row: number(row["operations"], 2),
    }
    caption = "Operations are computed from shapes; a frozen base model runs once for all its tasks."
    figures = {"costs": draw(evidence, costs, ["training", "use"] if several else ["operations"])}
    tables = [table_of(costs, heads, caption)]
    return Section("Scores and costs", tables, figures, "Score of each arm against its cost")


def draw(evidence: Evidence, costs: pd.DataFrame, drawn: Sequence[str]) -> Figure:
    """Mean score against each cost that differs enough to be seen; each front is a line."""
    drawn = [cost for cost in drawn if not costing.alike(costs[cost], SEEN)] or drawn[-1:]
    figure, axes = plots.panels([""] * len(drawn), 3.4, y=evidence.scored, share=False)
    ahead = {cost: costing.front(costs, cost) for cost in drawn}
    on_front = costs["arm"].isin({arm for own in ahead.values() for arm in own})
    named = costs[on_front | (len(costs) <= FEW)]
    numbered = costs.assign(mean=costs["score"], series=costs["kind"], number=named["number"])
    for panel, (cost, own) in zip(axes, ahead.items(), strict=True):
        plots.front(numbered.assign(cost=costs[cost], on_front=costs["arm"].isin(own)), panel, looks=KINDS)
        panel.set_xlabel(LABELS[cost].replace(" (", "\n("))
    entries = {kind: how for kind, how in KINDS.items() if kind in set(costs["kind"])}
    for row in records(named):
        entries[f"{row['number']}: {names.arm(row['arm'], evidence.request)}"] = Look("none", "")
    plots.legend(figure, entries, "means over seeds; line: none is better and cheaper", lines=False)
    return figure
