"""What each method scores and costs: a table, and score against cost with the front of those that none beats."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from adalayers.comparisons import PlannedArm
from reports.drawing.fronts import cost_panel, front_legend, legend_height, number_points
from reports.drawing.style import COLOURS, new_figure, plain_text
from reports.evidence.claims import Claim
from reports.evidence.evidence import Evidence
from reports.parts.cells import difference, summary
from reports.parts.part import DETAILS, Part, figure_link
from reports.reading.frames import records, searched
from reports.tables import costs
from reports.tables.arms import LAYER_MIX
from reports.words.labels import AxisLabel
from reports.words.text import NONE, code, count, escape, folded, number, several, table

METHOD_STYLES = {
    "frozen, matched": (COLOURS[0], "o"),
    "frozen, own width": (COLOURS[4], "s"),
    "base model changed": (COLOURS[1], "^"),
}
COSTS = {
    "training": "operations of training (computed)",
    "use": "operations per token that one\nmore task adds (millions, computed)",
}


@dataclass(frozen=True)
class Info:
    """What is shown of methods and their costs.

    Attributes:
        costs: As from `costs.by_arm`, the best first, with kind, fusion and learning rate.
        scores: Arm -> its mean with its interval.
        fronts: Cost -> the arms on its front.
        claims: Arm -> its claim against the control.
        tuned: Trials of each method's search, 0 without one; most: of the longest, which has to try every layer.
    """

    costs: pd.DataFrame
    scores: dict[str, str]
    fronts: dict[str, tuple[str, ...]]
    claims: dict[str, Claim]
    dropped: tuple[str, ...]
    tuned: int
    most: int
    score: AxisLabel
    control: str
    smallest: float | None
    base: int
    together: str


def info(evidence: Evidence) -> Info | None:
    plan, request, trials = evidence.plan, evidence.loaded.study.request, evidence.trials
    table = evidence.costs
    if len(table) < 2:
        return None
    arms = {arm.name: arm for arm in plan.arms}
    table = table.assign(
        kind=[_kind(arms[name], intact) for name, intact in zip(table["arm"], table["intact"], strict=True)],
        fusion=[arms[name].fusion for name in table["arm"]],
        rate=[arms[name].config.get("lr", math.nan) for name in table["arm"]],
    ).sort_values("score", ascending=False, kind="stable")
    return Info(
        table,
        {row["arm"]: summary(row) for row in records(evidence.arms)},
        {cost: tuple(costs.front(table, cost)) for cost in COSTS},
        {claim.arm: claim for claim in evidence.claims if claim.control == plan.control and claim.n},
        tuple(dropped.arm for dropped in request.dropped_arms),
        request.trials if evidence.searches else 0,
        int(searched(trials)["search"].value_counts().max() or 0) if evidence.searches else 0,
        evidence.scored,
        plan.control,
        plan.smallest_effect,
        evidence.loaded.study.environment.backbone.parameters,
        _together(evidence),
    )


def _together(evidence: Evidence) -> str:
    """Return how many trials shared what device while their seconds were measured."""
    at_a_time, device = evidence.loaded.study.runs.concurrency, evidence.loaded.study.environment.device
    trials = f"up to {count(at_a_time, 'trial')} at a time" if at_a_time else "beside other trials"
    return f"{trials} on {escape(device)}" if device and not device.startswith("cpu") else trials


def _kind(arm: PlannedArm, intact: bool) -> str:
    """Return what a method is to the comparison."""
    if not intact:
        return "base model changed"
    # A method without the choice reads hidden states at their own width, but for the layer mix, which projects them.
    own_width = arm.config.get("own_width", arm.fusion not in ("", LAYER_MIX))
    return "frozen, own width" if own_width else "frozen, matched"


def section(info: Info) -> list[str]:
    rows = [_row(info, position, row) for position, row in enumerate(records(info.costs), start=1)]
    longer = f" ({info.most} where each layer has to be tried)" if info.most > info.tuned else ""
    budget = (
        f"Each method was tuned by a search of {count(info.tuned, 'trial')}{longer}, on one seed, and confirmed as it "
        "was best: alike in number, so that one with more of its own to tune is tuned more coarsely."
        + (" Head2Toe trains twice." if (info.costs["fusion"] == "head2toe").any() else "")
        if info.tuned
        else "No method was tuned: all run at the study's own rates (`--trials N` tunes each)."
    )
    out = [code(name) for name in info.dropped]
    return [
        f"{budget} A frozen base model runs once for all its tasks, and what a task adds is what counts; a base model "
        "that was changed runs for its task alone. Costs are **computed** (a fusion's matrix products are counted, a "
        f"base model's follow from its weights), not timed. Seconds are measured, {info.together}, "
        "without the pass that stores the hidden states of a frozen base model.",
        figure_link("methods", f"{info.score.name} of each method against its cost"),
        *([f"Left out here: {several(out)}; why, says `{DETAILS}`."] if out else []),
        folded("The costs", len(rows), table([*rows[0]], [[*row.values()] for row in rows])),
    ]


def _row(info: Info, position: int, row: dict[str, Any]) -> dict[str, str]:
    """Return the cells of a method by their heads."""
    claim = info.claims.get(row["arm"])
    share = f" ({row['parameters'] / info.base:.1%})" if info.base else ""
    return {
        "number": str(position),
        "method": code(row["arm"]),
        f"mean {info.score.name} [95% interval]": info.scores[row["arm"]],
        "against the control": difference(claim) if claim else NONE,
        "verdict": claim.shown if claim else "control" if row["arm"] == info.control else NONE,
        "base model intact": "yes" if row["intact"] else "no",
        "parameters trained": f"{row['parameters']:,.0f}{share}",
        "training: operations (computed)": _short(row["training"], ".1e"),
        "seconds (measured)": number(row["seconds"], 0),
        "one more task at use: operations per token (millions)": number(row["use"], 2),
        "weights (MB, float16)": number(row["weights"] * costs.FLOAT16 / 1e6, 2),
        "bytes a token has to keep, at least": f"{row['kept'] * costs.FLOAT16:,.0f}",
        "layers that run": number(row["layers"], 1),
        "learning rate": _short(row["rate"], ".2g"),
    }


def _short(value: float, how: str) -> str:
    return NONE if pd.isna(value) else format(value, how)


def draw(info: Info) -> Figure:
    """Mean score of each method against the cost of training, and of one more task; each front is a line."""
    names = info.costs["arm"].tolist()
    figure = new_figure(4.6 + legend_height(names), width=10.0)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (cost, label) in zip(panels, COSTS.items(), strict=True):
        cost_panel(axes, info.costs, cost, info.fronts[cost], METHOD_STYLES)
        axes.set_xlabel(label)
    panels[0].set_ylabel(plain_text(textwrap.fill(info.score, 40)))
    front_legend(figure, METHOD_STYLES, names)
    figure.draw_without_rendering()
    for axes, cost in zip(panels, COSTS, strict=True):
        number_points(axes, info.costs, cost, names)
    return figure


def answer(info: Info) -> list[str]:
    """Name the best mean with the base model intact, the cheapest near it, and the best of all."""
    intact = info.costs[info.costs["intact"]]
    if intact.empty:
        return []
    best = records(intact)[0]
    near = intact[best["score"] - intact["score"] <= (info.smallest or 0.0)]
    cheap = records(near.sort_values("use", kind="stable"))[0]
    near_by = f"within {info.smallest:g} of" if info.smallest else "equal to"
    text = f"**By cost**: with the base model intact, {code(best['arm'])} has the best mean ({number(best['score'])})"
    if cheap["arm"] != best["arm"]:
        text += (
            f", and {code(cheap['arm'])} adds least of those {near_by} it: {number(cheap['use'], 2)} "
            f"instead of {number(best['use'], 2)} million operations per token"
        )
    for top in records(info.costs[~info.costs["intact"]])[:1]:
        text += f"; a changed base model gives {code(top['arm'])} {number(top['score'])}"
        if top["score"] > best["score"] and best["use"] > 0:
            text += f", for {top['use'] / best['use']:,.0f} times the operations per token of one more task"
    return [f"{text}. Means, not claims."]


PART = Part("What each method scores and costs", info, section, {"methods": draw}, answer)
