"""The mix weights: their entropy and live layers by arm, the weights by level, and those of the best model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from reports.cells import INTERVAL, named, summary, table_of, trial
from reports.evidence.evidence import Evidence
from reports.plots import Look, at_least, bars, curves, legend, look, looks_of, marked, panels, points, single
from reports.reading.factors import cell_names, column, label, level, level_name, levels, short
from reports.reading.frames import numbers, records
from reports.render import markdown
from reports.section import Section, Table
from reports.tables import mix
from reports.tables.arms import best_trial, confirmed
from reports.words.labels import LABELS

PANELS = 4
"""Most levels that have a panel of their own: the ends, and evenly between them."""


@dataclass(frozen=True)
class Frames:
    """What is shown.

    Attributes:
        models: A row per trained model of the core: x (level of the first factor), series (its cell of the others),
            entropy, and columns of mix weights, named in `layers`.
        best: The trial best on validation that learns its mix.
        history: Its weights: step, layer, weight; at_best: at its best epoch: name, mean.
    """

    evidence: Evidence
    models: pd.DataFrame
    layers: Sequence[str]
    best: str | None
    history: pd.DataFrame
    at_best: pd.DataFrame


def frames(evidence: Evidence) -> Frames | None:
    if not evidence.has_mix:
        return None
    factors, core, trials = evidence.plan.factors, evidence.mix_core, evidence.trials
    level_of = dict(zip(core["arm"], core[column(factors[0].name)], strict=True)) if factors else {}
    line_of = dict(zip(core["arm"], cell_names(core, factors[1:]), strict=True))
    rows = confirmed(trials)
    rows = rows[rows["arm"].isin(set(core["arm"]))]
    models = rows[["trial_id"]].assign(
        **{name: numbers(rows, column) for name, column in (("best_epoch",) * 2, ("entropy", "mix/entropy"))},
        x=rows["arm"].map(level_of),
        series=rows["arm"].map(line_of),
    )
    weights = mix.at_best(models, evidence.history)
    best = best_trial(trials, evidence.plan, learned=True)
    own = mix.at_best(trials[trials["trial_id"] == best], evidence.history).drop(columns="trial_id")
    at_best = own.rename(columns=mix.state_name).max().rename("mean").rename_axis("name").reset_index()
    models = models.dropna(subset=["entropy"]).merge(weights, on="trial_id", how="left")
    layers = [name for name in weights.columns if name != "trial_id"] if len(weights) else []
    return Frames(evidence, models, layers, best, mix.mix_history(evidence.history, best), at_best)


def tables(frames: Frames) -> Sequence[Table]:
    heads = {
        "arm": lambda row: named(row["arm"]),
        f"entropy (nats), {INTERVAL}": lambda row: summary(row, "entropy_"),
        f"live layers, {INTERVAL}": lambda row: summary(row, "live_", digits=1),
    }
    caption = "Entropy of p̃ at the best epoch: 0 when one layer has all the weight, ln(layers) when all share it alike."
    shown = [table_of(frames.evidence.mix_by_arm, heads, caption)]
    if frames.best and len(frames.history):
        steps = mix.mix_milestones(frames.history)
        steps["best epoch"] = steps["layer"].map(dict(frames.at_best.to_numpy()))
        whose = trial(frames.evidence.trials, frames.best, frames.evidence.plan.metric)
        caption = markdown(f"Weights of the best model on validation that learns its mix, {whose}.")
        shown.append(table_of(steps, {name: name for name in steps.columns}, caption))
    return shown


def _lines(frames: Frames) -> dict[str, Look]:
    return looks_of(frames.evidence.lines if len(frames.evidence.plan.factors) > 1 else [""])


def draw_entropy(frames: Frames) -> Figure | None:
    """Entropy of p~ against the first factor: the mean over seeds, from the least to the most."""
    if frames.models["x"].nunique() < 2:
        return None
    first, looks = frames.evidence.plan.factors[0], _lines(frames)
    figure, axes = single(3.0, label(first), str(LABELS["mix/entropy"]))
    means = frames.models.groupby(["series", "x"], sort=False)["entropy"].agg(["mean", "min", "max"])
    points(
        means.reset_index().rename(columns={"min": "low", "max": "high"}),
        axes,
        scale=first.scale,
        looks=looks,
    )
    mixed = frames.models[frames.layers].count(axis=1).unique()
    if len(mixed) == 1 and mixed[0]:
        marked(axes, float(np.log(mixed[0])), "uniform mix")
    at_least(axes, 0.2)
    legend(figure, looks if len(looks) > 1 else {}, "mean over seeds, from the least to the most")
    return figure


def draw_layers(frames: Frames) -> Figure | None:
    """Mix weight against layer, a panel per level of the first factor, a line per trained model."""
    if not frames.layers or frames.models.empty:
        return None
    values, first = levels(frames.models["x"]), short(frames.evidence.plan.factors[0])
    if len(values) > PANELS:
        values = [values[round(place)] for place in np.linspace(0, len(values) - 1, PANELS)]
    titles, looks = [f"{first} = {level_name(value)}" for value in values], _lines(frames)
    figure, axes = panels(titles, 2.4, x="layer", y=str(LABELS["mix/weight"]), most=PANELS)
    places, spacing = np.arange(len(frames.layers)), max(1, len(frames.layers) // 6)
    names = [mix.state_name(name).removeprefix("layer ") for name in frames.layers]
    for panel, value in zip(axes, values, strict=True):
        for row in records(frames.models[[level(one) == value for one in frames.models["x"]]]):
            weights = [row[name] for name in frames.layers]
            panel.plot(places, weights, color=looks[row["series"]].colour, linewidth=0.8, alpha=0.6)
        panel.set_xticks(places[::spacing], names[::spacing])
    at_least(axes[0], 0.2 / len(frames.layers))
    entries = {name: Look(how.colour, "") for name, how in looks.items()}
    legend(figure, entries if len(entries) > 1 else {}, "a line per trained model")
    return figure


def draw_history(frames: Frames) -> Figure | None:
    """Each component of the best model's p~ over training steps, and as bars at its best epoch."""
    layers = list(dict.fromkeys(frames.history["layer"]))
    if not layers:
        return None
    # Dark to light by depth, and not to the palest end, which a page would swallow.
    shades = map(mpl.colors.to_hex, mpl.colormaps["viridis"](np.linspace(0.0, 0.85, len(layers))))
    looks = {
        name: look(place)._replace(colour=colour)
        for place, (name, colour) in enumerate(zip(layers, shades, strict=True))
    }
    figure, (left, right) = panels(
        ["over training", "at the best epoch"], max(2.9, 0.8 + 0.19 * len(layers)), share=False
    )
    curves(frames.history.rename(columns={"layer": "series", "weight": "mean"}), left, looks=looks)
    marked(left, 1 / len(layers), "uniform")
    at_least(left, 0.2 / len(layers))
    left.set(xlabel=LABELS["step"], ylabel=LABELS["mix/weight"])
    bars(frames.at_best.assign(series=frames.at_best["name"], low=np.nan, high=np.nan), right, looks=looks)
    right.set(xlabel=LABELS["mix/weight"], ylabel="layer")
    legend(figure, looks)
    return figure


SECTION = Section(
    "The mix",
    frames,
    tables,
    {"mix_entropy": draw_entropy, "mix_layers": draw_layers, "mix_history": draw_history},
    "Entropy of the mix weights by arm",
)
