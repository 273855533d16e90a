"""What each arm scores and costs, and the front of those that none beats in both."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from reports import names
from reports.cells import difference, named, summary, table_of
from reports.evidence.evidence import Evidence
from reports.plots import COLOURS, Look, front, legend, panels
from reports.reading.frames import records
from reports.section import Section, Table
from reports.tables.arms import LAYER_MIX
from reports.tables.costs import FLOAT16
from reports.tables.costs import front as pareto_front
from reports.words.text import number

KINDS = {
    "frozen, matched": Look(COLOURS[0], "o"),
    "frozen, own width": Look(COLOURS[4], "s"),
    "base model changed": Look(COLOURS[1], "^"),
}
COSTS = {
    "training": "operations of training (computed)",
    "use": "operations per token of one more task (millions, computed)",
    "operations": "operations per token at use (millions, computed)",
}
ALIKE = 0.01
"""Share within which costs are taken as equal."""


@dataclass(frozen=True)
class Frames:
    """costs: as from `costs.by_arm`, the best first, with number, kind, operations and learning rate.

    drawn: columns of `COSTS` that have a panel
    """

    evidence: Evidence
    costs: pd.DataFrame
    drawn: Sequence[str]


def frames(evidence: Evidence) -> Frames | None:
    arms, backbone = {arm.name: arm for arm in evidence.plan.arms}, evidence.loaded.study.environment.backbone
    table = evidence.costs
    several = len({arm.fusion for arm in arms.values()}) > 1
    if len(table) < 2:
        return None
    base = table["layers"] * (backbone.layer_parameters or math.nan)
    table = table.assign(
        kind=[
            _kind(arms[row["arm"]].config, arms[row["arm"]].fusion, row["intact"]) for row in records(table)
        ],
        rate=[float(arms[name].config.get("lr") or math.nan) for name in table["arm"]],
        operations=(2e-6 * (base + table["weights"])).where(table["intact"].astype(bool)),
    ).sort_values("score", ascending=False, kind="stable")
    drawn = ["training", "use"] if several else ["operations"]
    if not several and not table["operations"].max() > (1 + ALIKE) * table["operations"].min():
        return None
    return Frames(evidence, table.assign(number=range(1, len(table) + 1)), drawn)


def _kind(config: dict[str, Any], fusion: str, intact: bool) -> str:
    """Return what a method is to the comparison."""
    if not intact:
        return "base model changed"
    # A method without the choice reads hidden states at their own width, but for the layer mix, which projects them.
    return (
        "frozen, own width" if config.get("own_width", fusion not in ("", LAYER_MIX)) else "frozen, matched"
    )


def tables(frames: Frames) -> Sequence[Table]:
    evidence = frames.evidence
    control, base = evidence.plan.control, evidence.loaded.study.environment.backbone.parameters
    claims = {claim.arm: claim for claim in evidence.claims if claim.control == control and claim.n}
    scores = {row["arm"]: summary(row) for row in records(evidence.arms)}
    heads: dict[str, Any] = {
        "number": "number",
        "arm": lambda row: named(row["arm"]),
        evidence.scored.name: lambda row: scores[row["arm"]],
        "against the control": lambda row: difference(claims[row["arm"]]) if row["arm"] in claims else "",
        "base model intact": lambda row: "yes" if row["intact"] else "no",
        "parameters trained": lambda row: (
            f"{row['parameters']:,.0f}" + (f" ({row['parameters'] / base:.1%})" if base else "")
        ),
        "training: operations": lambda row: f"{row['training']:.1e}",
        "seconds (measured)": lambda row: number(row["seconds"], 0),
        "one more task: operations per token (millions)": lambda row: number(row["use"], 2),
        "operations per token at use (millions)": lambda row: number(row["operations"], 2),
        "weights (MB, float16)": lambda row: number(row["weights"] * FLOAT16 / 1e6, 2),
        "layers that run": lambda row: number(row["layers"], 1),
        "learning rate": lambda row: "" if pd.isna(row["rate"]) else f"{row['rate']:.2g}",
    }
    caption = (
        "Operations, weights and bytes are computed from shapes, seconds are measured; a frozen base model runs once "
        "for all its tasks."
    )
    return [table_of(frames.costs, heads, caption)]


def draw(frames: Frames) -> Figure:
    """Mean score against each cost; each front is a line."""
    costs = frames.costs.assign(mean=frames.costs["score"], series=frames.costs["kind"])
    figure, axes = panels([""] * len(frames.drawn), 3.4, y=frames.evidence.scored, share=False)
    fronts = {
        cost: pareto_front(costs.assign(cost=costs[cost].map(_rounded)), "cost") for cost in frames.drawn
    }
    costs["number"] = costs["number"].where(
        costs["arm"].isin({arm for own in fronts.values() for arm in own})
    )
    for panel, (cost, ahead) in zip(axes, fronts.items(), strict=True):
        front(costs.assign(cost=costs[cost], on_front=costs["arm"].isin(ahead)), panel, looks=KINDS)
        panel.set_xlabel(COSTS[cost].replace(" (", "\n("))
    entries = {kind: how for kind, how in KINDS.items() if kind in set(costs["kind"])}
    named_points = costs.dropna(subset=["number"])
    entries |= {
        f"{number:.0f}: {names.arm(arm, frames.evidence.plan)}": Look("none", "")
        for number, arm in zip(named_points["number"], named_points["arm"], strict=True)
    }
    legend(figure, entries, "means over seeds; line: none is better and cheaper", lines=False)
    return figure


def _rounded(cost: float) -> float:
    """Return the logarithm of a cost such that costs alike are equal."""
    return round(math.log(cost), 2) if cost > 0 else math.nan


SECTION = Section("Scores and costs", frames, tables, {"costs": draw}, "Score of each arm against its cost")
