"""The mix weights: their entropy and live layers by arm, the weights by level, and those of the best model."""

from __future__ import annotations

from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from adalayers.results.study_file import Factor
from reports.drawing.axes import FactorAxis
from reports.drawing.pieces import brief, legend_right
from reports.drawing.style import COLOURS, LINES, MARKERS, new_figure, pick, plain_text
from reports.evidence.claims import Claim
from reports.evidence.evidence import Evidence
from reports.parts.cells import summary, trial
from reports.parts.comparisons import compared_table
from reports.parts.part import DETAILS, Part, figure_link
from reports.reading.factors import cell_names, column, level, level_name, levels, short
from reports.reading.frames import numbers, records
from reports.reading.load import Plan
from reports.tables import arms as tables
from reports.tables import mix as layer_weights
from reports.words.labels import LABELS
from reports.words.text import code, escape, folded, number, several, table

PANELS = 4
"""Most levels that have a panel of their own."""

NOTABLE_WEIGHT = 1.5
"""Times the weight in a uniform mix from which on, on average, the layer with the largest weight is named."""


@dataclass(frozen=True)
class BestModel:
    """The mix weights of one trial.

    name:  its id, arm and score, in words
    steps: a row per layer: its weight at some steps, and at the best epoch; history: step, layer, weight
    """

    name: str
    steps: pd.DataFrame
    history: pd.DataFrame


@dataclass(frozen=True)
class Info:
    """What is shown.

    by_arm: as from `tables.mix_by_arm`
    rows:   a row per trained model of the core: trial_id, level (of the first factor), line (its cell of the others),
            entropy, best_epoch; weights: those rows with columns of mix weights, named in layers
    lines:  those of the core, in order
    best:   None without a history of learned mix weights
    """

    by_arm: pd.DataFrame
    contrasts: tuple[Claim, ...]
    rows: pd.DataFrame
    weights: pd.DataFrame
    layers: tuple[str, ...]
    lines: tuple[str, ...]
    plan: Plan
    best: BestModel | None

    @property
    def first(self) -> Factor:
        """The factor along the axis, and of the panels; there is one where there are rows."""
        return self.plan.factors[0]


def info(evidence: Evidence) -> Info | None:
    if not evidence.has_mix:
        return None
    rows = _models(evidence)
    weights = layer_weights.at_best(rows, evidence.history)
    columns = tuple(name for name in weights.columns if name != "trial_id")
    weights = rows.merge(weights, on="trial_id")
    return Info(
        by_arm=evidence.mix_by_arm,
        contrasts=tuple(claim for claim in evidence.contrasts if claim.metric == "mix/entropy"),
        rows=rows,
        weights=weights,
        layers=columns if len(weights) else (),
        lines=evidence.lines if len(evidence.plan.factors) > 1 else ("",),
        plan=evidence.plan,
        best=_best(evidence),
    )


def _models(evidence: Evidence) -> pd.DataFrame:
    """Return `Info.rows`."""
    factors, core = evidence.plan.factors, evidence.mix_core
    trials = tables.confirmed(evidence.trials)
    trials = trials[trials["arm"].isin(set(core["arm"]))]
    level_of = dict(zip(core["arm"], core[column(factors[0].name)], strict=True)) if factors else {}
    line_of = dict(zip(core["arm"], cell_names(core, factors[1:]), strict=True))
    return pd.DataFrame(
        {
            "trial_id": trials["trial_id"],
            "level": trials["arm"].map(level_of),
            "line": trials["arm"].map(line_of),
            "best_epoch": numbers(trials, "best_epoch"),
            "entropy": numbers(trials, "mix/entropy"),
        }
    ).dropna(subset=["entropy"])


def _best(evidence: Evidence) -> BestModel | None:
    trials, plan = evidence.trials, evidence.plan
    best = tables.best_trial(trials, plan, learned=True)
    history = layer_weights.mix_history(evidence.history, best)
    if best is None or history.empty:
        return None
    steps = layer_weights.mix_milestones(history)
    at_best = layer_weights.at_best(trials[trials["trial_id"] == best], evidence.history)
    weights = at_best.drop(columns="trial_id").rename(columns=layer_weights.state_name).max()
    steps["best epoch"] = steps["layer"].map(weights)
    return BestModel(trial(trials, best, plan.metric), steps, history)


def short_section(info: Info) -> list[str]:
    if info.rows.empty:
        return []
    weights = ", and the weights, a line per trained model" if info.layers else ""
    return [
        f"Entropy of the mix weights p̃ at the best epoch{weights}.{_leading(info)} More: `{DETAILS}`.",
        *_links(info),
    ]


def section(info: Info) -> list[str]:
    rows = [
        [code(row["arm"]), summary(row, "entropy_"), summary(row, "live_", digits=1)]
        for row in records(info.by_arm)
    ]
    heads = ["arm", "entropy (nats), mean [interval]", "live layers, mean [interval]"]
    return [
        "Entropy of p̃ at the best epoch, in nats: 0 when one layer has all the weight, ln(number of layers) when all "
        f"share it alike. A layer is live while its weight is not cut to 0.{_leading(info)}",
        *_links(info),
        folded("The mix of each arm", len(rows), table(heads, rows)),
        *compared_table(info.contrasts, info.plan, "entropy (nats)"),
        *(_best_section(info.best) if info.best else ["No trial has a history of learned mix weights."]),
    ]


def _links(info: Info) -> list[str]:
    if info.rows.empty:
        return []
    first = short(info.first)
    entropy = figure_link("mix_entropy", f"Entropy of the mix weights against {first}, a dot per seed")
    weights = figure_link("mix_layers", f"Mix weights of every trained model by layer, a panel per {first}")
    return [entropy, weights] if info.layers else [entropy]


def _best_section(best: BestModel) -> list[str]:
    rows = [
        [escape(value) if name == "layer" else number(value) for name, value in row.items()]
        for row in records(best.steps)
    ]
    return [
        f"**The best model that learns its mix**, on validation, is {best.name}: one trial, chosen for its score, no "
        "average of its arm.",
        figure_link("mix_history", "Mix weights of the best model over training steps"),
        folded("Its mix weights", len(rows), table([str(name) for name in best.steps.columns], rows)),
    ]


def _leading(info: Info) -> str:
    """Return which layer most often has the largest weight, by level; nothing where it has hardly more than others."""
    if not info.layers:
        return ""
    levels_of_layer: dict[str, list[str]] = {}
    for value in levels(info.weights["level"])[:PANELS]:
        weights = _at_level(info.weights, value)[list(info.layers)]
        if (weights.max(axis=1) * weights.count(axis=1)).mean() < NOTABLE_WEIGHT:
            continue
        counts = weights.idxmax(axis=1).map(layer_weights.state_name).value_counts()
        symbol = "" if levels_of_layer else f"{escape(short(info.first))} = "
        share = f"{counts.iloc[0]} of {len(weights)} at {symbol}{escape(level_name(value))}"
        tied = sorted(map(str, counts.index[counts == counts.iloc[0]]))
        each = " each" if len(tied) > 1 else ""
        levels_of_layer.setdefault(several(tied), []).append(share + each)
    leading = "; ".join(f"{layer} in {several(shares, PANELS)}" for layer, shares in levels_of_layer.items())
    return f" Most often the largest weight: {leading}." if leading else ""


def _at_level(rows: pd.DataFrame, value: object) -> pd.DataFrame:
    return rows[[level(of_row) == value for of_row in rows["level"]]]


def draw_entropy(info: Info) -> Figure | None:
    """Entropy of p~ against the first factor: a dot per seed, a line through the means for each cell of the others."""
    if info.rows.empty:
        return None
    figure = new_figure(3.4)
    axes = figure.add_subplot()
    axis = FactorAxis(info.first, info.rows["level"])
    for index, name in enumerate(info.lines):
        rows, colour = info.rows[info.rows["line"] == name], pick(COLOURS, index)
        x = [axis.x_of(value, index, len(info.lines)) for value in rows["level"]]
        axes.plot(x, rows["entropy"], pick(MARKERS, index), color=colour, alpha=0.5, markersize=4.5, zorder=3)
        means = rows["entropy"].groupby(np.array(x)).mean()
        axes.plot(means.index, means, color=colour, linewidth=1.2)
    axis.finish(axes)
    axes.set_ylabel(LABELS["mix/entropy"])
    most = float(info.rows["entropy"].max())
    mixed = info.weights[list(info.layers)].count(axis=1).unique()
    if len(mixed) == 1 and info.layers:
        uniform = float(np.log(mixed[0]))
        axes.axhline(uniform, color="0.4", linestyle="--", linewidth=1)
        at_right = axes.get_yaxis_transform()
        axes.text(0.99, uniform, "uniform mix", transform=at_right, ha="right", va="bottom", fontsize=8)
        most = max(uniform, most)
    axes.set_ylim(-0.03 * max(1.0, most), 1.12 * max(most, 1e-9))
    legend_right(figure, _handles(info, MARKERS), "a dot per seed,\nlines: means")
    return figure


def _handles(info: Info, markers: tuple[str, ...] = ("",)) -> list[Line2D]:
    """Return the legend's entries of the core's lines, none where there is one line alone."""
    return [
        Line2D([], [], color=pick(COLOURS, index), marker=pick(markers, index), label=plain_text(name))
        for index, name in enumerate(info.lines)
        if name
    ]


def draw_layers(info: Info) -> Figure | None:
    """Mix weight against layer, a panel per level of the first factor, a line per trained model."""
    if not info.layers:
        return None
    values = levels(info.weights["level"])
    if len(values) > PANELS:  # the ends, and evenly between them
        values = [values[round(index)] for index in np.linspace(0, len(values) - 1, PANELS)]
    figure = new_figure(2.9)
    panels = np.atleast_1d(figure.subplots(1, len(values), sharey=True))
    places = np.arange(len(info.layers))
    spacing = max(1, len(places) // 6)
    ticks = [brief(layer_weights.state_name(name)) for name in info.layers]
    for axes, value in zip(panels, values, strict=True):
        rows = _at_level(info.weights, value)
        weights = rows[list(info.layers)].astype(float)
        for line, weight in zip(rows["line"], weights.to_numpy(), strict=True):
            axes.plot(places, weight, color=pick(COLOURS, info.lines.index(line)), linewidth=0.8, alpha=0.6)
        axes.set_title(plain_text(f"{short(info.first)} = {level_name(value)}"))
        axes.set_xticks(places[::spacing], ticks[::spacing])
        axes.set_xlabel("layer")
    panels[0].set_ylim(bottom=0)
    panels[0].set_ylabel(LABELS["mix/weight"])
    legend_right(figure, _handles(info), "a line per model")
    return figure


def draw_history(info: Info) -> Figure | None:
    """Each component of the best model's p~ over training steps; None without a history."""
    if info.best is None:
        return None
    layers = list(info.best.steps["layer"])
    figure = new_figure(max(3.7, 1.2 + 0.22 * min(len(layers), 25)))
    axes = figure.add_subplot()
    # Dark to light by depth, and not to the palest end, which a page would swallow.
    shades = mpl.colormaps["viridis"](np.linspace(0.0, 0.85, len(layers)))
    for index, layer in enumerate(layers):
        rows = info.best.history[info.best.history["layer"] == layer]
        axes.plot(
            rows["step"],
            rows["weight"],
            color=shades[index],
            linestyle=pick(LINES, index),
            marker=pick(MARKERS, index),
            markevery=max(1, len(rows) // 8),
            markersize=4.5,
            linewidth=1.3,
            label=brief(layer),
        )
    legend_right(figure, axes.get_legend_handles_labels()[0], "layer")
    axes.set_xlabel(LABELS["step"])
    axes.set_ylabel(LABELS["mix/weight"])
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure


PART = Part(
    "The mix",
    info,
    section,
    {"mix_entropy": draw_entropy, "mix_layers": draw_layers, "mix_history": draw_history},
)
SHORT_PART = Part("The mix", info, short_section)
