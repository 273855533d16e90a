"""What each method scores and costs: a table, and score against cost with the front of those that none beats."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from adalayers.comparisons import PlannedArm
from reports.drawing.pieces import legend_right
from reports.drawing.style import COLOURS, new_figure, plain_text, styled
from reports.evidence import costs as prices
from reports.evidence.claims import Claim
from reports.evidence.evidence import Evidence
from reports.evidence.tables import LAYER_MIX
from reports.parts.cells import difference
from reports.parts.part import DETAILS, Part, figure_link
from reports.reading.frames import records
from reports.words.labels import Label
from reports.words.text import NONE, code, count, escape, estimate, folded, number, several, table

NAMED = 9
"""Most methods named in the figure."""
APART = 14.0
"""Pixels between points below which their numbers would cover each other."""
KINDS = {
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
        prices: As from `costs.prices`, with kind and fusion.
        scores: Arm -> (mean, low, high, n).
        fronts: Cost -> the arms on its front.
        claims: Arm -> its claim against the control.
        tuned: Trials of each method's search, 0 without one.
        rates: Arm -> its learning rate.
    """

    prices: pd.DataFrame
    scores: dict[str, tuple[float, float, float, int]]
    fronts: dict[str, tuple[str, ...]]
    claims: dict[str, Claim]
    dropped: tuple[tuple[str, str], ...]
    rates: dict[str, float]
    tuned: int
    score: Label
    control: str
    smallest: float | None
    base: int
    maximise: bool
    together: str


def info(evidence: Evidence) -> Info | None:
    found = prices.prices(evidence.trials, evidence.plan, evidence.split)
    if len(found) < 2 or "methods" not in evidence.loaded.study.request.parts:
        return None
    maximise = evidence.plan.mode == "max"
    claims = [claim for claim in evidence.claims if claim.difference is not None and claim.kind == "arm"]
    asked = evidence.loaded.study.request
    arms = {arm.name: arm for arm in evidence.plan.arms}
    found = found.assign(
        kind=[_kind(arms[name], intact) for name, intact in zip(found["arm"], found["intact"], strict=True)],
        fusion=[arms[name].fusion for name in found["arm"]],
    )
    return Info(
        prices=found,
        scores={
            row["arm"]: (row["mean"], row["low"], row["high"], int(row["n"]))
            for row in records(evidence.arms)
            if row["n"]
        },
        fronts={cost: tuple(prices.front(found, cost, maximise=maximise)) for cost in COSTS},
        claims={claim.arm: claim for claim in claims if claim.control == evidence.plan.control},
        dropped=tuple((one.arm, one.reason) for one in asked.dropped_arms),
        rates={
            name: float(arm.config["lr"]) for name, arm in arms.items() if arm.config.get("lr") is not None
        },
        tuned=asked.trials if asked.trials and evidence.searches else 0,
        score=evidence.scored,
        control=evidence.plan.control,
        smallest=evidence.plan.smallest_effect,
        base=evidence.loaded.study.environment.backbone.parameters,
        maximise=maximise,
        together=_together(evidence),
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
    heads = [
        "method",
        f"mean {info.score.name} [95% interval]",
        "against the control",
        "verdict",
        "base model intact",
        "parameters trained",
        "training: operations (computed)",
        "seconds (measured)",
        "one more task at use: operations per token (millions)",
        "weights (MB, float16)",
        "bytes a token has to keep, at least",
        "layers that run",
        "learning rate",
    ]
    sign = -1.0 if info.maximise else 1.0
    ordered = info.prices.assign(_by=sign * info.prices["score"]).sort_values("_by", kind="stable")
    rows = []
    for row in records(ordered):
        claim = info.claims.get(row["arm"])
        mean, low, high, n = info.scores.get(row["arm"], (row["score"], float("nan"), float("nan"), row["n"]))
        share = f" ({row['parameters'] / info.base:.1%})" if info.base else ""
        rows.append(
            [
                code(row["arm"]),
                estimate(mean, low, high, n),
                difference(claim) if claim else NONE,
                claim.verdict if claim else "control" if row["arm"] == info.control else NONE,
                "yes" if row["intact"] else "no",
                f"{row['parameters']:,.0f}{share}",
                _power(row["training"]),
                number(row["seconds"], 0),
                number(row["use"], 2),
                number(row["weights"] * prices.FLOAT16 / 1e6, 2),
                f"{row['kept'] * prices.FLOAT16:,.0f}",
                number(row["layers"], 1),
                f"{info.rates[row['arm']]:.2g}" if row["arm"] in info.rates else NONE,
            ]
        )
    budget = (
        f"Each method was tuned by a search of {count(info.tuned, 'trial')}, on one seed, and confirmed as it was "
        "best: alike in number, so that one with more of its own to tune is tuned more coarsely."
        + (" Head2Toe trains twice." if (info.prices["fusion"] == "head2toe").any() else "")
        if info.tuned
        else "No method was tuned: all run at the study's own rates (`--trials N` tunes each)."
    )
    out = [code(name) for name, _ in info.dropped]
    return [
        f"{budget} A frozen base model runs once for all its tasks, and what a task adds is what counts; a base model "
        "that was changed runs for its task alone. Costs are **computed** (a fusion's matrix products are counted, a "
        f"base model's follow from its weights), not timed. Seconds are measured, {info.together}, "
        "without the pass that stores the hidden states of a frozen base model.",
        figure_link("methods", f"{info.score.name} of each method against its cost"),
        *([f"Left out here: {several(out)}; why, says [details]({DETAILS}#how-it-was-done)."] if out else []),
        folded("The costs", len(rows), table(heads, rows)),
    ]


def _power(value: float) -> str:
    return NONE if pd.isna(value) else f"{value:.1e}"


@styled
def draw(info: Info) -> Figure:
    """Mean score of each method against the cost of training, and of one more task; each front is a line."""
    figure = new_figure(4.6, width=10.0)
    panels = figure.subplots(1, 2, sharey=True)
    names = list(dict.fromkeys([info.control, *info.fronts["use"], *info.fronts["training"]]))[:NAMED]
    numbered = {name: str(place) for place, name in enumerate(names, start=1)}
    for axes, cost in zip(panels, COSTS, strict=True):
        _panel(axes, info, cost, numbered)
    panels[0].set_ylabel(plain_text(textwrap.fill(info.score, 40)))
    handles = [
        Line2D([], [], color=colour, marker=marker, linestyle="none", label=name)
        for name, (colour, marker) in KINDS.items()
    ]
    handles.append(Line2D([], [], color="0.4", linewidth=1.0, label="front: none is better\nand cheaper"))
    for name, place in numbered.items():
        handles.append(
            Line2D([], [], linestyle="none", label=plain_text(textwrap.fill(f"{place}: {name}", 30)))
        )
    legend_right(figure, handles, "means over seeds")
    return figure


def _panel(axes: Axes, info: Info, cost: str, numbered: dict[str, str]) -> None:
    known = info.prices.dropna(subset=[cost, "score"])
    on_front = known.set_index("arm").reindex(list(info.fronts[cost]))
    axes.plot(on_front[cost], on_front["score"], "-", color="0.4", linewidth=1.0, zorder=1)
    for row in records(known):
        colour, marker = KINDS[row["kind"]]
        axes.plot(row[cost], row["score"], marker, color=colour, markersize=5.5, zorder=3)
    if (known[cost] > 0).all() and len(known):
        axes.set_xscale("log")
        few = known[cost].max() < 100 * known[cost].min()  # too few powers of ten to read it by
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}".replace("e+", "e")))
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel(COSTS[cost])
    axes.margins(x=0.12, y=0.1)
    axes.autoscale_view()
    for at, text in _labels(axes, known[known["arm"].isin(numbered)], cost, numbered):
        axes.annotate(text, at, xytext=(5, 4), textcoords="offset points", fontsize=9, zorder=4)


def _labels(
    axes: Axes, known: pd.DataFrame, cost: str, numbered: dict[str, str]
) -> list[tuple[tuple[float, float], str]]:
    """Return where numbers stand and what they say: "2, 7" for points so near that theirs would cover each other."""
    places: Any = axes.transData.transform(known[[cost, "score"]].to_numpy(float)) if len(known) else []
    found: list[tuple[Any, tuple[float, float], list[str]]] = []
    for place, row in zip(places, records(known), strict=True):
        near = next((one for one in found if (abs(place - one[0]) < APART).all()), None)
        if near:
            near[2].append(numbered[row["arm"]])
        else:
            found.append((place, (row[cost], row["score"]), [numbered[row["arm"]]]))
    return [(at, ", ".join(sorted(names, key=int))) for _, at, names in found]


def answer(info: Info) -> list[str]:
    """Say what each price buys; what is shown better or worse, all pages say."""
    return _advice(info)


def _advice(info: Info) -> list[str]:
    """Name the best mean with the base model intact, the cheapest near it, and the best of all."""
    sign = 1.0 if info.maximise else -1.0
    intact = info.prices[info.prices["intact"]].dropna(subset=["score"])
    if intact.empty:
        return []
    by_score = intact.assign(_by=-sign * intact["score"]).sort_values("_by", kind="stable")
    best = records(by_score)[0]
    near = by_score[sign * (best["score"] - by_score["score"]) <= (info.smallest or 0.0)]
    cheap = records(near.sort_values("use", kind="stable"))[0]
    near_by = f"within {info.smallest:g} of" if info.smallest else "equal to"
    text = f"**By cost**: with the base model intact, {code(best['arm'])} has the best mean ({number(best['score'])})"
    if cheap["arm"] != best["arm"]:
        text += (
            f", and {code(cheap['arm'])} adds least of those {near_by} it: {number(cheap['use'], 2)} "
            f"instead of {number(best['use'], 2)} million operations per token"
        )
    changed = info.prices[~info.prices["intact"]].dropna(subset=["score"])
    if len(changed):
        top = records(changed.assign(_by=-sign * changed["score"]).sort_values("_by", kind="stable"))[0]
        gain = sign * (top["score"] - best["score"])
        of = f"; a changed base model gives {code(top['arm'])} {number(top['score'])}"
        if gain > 0 and best["use"] > 0:
            of += f", for {top['use'] / best['use']:,.0f} times the operations per token of one more task"
        text += of
    return [f"{text}. Means, not claims."]


PART = Part("What each method scores and costs", info, section, {"methods": draw}, answer)
