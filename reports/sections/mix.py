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
from reports.tables import arms as tables_of_arms
from reports.tables import mix
from reports.words.labels import LABELS

PANELS = 4
"""Most levels that have a panel of their own: the ends, and evenly between them."""


@dataclass(frozen=True)
class Frames:
    """What is shown.

    Attributes:
        models: A row per trained model of the core: level (of the first factor), series (its cell of the others),
            entropy; weights: those rows with columns of mix weights, named in `layers`.
        best: The trial best on validation that learns its mix, as Markdown; "" without its history.
        history: Its weights: step, series (the layer), mean; at_best: at its best epoch: name, mean.
    """

    evidence: Evidence
    models: pd.DataFrame
    weights: pd.DataFrame
    layers: Sequence[str]
    best: str
    history: pd.DataFrame
    at_best: pd.DataFrame


def frames(evidence: Evidence) -> Frames | None:
    if not evidence.has_mix:
        return None
    models, trials = _models(evidence), evidence.trials
    weights = mix.at_best(models, evidence.history)
    best = tables_of_arms.best_trial(trials, evidence.plan, learned=True)
    history = mix.mix_history(evidence.history, best)
    own = mix.at_best(trials[trials["trial_id"] == best], evidence.history).drop(columns="trial_id")
    at_best = own.rename(columns=mix.state_name).max().rename("mean").rename_axis("name").reset_index()
    return Frames(
        evidence,
        models,
        models.merge(weights, on="trial_id"),
        [name for name in weights.columns if name != "trial_id"] if len(weights) else [],
        trial(trials, best, evidence.plan.metric) if best and len(history) else "",
        history.rename(columns={"layer": "series", "weight": "mean"}),
        at_best,
    )


def _models(evidence: Evidence) -> pd.DataFrame:
    factors, core = evidence.plan.factors, evidence.mix_core
    trials = tables_of_arms.confirmed(evidence.trials)
    trials = trials[trials["arm"].isin(set(core["arm"]))]
    level_of = dict(zip(core["arm"], core[column(factors[0].name)], strict=True)) if factors else {}
    line_of = dict(zip(core["arm"], cell_names(core, factors[1:]), strict=True))
    models = pd.DataFrame(
        {
            "trial_id": trials["trial_id"],
            "level": trials["arm"].map(level_of),
            "series": trials["arm"].map(line_of),
            "best_epoch": numbers(trials, "best_epoch"),
            "entropy": numbers(trials, "mix/entropy"),
        }
    )
    return models.dropna(subset=["entropy"])


def tables(frames: Frames) -> Sequence[Table]:
    heads = {
        "arm": lambda row: named(row["arm"]),
        f"entropy (nats), {INTERVAL}": lambda row: summary(row, "entropy_"),
        f"live layers, {INTERVAL}": lambda row: summary(row, "live_", digits=1),
    }
    caption = "Entropy of p̃ at the best epoch: 0 when one layer has all the weight, ln(layers) when all share it alike."
    shown = [table_of(frames.evidence.mix_by_arm, heads, caption)]
    if frames.best:
        steps = mix.mix_milestones(frames.history.rename(columns={"series": "layer", "mean": "weight"}))
        steps["best epoch"] = steps["layer"].map(dict(frames.at_best.to_numpy()))
        caption = markdown(f"Weights of the best model on validation that learns its mix, {frames.best}.")
        shown.append(table_of(steps, {name: name for name in steps.columns}, caption))
    return shown


def draw_entropy(frames: Frames) -> Figure | None:
    """Entropy of p~ against the first factor: a dot per seed, a line through the means for each cell of the others."""
    models, factors = frames.models, frames.evidence.plan.factors
    if models["level"].nunique() < 2:
        return None
    figure, axes = single(3.0, label(factors[0]), str(LABELS["mix/entropy"]))
    looks = looks_of(frames.evidence.lines if len(factors) > 1 else [""])
    means = (
        models.groupby(["series", "level"], sort=False)["entropy"].agg(["mean", "min", "max"]).reset_index()
    )
    means = means.rename(columns={"min": "low", "max": "high", "level": "x"})
    points(means, axes, scale=factors[0].scale, looks=looks)
    mixed = frames.weights[frames.layers].count(axis=1).unique()
    if len(mixed) == 1 and frames.layers:
        marked(axes, float(np.log(mixed[0])), "uniform mix")
    at_least(axes, 0.2)
    legend(figure, looks if len(looks) > 1 else {}, "mean over seeds, from the least to the most")
    return figure


def draw_layers(frames: Frames) -> Figure | None:
    """Mix weight against layer, a panel per level of the first factor, a line per trained model."""
    if not frames.layers:
        return None
    values, first = levels(frames.weights["level"]), short(frames.evidence.plan.factors[0])
    if len(values) > PANELS:
        values = [values[round(place)] for place in np.linspace(0, len(values) - 1, PANELS)]
    titles = [f"{first} = {level_name(value)}" for value in values]
    figure, axes = panels(titles, 2.4, x="layer", y=str(LABELS["mix/weight"]), most=PANELS)
    lines = looks_of(frames.evidence.lines if len(frames.evidence.plan.factors) > 1 else [""])
    places, spacing = np.arange(len(frames.layers)), max(1, len(frames.layers) // 6)
    for panel, value in zip(axes, values, strict=True):
        rows = frames.weights[[level(one) == value for one in frames.weights["level"]]]
        for row in records(rows):
            weights = [row[name] for name in frames.layers]
            panel.plot(places, weights, color=lines[row["series"]].colour, linewidth=0.8, alpha=0.6)
        names = [mix.state_name(name).removeprefix("layer ") for name in frames.layers]
        panel.set_xticks(places[::spacing], names[::spacing])
    at_least(axes[0], 0.2 / len(frames.layers))
    entries = {name: Look(how.colour, "") for name, how in lines.items()}
    legend(figure, entries if len(entries) > 1 else {}, "a line per trained model")
    return figure


def draw_history(frames: Frames) -> Figure | None:
    """Each component of the best model's p~ over training steps, and as bars at its best epoch."""
    if not frames.best:
        return None
    layers = list(dict.fromkeys(frames.history["series"]))
    # Dark to light by depth, and not to the palest end, which a page would swallow.
    shades = mpl.colormaps["viridis"](np.linspace(0.0, 0.85, len(layers)))
    looks = {
        name: Look(mpl.colors.to_hex(shade), *look(place)[1:])
        for place, (name, shade) in enumerate(zip(layers, shades, strict=True))
    }
    titles, height = ["over training", "at the best epoch"], max(2.9, 0.8 + 0.19 * len(layers))
    figure, (left, right) = panels(titles, height, share=False)
    curves(frames.history, left, looks=looks)
    marked(left, 1 / len(layers), "uniform")
    at_least(left, 0.2 / len(layers))
    left.set(xlabel=LABELS["step"], ylabel=LABELS["mix/weight"])
    at_best = frames.at_best.assign(series=frames.at_best["name"], low=np.nan, high=np.nan)
    bars(at_best, right, looks=looks)
    right.set(xlabel=LABELS["mix/weight"])
    legend(figure, looks)
    return figure


SECTION = Section(
    "The mix",
    frames,
    tables,
    {"mix_entropy": draw_entropy, "mix_layers": draw_layers, "mix_history": draw_history},
    "Entropy of the mix weights by arm",
)
