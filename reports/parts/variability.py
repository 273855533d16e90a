"""Hidden-state variability of each layer, measured without training, next to the mix weights that are learned."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure

from adalayers.results.intervals import LEVEL, Interval, mean_interval
from adalayers.results.measures import measured
from reports.drawing import style
from reports.drawing.pieces import brief, point
from reports.drawing.style import COLOURS, MARKERS, new_figure, plain_text
from reports.evidence.evidence import Evidence
from reports.parts.cells import interval_cell
from reports.parts.part import Part, figure_link
from reports.reading.frames import numbers, records
from reports.tables import layers
from reports.tables.arms import confirmed, is_learned
from reports.tables.mix import WEIGHT, at_best, state_name
from reports.tables.rank_agreement import EXACT, critical, spearman
from reports.words.text import code, count, escape, folded, number, table

MEASURE = "variability"
NU = "variability/nu_"
"""What columns of `trials.csv` begin with that hold nu of a hidden state."""
ROUNDING = 1e-3
"""Share by which nu of the same data may differ between machines."""
LOGARITHMIC_RANGE = 30.0
"""A range of nu, largest over smallest, that wants a logarithmic axis."""


@dataclass(frozen=True)
class Layer:
    """One layer; weight: learned, over seeds; score: of the layer alone, if it was run."""

    name: str
    nu: float
    weight: Interval
    score: Interval | None


@dataclass(frozen=True)
class Info:
    """What the section says.

    Attributes:
        arm: The one whose weights are shown.
        agreement: Seed -> Spearman's r of -nu and the weights learned with it.
        alone: Spearman's r of -nu and the scores of single layers.
        selected: Whether the study's own trials selected a layer by nu, which is then theirs.
    """

    layers: tuple[Layer, ...]
    arm: str
    agreement: Mapping[int, float]
    alone: float | None
    scored: str
    selected: bool = False

    @property
    def mixed(self) -> list[Layer]:
        """The layers that have a learned weight."""
        return [layer for layer in self.layers if layer.weight.mean is not None]

    @property
    def deviation(self) -> float:
        """The largest deviation of a layer's mean weight from the uniform mix, as a share of the latter."""
        weights = [layer.weight.mean or 0.0 for layer in self.mixed]
        return max(abs(weight * len(weights) - 1) for weight in weights)


def info(evidence: Evidence) -> Info | None:
    """None where nothing was measured by layer, or no mix of these layers was learned."""
    sample = measured(evidence.loaded.results.folder).get(MEASURE)
    selected = of_trials(evidence.trials)
    by_layer = selected or dict(sample.by_layer if sample else {})
    single = layers.single_layers(evidence.trials, evidence.plan, evidence.split)
    arm = _learned(evidence, single)
    if not by_layer or arm is None:
        return None
    rows = confirmed(evidence.trials)
    rows = rows[rows["arm"] == arm]
    weights = at_best(rows, evidence.history).set_index("trial_id")
    columns = {
        f"{WEIGHT}{name}": -nu for name, nu in by_layer.items() if f"{WEIGHT}{name}" in weights.columns
    }
    if not columns or weights.empty:
        return None
    seeds = dict(zip(rows["trial_id"], numbers(rows, "seed"), strict=True))
    agreement = {
        int(seeds[trial_id]): r
        for trial_id, row in weights.iterrows()
        if not math.isnan(seeds[trial_id])
        and (r := spearman([*columns.values()], row[[*columns]])) is not None
    }
    scores = _scores(evidence, single)
    shown = []
    for name, nu in by_layer.items():
        column, weight = f"{WEIGHT}{name}", Interval(None, None, None, 0)
        if column in columns:
            weight = mean_interval(weights[column], limits=(0.0, 1.0))
        shown.append(Layer(state_name(column), nu, weight, scores.get(name)))
    alone = [(-layer.nu, layer.score.mean or 0.0) for layer in shown if layer.score is not None]
    return Info(
        tuple(shown),
        arm,
        dict(sorted(agreement.items())),
        spearman([nu for nu, _ in alone], [score for _, score in alone]),
        evidence.scored.name,
        bool(selected),
    )


def of_trials(trials: pd.DataFrame) -> dict[str, float]:
    """Return nu by hidden state of trials that selected a layer by it; none where theirs differ."""
    columns = [column for column in trials.columns if column.startswith(NU)]
    nus = trials[columns].dropna(how="all").astype(float)
    if nus.empty or (nus.max() - nus.min() > ROUNDING * nus.max()).any():
        return {}
    return {str(name).removeprefix(NU): float(nu) for name, nu in nus.mean().items()}


def _learned(evidence: Evidence, single: pd.DataFrame) -> str | None:
    """Return the arm whose weights are shown: the mix that single layers are compared with, else the best one."""
    control = evidence.row_of(evidence.plan.control)
    if len(single) and control and is_learned(str(control["mix"]), str(control["fusion"])):
        return str(control["arm"])
    return evidence.learned_arm


def _scores(evidence: Evidence, single: pd.DataFrame) -> dict[str, Interval]:
    """Return the score of each single layer with a trained projection, by the hidden state's name."""
    names = {int(name): name for name in evidence.plan.hidden_states if name.isdigit()}
    return {
        names.get(row["state"], f"{row['state']:02d}"): Interval(
            row["mean"], row["low"], row["high"], int(row["n"])
        )
        for row in records(single[single["trained"].astype(bool)].dropna(subset=["mean"]))
    }


def section(info: Info) -> list[str]:
    lowest = min(info.layers, key=lambda layer: layer.nu)
    source = (
        ", here on all training examples, by the trials that selected a layer by it"
        if info.selected
        else " (see *Measured without training*)"
    )
    alone = any(layer.score for layer in info.layers)
    heads = ["layer", "ν", f"learned p̃, mean [{LEVEL:.0%} interval]"]
    heads += [f"{info.scored} of the layer alone"] if alone else []
    rows = [
        [
            *(escape(layer.name), number(layer.nu), interval_cell(layer.weight)),
            *([interval_cell(layer.score)] if alone else []),
        ]
        for layer in info.layers
    ]
    return [
        "ν of a layer is the variability of its hidden states within the task's classes relative to that between "
        f"classes: low where classes are already separated. It is measured before any training{source}, and lowest for "
        f"{escape(lowest.name)}. Next to it are the mix weights p̃ of {code(info.arm)} at its best epoch.",
        f"{_agreement(info)} {_chance(info)} The weights of {code(info.arm)} deviate from the uniform mix by at most "
        f"{info.deviation:.1%}: the order of nearly uniform weights says little. Neighbouring layers are similar, so "
        "smooth orders agree by chance more often than orders of unrelated numbers.",
        figure_link("variability", "Variability and learned mix weights by layer"),
        folded("The layers as a table", len(rows), table(heads, rows)),
    ]


def _agreement(info: Info) -> str:
    by_seed = list(info.agreement.values())
    if not by_seed:
        return "**Do they agree?** There is no rank correlation: fewer than three layers, or weights without order."
    mean, least, most = (
        number(value, 2, signed=True) for value in (sum(by_seed) / len(by_seed), min(by_seed), max(by_seed))
    )
    seeds = count(len(by_seed), "seed")
    spread = f"mean over {seeds}, from {least} to {most}" if len(by_seed) > 1 else f"n = {seeds}"
    text = f"**Do they agree?** Spearman's r of −ν and p̃ is {mean} ({spread})."
    if info.alone is not None:
        text += f" Of −ν and the score of each layer alone it is {number(info.alone, 2, signed=True)}."
    return text


def _chance(info: Info) -> str:
    n = len(info.mixed)
    least = critical(n)
    if least is None:
        return f"With {count(n, 'layer')} no r is significant (two-sided {1 - LEVEL:.0%})."
    how = "counted over all orders" if n <= EXACT else "by Student's t"
    return (
        f"With {n} layers an |r| of one seed below about {number(least, 2)} is compatible with chance (two-sided "
        f"{1 - LEVEL:.0%}, {how}). Seeds share ν and the data, so more of them do not make it surer."
    )


def draw(info: Info) -> Figure:
    """ν by layer on the left, learned weights by layer on the right."""
    figure = new_figure(3.4)
    left, right = figure.subplots(1, 2)
    names = [brief(layer.name) for layer in info.layers]
    nus = [layer.nu for layer in info.layers]
    left.plot(range(len(nus)), nus, color=COLOURS[1], marker=MARKERS[1], linewidth=1.2)
    log = min(nus) > 0 and max(nus) > LOGARITHMIC_RANGE * min(nus)
    if log:
        left.set_yscale("log")
    left.set_ylabel(f"variability ν{', log scale' if log else ''}\n(low: classes lie apart)")
    for position, layer in enumerate(info.layers):
        weight = layer.weight
        mean, low, high = (math.nan if end is None else end for end in (weight.mean, weight.low, weight.high))
        point(right, position, mean, low, high, COLOURS[0], MARKERS[0], along="y")
    right.axhline(1 / len(info.mixed), color="0.3", linestyle="--", linewidth=1, zorder=1)
    right.margins(y=0.1)
    right.set_ylim(bottom=0)
    right.set_ylabel("learned mix weight p̃\n(share of 1; dashed: uniform mix)")
    right.set_title(plain_text(info.arm))
    left.set_title("measured without training")
    for axes in (left, right):
        style.name_ticks(axes, names, axis="x")
        axes.set_xlabel("layer (hidden state)")
    return figure


PART = Part("Variability by layer", info, section, {"variability": draw})
