"""Hidden-state variability of each layer, measured without training, next to the mix weights that are learned."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure

from adalayers.results.measures import measured
from reports.drawing import style
from reports.drawing.pieces import brief, point
from reports.drawing.style import COLOURS, MARKERS, new_figure, plain_text, styled
from reports.evidence import layers
from reports.evidence.evidence import Evidence
from reports.evidence.layer_weights import WEIGHT, at_best, state_name
from reports.evidence.rank_agreement import EXACT, critical, spearman
from reports.evidence.statistics import LEVEL, Interval, mean_interval
from reports.evidence.tables import confirmed, is_learned
from reports.parts.part import Part, figure_link
from reports.reading.frames import numbers, records
from reports.words.text import NONE, code, count, escape, estimate, folded, number, table

MEASURE = "variability"
NU = "variability/nu_"
"""What columns of `trials.csv` begin with that hold nu of a hidden state."""
ROUNDING = 1e-3
"""Share by which nu of the same data may differ between machines."""
WIDE = 30.0
"""A range of nu, largest over smallest, that wants a logarithmic axis."""


@dataclass(frozen=True)
class Layer:
    """One layer; rank: of nu, 1 the lowest; weight: learned, over seeds; score: of the layer alone, if it was run."""

    name: str
    nu: float
    rank: int
    weight: Interval
    score: Interval | None


@dataclass(frozen=True)
class Info:
    """agreement: seed -> Spearman's r of -nu and the weights learned with it; alone: that of -nu and single layers.

    chosen: whether nu is that by which the study's own trials chose a layer
    """

    layers: tuple[Layer, ...]
    arm: str
    agreement: Mapping[int, float]
    alone: float | None
    scored: str
    chosen: bool = False

    @property
    def mixed(self) -> list[Layer]:
        """The layers that have a learned weight."""
        return [layer for layer in self.layers if layer.weight.mean is not None]

    @property
    def moved(self) -> float:
        """How far the mean weight of a layer lies from that of the uniform mix, at most, as a share of the latter."""
        weights = [layer.weight.mean or 0.0 for layer in self.mixed]
        return max(abs(weight * len(weights) - 1) for weight in weights)


def info(evidence: Evidence) -> Info | None:
    found = measured(evidence.loaded.results.folder).get(MEASURE)
    chosen = of_trials(evidence.trials)
    by_layer = chosen or dict(found.by_layer if found else {})
    single = layers.single_layers(evidence.trials, evidence.plan, evidence.split)
    arm = _learned(evidence, single)
    if not by_layer or arm is None:
        return None
    rows = confirmed(evidence.trials)
    rows = rows[rows["arm"] == arm]
    weights = at_best(rows, evidence.history).set_index("trial_id")
    nus = {name: nu for name, nu in by_layer.items() if f"{WEIGHT}{name}" in weights.columns}
    if not nus or weights.empty:
        return None
    against = [-nu for nu in nus.values()]
    seeds = dict(zip(rows["trial_id"], numbers(rows, "seed"), strict=True))
    agreement = {}
    for trial_id, of in weights.iterrows():
        r = spearman(against, [of[f"{WEIGHT}{name}"] for name in nus])
        if r is not None and not math.isnan(seeds[trial_id]):
            agreement[int(seeds[trial_id])] = r
    scores = _scores(evidence, single)
    ordered = sorted(by_layer.values())
    shown = tuple(
        Layer(
            state_name(f"{WEIGHT}{name}"),
            nu,
            1 + ordered.index(nu),
            mean_interval(weights[f"{WEIGHT}{name}"], limits=(0.0, 1.0))
            if name in nus
            else Interval(None, None, None, 0),
            scores.get(name),
        )
        for name, nu in by_layer.items()
    )
    known = [layer for layer in shown if layer.score is not None]
    alone = spearman(
        [-layer.nu for layer in known], [layer.score.mean or 0.0 for layer in known if layer.score]
    )
    return Info(
        shown,
        arm,
        dict(sorted(agreement.items())),
        alone,
        evidence.scored.split(" (")[0],
        bool(chosen),
    )


def of_trials(trials: pd.DataFrame) -> dict[str, float]:
    """Return nu by hidden state as trials found it that chose a layer by it; none where they found different ones."""
    columns = [column for column in trials.columns if column.startswith(NU)]
    found = trials[columns].dropna(how="all").astype(float)
    if found.empty or (found.max() - found.min() > ROUNDING * found.max()).any():
        return {}
    return {str(name).removeprefix(NU): float(nu) for name, nu in found.mean().items()}


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
    lowest = min(info.layers, key=lambda layer: layer.rank)
    heads = ["layer", "ν", "rank of ν", f"learned p̃, mean [{LEVEL:.0%} interval]"]
    alone = any(layer.score for layer in info.layers)
    rows = [
        [
            *(escape(layer.name), number(layer.nu), str(layer.rank), _interval(layer.weight)),
            *([_interval(layer.score)] if alone else []),
        ]
        for layer in info.layers
    ]
    return [
        "ν of a layer says how much the base model's hidden states vary within the task's classes, beside between "
        f"them: low where classes already lie apart. It is measured before anything is trained{_measured(info)}, and "
        f"lowest for {escape(lowest.name)}. Next to it stand the mix weights p̃ that {code(info.arm)} has at its best "
        "epoch.",
        f"{_agreement(info)} {_chance(info)} {_caution(info)}",
        figure_link("variability", "Variability and learned mix weights by layer"),
        folded(
            "The layers as a table",
            len(rows),
            table([*heads, *([f"{info.scored} of the layer alone"] if alone else [])], rows),
        ),
    ]


def _measured(info: Info) -> str:
    """Say on what: a sample has fewer examples of rare classes, and may put layers in another order."""
    if info.chosen:
        return ", here over all training examples, as the trials did that chose a layer by it"
    return " (see *Measured without training*)"


def _agreement(info: Info) -> str:
    found = list(info.agreement.values())
    if not found:
        return "**Do they agree?** There is no rank correlation: fewer than three layers, or weights without order."
    mean, least, most = (
        number(value, 2, signed=True) for value in (sum(found) / len(found), min(found), max(found))
    )
    spread = f"n = {count(len(found), 'seed')}"
    if len(found) > 1:
        spread = f"mean over {count(len(found), 'seed')}, from {least} to {most}"
    single = (
        ""
        if info.alone is None
        else f" Of −ν and the score of each layer alone it is {number(info.alone, 2, signed=True)}."
    )
    return f"**Do they agree?** Spearman's r of −ν and p̃ is {mean} ({spread}).{single}"


def _chance(info: Info) -> str:
    n = len(info.mixed)
    least = critical(n)
    if least is None:
        return (
            f"With {count(n, 'layer')} no r says much: even a perfect order comes about by chance too often "
            f"(more than {1 - LEVEL:.0%} of cases, two-sided)."
        )
    how = "counted over all orders" if n <= EXACT else "by Student's t"
    return (
        f"With {n} layers an |r| of one seed below about {number(least, 2)} is compatible with chance (two-sided "
        f"{1 - LEVEL:.0%}, {how}). Seeds share ν and the data, so that more of them do not make it surer."
    )


def _caution(info: Info) -> str:
    return (
        f"The weights of {code(info.arm)} differ from the uniform mix by at most {info.moved:.1%}: weights that hardly "
        "move, as at α = 1 with a small learning rate, have an order that says little. Neighbouring layers "
        "are alike, so that both orders are smooth, and agree by chance more often than orders of unrelated numbers."
    )


def _interval(of: Interval | None) -> str:
    return NONE if of is None else estimate(of.mean, of.low, of.high, of.n)


@styled
def draw(info: Info) -> Figure:
    """ν by layer on the left, learned weights by layer on the right."""
    figure = new_figure(3.4)
    left, right = figure.subplots(1, 2)
    names = [brief(layer.name) for layer in info.layers]
    nus = [layer.nu for layer in info.layers]
    left.plot(range(len(nus)), nus, color=COLOURS[1], marker=MARKERS[1], linewidth=1.2)
    log = min(nus) > 0 and max(nus) > WIDE * min(nus)
    if log:
        left.set_yscale("log")
    left.set_ylabel(f"variability ν{', log scale' if log else ''}\n(low: classes lie apart)")
    for place, layer in enumerate(info.layers):
        of = layer.weight
        mean, low, high = (float("nan") if end is None else end for end in (of.mean, of.low, of.high))
        point(right, place, mean, low, high, COLOURS[0], MARKERS[0], along="y")
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
