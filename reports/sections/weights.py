"""The mix weights of the best model over its training, and at its best epoch."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from reports import plots
from reports.evidence.evidence import Evidence
from reports.section import Section, table_of
from reports.tables import mix
from reports.tables.arms import best_trial
from reports.words import LABELS


def section(evidence: Evidence) -> Section | None:
    best = best_trial(evidence.trials, evidence.request)
    history = mix.mix_history(evidence.loaded.history, best)
    if best is None or history.empty:
        return None
    own = mix.at_best(evidence.trials[evidence.trials["trial_id"] == best], evidence.loaded.history)
    at_best = own.drop(columns="trial_id").rename(columns=mix.state_name).max()
    steps = mix.mix_milestones(history)
    steps["best epoch"] = steps["layer"].map(at_best)
    caption = f"Weights of the best model on validation that learns its mix, trial {best}."
    table = table_of(steps, {name: name for name in steps.columns}, caption)
    return Section(
        "The mix", [table], {"mix_history": draw(history, at_best)}, "Mix weights of the best model"
    )


def draw(history: pd.DataFrame, at_best: pd.Series) -> Figure:
    """Each weight over training steps, and as bars at the best epoch."""
    layers = list(dict.fromkeys(history["layer"]))
    # Dark to light by depth, and not to the palest end, which a page would swallow.
    shades = map(mpl.colors.to_hex, mpl.colormaps["viridis"](np.linspace(0.0, 0.85, len(layers))))
    colours = dict(zip(layers, shades, strict=True))
    looks = {name: how._replace(colour=colours[name]) for name, how in plots.looks_of(layers).items()}
    height = max(2.9, 0.8 + 0.19 * len(layers))
    figure, (left, right) = plots.panels(["over training", "at the best epoch"], height, share=False)
    plots.curves(history.rename(columns={"layer": "series", "weight": "mean"}), left, looks=looks)
    plots.marked(left, 1 / len(layers), "uniform")
    plots.at_least(left, 0.2 / len(layers))
    left.set(xlabel=LABELS["step"], ylabel=LABELS["mix/weight"])
    weights = {"name": at_best.index, "series": at_best.index, "mean": at_best.to_numpy()}
    plots.bars(pd.DataFrame(weights).assign(low=np.nan, high=np.nan), right, looks=looks)
    right.set(xlabel=LABELS["mix/weight"], ylabel="layer")
    plots.legend(figure, looks)
    return figure
