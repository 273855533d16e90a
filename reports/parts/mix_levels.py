"""The mix on the page: entropy by level, and the weights of each layer by level, a line per trained model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from adalayers.results.study_file import Factor
from reports.drawing.axes import FactorAxis
from reports.drawing.pieces import brief, legend_right
from reports.drawing.style import COLOURS, MARKERS, new_figure, pick, plain_text, styled
from reports.evidence import layer_weights, tables
from reports.evidence.evidence import Evidence
from reports.parts.part import DETAILS, Part, figure_link
from reports.reading.factors import cell_names, column, level, level_name, levels, short
from reports.words.labels import LABELS
from reports.words.text import escape, several

PANELS = 4
"""Most levels that have a panel of their own."""

MOVED = 1.5
"""Times the weight of a uniform mix that the largest weight has on average, from which on it is told which it is."""


@dataclass(frozen=True)
class Info:
    """A row per trained model of the core.

    rows: level (of the first factor), line (its cell of the others), entropy, seed; weights: the same with the columns
          of the mix weights
    layers: what the columns of the weights are called; lines: those of the core, in order
    """

    rows: pd.DataFrame
    weights: pd.DataFrame
    layers: tuple[str, ...]
    lines: tuple[str, ...]
    factors: tuple[Factor, ...]


def info(evidence: Evidence) -> Info | None:
    factors, core = evidence.plan.factors, evidence.mix_core
    if not evidence.has_mix or core.empty or not factors:
        return None
    first = column(factors[0].name)
    lines = dict(zip(core["arm"], cell_names(core, factors[1:]), strict=True))
    known = dict(zip(core["arm"], core[first], strict=True))
    trials = tables.confirmed(evidence.trials)
    trials = trials[trials["arm"].isin(set(core["arm"]))]
    rows = pd.DataFrame(
        {
            "trial_id": trials["trial_id"],
            "level": trials["arm"].map(known),
            "line": trials["arm"].map(lines),
            "seed": trials["seed"],
            "entropy": pd.to_numeric(trials["mix/entropy"], errors="coerce")
            if "mix/entropy" in trials
            else np.nan,
        }
    ).dropna(subset=["entropy"])
    if rows.empty:
        return None
    weights = layer_weights.at_best(trials, evidence.history)
    columns = [name for name in weights.columns if name != "trial_id"]
    of_rows = rows.merge(weights, on="trial_id")
    return Info(
        rows,
        of_rows,
        tuple(columns) if len(of_rows) else (),
        evidence.lines if len(factors) > 1 else ("",),
        factors,
    )


def section(info: Info) -> list[str]:
    first = escape(short(info.factors[0]))
    pictures = [figure_link("mix_entropy", f"Entropy of the mix weights against {first}, a dot per seed")]
    if info.layers:
        pictures.append(
            figure_link("mix_layers", f"Mix weights of every trained model by layer, a panel per {first}")
        )
    told = ", and the weights, a line per trained model" if info.layers else ""
    return [
        f"Entropy of the mix weights p̃ at the best epoch{told}. {_leading(info)} More: [details]({DETAILS}#the-mix).",
        *pictures,
    ]


def _leading(info: Info) -> str:
    """Return which layer most often has the largest weight, by level; nothing where it has hardly more than others."""
    first = info.factors[0]
    if not info.layers:
        return ""
    parts: dict[str, list[str]] = {}
    for value in levels(info.weights["level"])[:PANELS]:
        of = info.weights[[level(found) == value for found in info.weights["level"]]][list(info.layers)]
        if of.max(axis=1).mean() < MOVED / len(info.layers):
            continue
        counts = of.idxmax(axis=1).map(layer_weights.state_name).value_counts()
        before = "" if parts else f"{escape(short(first))} = "
        told = f"{counts.iloc[0]} of {len(of)} at {before}{escape(level_name(value))}"
        parts.setdefault(str(counts.index[0]), []).append(told)
    leading = "; ".join(f"{layer} in {several(at, PANELS)}" for layer, at in parts.items())
    return f"Most often the largest weight: {leading}." if leading else ""


@styled
def draw_entropy(info: Info) -> Figure:
    """Entropy of p~ against the first factor: a dot per seed, a line through the means for each cell of the others."""
    figure = new_figure(3.4)
    axes = figure.add_subplot()
    axis = FactorAxis(info.factors[0], info.rows["level"])
    names = info.lines
    handles = []
    for place, name in enumerate(names):
        colour, marker = pick(COLOURS, place), pick(MARKERS, place)
        rows = info.rows[info.rows["line"] == name]
        at = [axis.at(value, place, len(names)) for value in rows["level"]]
        axes.plot(at, rows["entropy"], marker, color=colour, alpha=0.5, markersize=4.5, zorder=3)
        means = [
            (value, rows.loc[[level(of) == value for of in rows["level"]], "entropy"].mean())
            for value in axis.levels
        ]
        drawn = [(axis.at(value, place, len(names)), mean) for value, mean in means if not np.isnan(mean)]
        axes.plot([x for x, _ in drawn], [y for _, y in drawn], color=colour, linewidth=1.2)
        if name:
            handles.append(Line2D([], [], color=colour, marker=marker, label=plain_text(name)))
    axis.finish(axes)
    if info.layers:
        most = float(np.log(len(info.layers)))
        axes.axhline(most, color="0.4", linestyle="--", linewidth=1)
        axes.annotate(
            "uniform mix",
            (1, most),
            xytext=(-4, 3),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            ha="right",
            va="bottom",
            fontsize=8,
        )
        axes.set_ylim(top=1.12 * max(most, float(info.rows["entropy"].max())))
    axes.set_ylim(bottom=-0.03 * max(1.0, float(info.rows["entropy"].max())))
    axes.set_ylabel(LABELS["mix/entropy"])
    legend_right(figure, handles, "a dot per seed,\nlines: means")
    return figure


@styled
def draw_layers(info: Info) -> Figure | None:
    """Mix weight against layer, a panel per level of the first factor, a line per trained model, their mean thick."""
    if not info.layers or info.weights.empty:
        return None
    known = levels(info.weights["level"])
    if len(known) > PANELS:  # the ends, and evenly between them
        known = [known[round(place)] for place in np.linspace(0, len(known) - 1, PANELS)]
    figure = new_figure(2.9)
    panels = np.atleast_1d(figure.subplots(1, len(known), sharey=True))
    names = list(info.lines)
    places = np.arange(len(info.layers))
    for axes, value in zip(panels, known, strict=True):
        of = info.weights[[level(found) == value for found in info.weights["level"]]]
        for line, row in zip(of["line"], of[list(info.layers)].to_numpy(dtype=float), strict=True):
            axes.plot(places, row, color=pick(COLOURS, names.index(line)), linewidth=0.8, alpha=0.6)
        axes.plot(
            places, of[list(info.layers)].mean(), color="black", linewidth=1.8, marker="o", markersize=3.5
        )
        axes.set_title(plain_text(f"{short(info.factors[0])} = {level_name(value)}"))
        every = max(1, len(places) // 6)
        ticks = [brief(layer_weights.state_name(name)) for name in info.layers]
        axes.set_xticks(places[::every], ticks[::every])
        axes.set_xlabel("layer")
    panels[0].set_ylim(bottom=0)
    panels[0].set_ylabel(LABELS["mix/weight"])
    handles = [
        Line2D([], [], color=pick(COLOURS, i), label=plain_text(name)) for i, name in enumerate(names) if name
    ]
    handles.append(Line2D([], [], color="black", marker="o", label="mean"))
    legend_right(figure, handles, "a line per model")
    return figure


PART = Part("The mix", info, section, {"mix_entropy": draw_entropy, "mix_layers": draw_layers})
