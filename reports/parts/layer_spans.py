"""What a trained mix loses without layers i..j: heat maps over spans (Mohebbi and Rajaee, figure 8, for the mix)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from adalayers.results.intervals import LEVEL
from reports.drawing import style
from reports.drawing.pieces import heat_map
from reports.drawing.style import new_figure, plain_text
from reports.evidence.evidence import Evidence
from reports.parts.cells import relative
from reports.parts.part import Part, figure_link
from reports.reading.frames import records
from reports.words.labels import AxisLabel, label
from reports.words.text import code, count, folded, several, table

MAX_ARMS = 4
"""Most arms drawn, in the order of the plan."""
FREE = 0.01
"""Relative loss up to which a span is said not to be missed."""
PALE = 5.0
"""Per cent that the colours reach at least, so that noise stays pale."""
TEXTS = 12
"""Layers above which cells carry no numbers: they would not be read."""


@dataclass(frozen=True)
class Info:
    """What is shown of spans of layers.

    Attributes:
        changes: As from `variants.score_changes`, with first, last and renormalised.
        left_out: Arms whose models have learned nothing that could be lost.
    """

    changes: pd.DataFrame
    arms: tuple[str, ...]
    left_out: tuple[str, ...]
    score: AxisLabel


def info(evidence: Evidence) -> Info | None:
    spans = {name: how for name, how in evidence.loaded.study.request.variants.items() if how.without}
    changes = evidence.variants[evidence.variants["variant"].isin(spans)]
    evaluations = evidence.loaded.results.evaluations
    if not spans or evaluations.empty:
        return None
    changes = changes.assign(
        first=[spans[name].without[0] for name in changes["variant"]],
        last=[spans[name].without[-1] for name in changes["variant"]],
        renormalised=[spans[name].renormalise for name in changes["variant"]],
    )
    scored = evidence.trials[evidence.trials["trial_id"].isin(evaluations["trial_id"])]
    arms = [arm.name for arm in evidence.plan.arms if arm.name in set(scored["arm"])]
    scored_arms = set(changes["arm"])
    return Info(
        changes,
        tuple(arm for arm in arms if arm in scored_arms),
        tuple(arm for arm in arms if arm not in scored_arms),
        label(f"{evaluations['split'].iloc[0]}/{evidence.plan.metric}"),
    )


def section(info: Info) -> list[str]:
    if not info.arms:
        return ["Every trained model scores hardly more than a trivial one: there is nothing to lose."]
    scored = info.score.name
    rows = [
        [
            code(row["arm"]),
            _name(row["first"], row["last"]),
            "to 1 again" if row["renormalised"] else "as they are",
            relative(row),
        ]
        for row in records(info.changes)
    ]
    change = f"change of {scored} in %, mean [{LEVEL:.0%} interval]"
    nothing = (
        f" Left out, for their models score hardly more than a trivial one: {several(map(code, info.left_out))}."
        if info.left_out
        else ""
    )
    heads = ["arm", "layers taken away", "weights of the rest", change]
    return [
        f"Layers i to j are taken away from each trained model, which is not trained again: the change of {scored} "
        "as a share of the whole model's, mean over seeds, the weights of the rest scaled to sum to 1. Intervals are t "
        f"intervals, not corrected.{nothing}",
        figure_link("layer_spans", f"Relative change of {scored} without layers i to j of a trained mix"),
        folded("Every span as a table", len(rows), table(heads, rows)),
    ]


def _told(info: Info, arm: str) -> str:
    """Say which layer is missed most, how long a span can be missed, and whether renormalising matters."""
    rows = info.changes[info.changes["arm"] == arm]
    again = rows[rows["renormalised"]]
    if again.empty:
        return ""
    single = again[again["first"] == again["last"]].sort_values("mean")
    worst = records(single)[0]
    text = (
        f"{code(arm)} misses {_name(worst['first'], worst['last'])} most among single layers "
        f"({100 * worst['mean']:+.1f}%, n = {worst['n']})"
    )
    free = again[again["mean"] >= -FREE]
    if len(free):
        longest = records(free.assign(size=free["last"] - free["first"]).sort_values("size"))[-1]
        text += (
            f"; it can do without {_name(longest['first'], longest['last'])} "
            f"({count(int(longest['size']) + 1, 'layer')}) at a loss of at most {FREE:.0%}"
        )
    both = again.merge(rows[~rows["renormalised"]], on=["first", "last"], suffixes=("", "_plain"))
    if len(both):
        gain = float((both["mean"] - both["mean_plain"]).mean())
        text += f"; scaling the rest to 1 changes a span's score by {100 * gain:+.1f}% on average"
    return f"{text}."


def _name(first: int, last: int) -> str:
    return f"layer {first}" if first == last else f"layers {first} to {last}"


def draw(info: Info) -> Figure | None:
    """A heat map per arm: from the first layer taken away (down) to the last (across)."""
    arms = info.arms[:MAX_ARMS]
    if not arms:
        return None
    changes = info.changes[info.changes["renormalised"] & info.changes["arm"].isin(arms)]
    layers = sorted({*changes["first"], *changes["last"]})
    figure = new_figure(1.6 + 6.9 / len(arms) if len(arms) > 1 else 4.2)
    panels = figure.subplots(1, len(arms), squeeze=False)[0]
    lowest = min(100 * float(changes["mean"].min()), -PALE)
    image = None
    for axes, arm in zip(panels, arms, strict=True):
        grid = np.full((len(layers), len(layers)), np.nan)
        for row in records(changes[changes["arm"] == arm]):
            grid[layers.index(row["first"]), layers.index(row["last"])] = -min(0.0, 100 * row["mean"])
        texts = [
            ["" if np.isnan(loss) else f"{-loss:.0f}".replace("-0", "0") for loss in row] for row in grid
        ]
        if len(layers) > TEXTS:
            texts = [[""] * len(layers)] * len(layers)
        image = heat_map(axes, grid, texts, 0.0, -lowest, fontsize=8 if len(arms) < 3 else 5.5)
        style.name_ticks(axes, layers, axis="x")
        style.name_ticks(axes, layers, axis="y")
        axes.set_title(plain_text(arm), loc="left", fontsize=10)
        axes.set_xlabel("last layer taken away")
    panels[0].set_ylabel("first layer taken away")
    assert image is not None
    bar = figure.colorbar(image, ax=list(panels))
    bar.set_label(plain_text(f"loss of {info.score.name}\n(% of the whole model's)"))
    return figure


def answer(info: Info) -> list[str]:
    told = [_told(info, arm) for arm in info.arms[:MAX_ARMS]]
    return told and [
        f"**Without some layers** (relative change of {info.score.name}, not trained again): {' '.join(told)}"
    ]


PART = Part("Without some layers", info, section, {"layer_spans": draw}, answer)
