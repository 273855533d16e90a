"""The mix weights of the best model: a bar per layer, and their history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from reports.drawing import style
from reports.drawing.pieces import BLANK, brief, legend_right
from reports.drawing.style import COLOURS, LINES, MARKERS, new_figure, pick, say_empty, styled
from reports.evidence import layer_weights, tables
from reports.evidence.evidence import Evidence
from reports.parts.cells import trial
from reports.parts.part import Part, figure_link
from reports.reading.frames import records
from reports.words.labels import LABELS
from reports.words.text import code, escape, folded, number, table

NO_WEIGHTS = "Nothing to draw: no history of learned mix weights."


@dataclass(frozen=True)
class Info:
    """best_trial, shown_trial: ids of the best trial, and of the best that learns its mix; best, shown: in words.

    kind: the mix of the best trial; weights, history, milestones: as from `layer_weights`
    """

    best_trial: str | None
    shown_trial: str | None
    best: str
    shown: str
    kind: str
    weights: pd.DataFrame
    history: pd.DataFrame
    milestones: pd.DataFrame


def info(evidence: Evidence) -> Info | None:
    if not evidence.has_mix:
        return None
    trials, plan = evidence.trials, evidence.plan
    best, shown = tables.best_trial(trials, plan), tables.best_trial(trials, plan, learned=True)
    history = layer_weights.mix_history(evidence.history, shown)
    return Info(
        best_trial=best,
        shown_trial=shown,
        best=trial(trials, best, plan.metric) if best else "",
        shown=trial(trials, shown, plan.metric) if shown else "",
        kind=layer_weights.mix_kind(trials, best),
        weights=layer_weights.mix_weights(trials, evidence.history, shown),
        history=history,
        milestones=layer_weights.mix_milestones(history),
    )


def section(info: Info) -> list[str]:
    bars = figure_link("mix_weights", "Mix weights of the best model, a bar per layer")
    lines = figure_link("mix_history", "Mix weights of the best model over training steps")
    if info.best_trial is None:
        return ["No trial was completed with a score, so there is no best model.", bars, lines]
    paragraphs = [
        "The completed trial of any stage with the best validation score is "
        f"{info.best}. It is one trial (n = 1), chosen for its score: its "
        "weights show what one good model does, not what its arm does on average."
    ]
    if info.shown_trial != info.best_trial:
        paragraphs.append(
            f"**Its mix weights are not learned** (mix: {code(info.kind)}), so they show nothing."
        )
    if info.shown_trial not in (None, info.best_trial):
        paragraphs.append(f"Shown instead is the best trial that learns its mix: {info.shown}.")
    if info.weights.empty:
        return [*paragraphs, "There is no history of learned mix weights.", bars, lines]
    weights = [[escape(row["layer"]), number(row["weight"])] for row in records(info.weights)]
    steps = [
        [escape(value) if name == "layer" else number(value) for name, value in row.items()]
        for row in records(info.milestones)
    ]
    return [
        *paragraphs,
        bars,
        lines,
        folded(
            "The mix weights as tables",
            len(weights) + len(steps),
            table(["layer", "mix weight p̃ at the best epoch (n = 1)"], weights),
            table([str(name) for name in info.milestones.columns], steps),
        ),
    ]


@styled
def draw_weights(info: Info) -> Figure:
    """The mix weights p~ of the trial shown, a bar per layer."""
    weights = info.weights
    figure = new_figure(3.4)
    axes = figure.add_subplot()
    if weights.empty:
        say_empty(axes, NO_WEIGHTS)
        return figure
    places = np.arange(len(weights))
    axes.bar(places, weights["weight"], color=COLOURS[0], edgecolor="black", linewidth=0.6, width=0.75)
    even = 1 / len(weights)
    axes.axhline(even, color="0.3", linestyle="--", linewidth=1, label=f"uniform mix, 1/{len(weights)}")
    many = len(weights) > 10
    for x, weight in enumerate(weights["weight"]):
        if not many or weight >= even:
            above: dict[str, Any] = {"xytext": (0, 2), "textcoords": "offset points"}
            axes.annotate(
                f"{weight:.2f}", (x, weight), **above, ha="center", va="bottom", fontsize=8, bbox=BLANK
            )
    style.name_ticks(axes, [brief(name) for name in weights["layer"]], axis="x")
    axes.margins(y=0.12)
    # Above the bars: inside, it would sit on one of them wherever it went.
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0.2, frameon=False)
    axes.set_xlabel(LABELS["layer"])
    axes.set_ylabel(LABELS["mix/weight"])
    axes.grid(visible=False, axis="x")
    return figure


@styled
def draw_history(info: Info) -> Figure:
    """Each component of p~ over training steps."""
    mix = info.history
    layers = list(mix["layer"].drop_duplicates())
    figure = new_figure(max(3.7, 1.2 + 0.22 * min(len(layers), 25)))
    axes = figure.add_subplot()
    if mix.empty:
        say_empty(axes, NO_WEIGHTS)
        return figure
    # Dark to light by depth, and not to the palest end, which a page would swallow.
    shades = mpl.colormaps["viridis"](np.linspace(0.0, 0.85, len(layers)))
    for place, layer in enumerate(layers):
        rows = mix[mix["layer"] == layer]
        axes.plot(
            rows["step"],
            rows["weight"],
            color=shades[place],
            linestyle=pick(LINES, place),
            marker=pick(MARKERS, place),
            markevery=max(1, len(rows) // 8),
            markersize=4.5,
            linewidth=1.3,
            label=brief(layer),
        )
    handles, _ = axes.get_legend_handles_labels()
    legend_right(figure, handles, "layer")
    axes.set_xlabel(LABELS["step"])
    axes.set_ylabel(LABELS["mix/weight"])
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure


PART = Part(
    "Mix weights of the best model", info, section, {"mix_weights": draw_weights, "mix_history": draw_history}
)
