"""What each arm scores and costs, and the front of those that none beats in both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure

from reports import names, plots
from reports.cells import named, summary, table_of
from reports.evidence.evidence import Evidence
from reports.plots import COLOURS, Look
from reports.reading.frames import records
from reports.section import Section, Table
from reports.tables import costs as costing
from reports.words.labels import LABELS
from reports.words.text import number

KINDS = {
    "frozen, matched": Look(COLOURS[0], "o"),
    "frozen, own width": Look(COLOURS[4], "s"),
    "base model changed": Look(COLOURS[1], "^"),
}


@dataclass(frozen=True)
class Frames:
    """costs: as from `costs.compared`; drawn: columns of it that have a panel."""

    evidence: Evidence
    costs: pd.DataFrame
    drawn: Sequence[str]


def frames(evidence: Evidence) -> Frames | None:
    backbone = evidence.environment.backbone
    table = costing.compared(evidence.costs, evidence.request, backbone)
    several = len({arm.fusion for arm in evidence.request.arms}) > 1
    if len(table) < 2 or (not several and costing.alike(table["operations"])):
        return None
    return Frames(evidence, table, ["training", "use"] if several else ["operations"])


def tables(frames: Frames) -> Sequence[Table]:
    scores = {row["arm"]: summary(row) for row in records(frames.evidence.arms)}
    heads = {
        "arm": lambda row: named(row["arm"]),
        frames.evidence.scored.name: lambda row: scores[row["arm"]],
        "base model": "kind",
        "parameters trained": lambda row: number(row["parameters"], 0),
        "training: operations": lambda row: f"{row['training']:.1e}",
        "seconds (measured)": lambda row: number(row["seconds"], 0),
        "one more task: operations per token (millions)": lambda row: number(row["use"], 2),
        "operations per token at use (millions)": lambda row: number(row["operations"], 2),
    }
    caption = "Operations are computed from shapes; a frozen base model runs once for all its tasks."
    return [table_of(frames.costs, heads, caption)]


def draw(frames: Frames) -> Figure:
    """Mean score against each cost; each front is a line."""
    costs = frames.costs.assign(mean=frames.costs["score"], series=frames.costs["kind"])
    figure, axes = plots.panels([""] * len(frames.drawn), 3.4, y=frames.evidence.scored, share=False)
    ahead = {cost: costing.front(costs, cost) for cost in frames.drawn}
    on_front = costs["arm"].isin({arm for own in ahead.values() for arm in own})
    numbered = costs.assign(number=costs["number"].where(on_front))
    for panel, (cost, own) in zip(axes, ahead.items(), strict=True):
        plots.front(numbered.assign(cost=costs[cost], on_front=costs["arm"].isin(own)), panel, looks=KINDS)
        panel.set_xlabel(LABELS[cost].replace(" (", "\n("))
    entries = {kind: how for kind, how in KINDS.items() if kind in set(costs["kind"])}
    for row in records(costs[on_front]):
        entries[f"{row['number']}: {names.arm(row['arm'], frames.evidence.request)}"] = Look("none", "")
    plots.legend(figure, entries, "means over seeds; line: none is better and cheaper", lines=False)
    return figure


SECTION = Section("Scores and costs", frames, tables, {"costs": draw}, "Score of each arm against its cost")
