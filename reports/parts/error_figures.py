"""Where predictions go wrong, drawn: scores by entity class (thesis 19), and what was taken for what."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from reports.drawing import style
from reports.drawing.pieces import heat_map, legend_right, seeds_text
from reports.drawing.style import COLOURS, HATCHES, new_figure, plain_text, say_empty, styled
from reports.reading.frames import records

NO_CLASSES = "Nothing to draw: no predictions of entities by confirmed trials."
NO_CONFUSION = "Nothing to draw: no predictions of confirmed trials."


@styled
def class_scores(scores: pd.DataFrame, arm: str) -> Figure:
    """Precision, recall and F1 of each entity class of one arm, and how many there are.

    Intervals end at 0 and 1 here; the table has them whole.

    scores: as from `predicted.entity_scores`.
    """
    figure = new_figure(3.8)
    axes = figure.add_subplot()
    rows = scores[scores["arm"] == arm]
    if rows.empty:
        say_empty(axes, NO_CLASSES)
        return figure
    parts = ("precision", "recall", "f1")
    for place, part in enumerate(parts):
        at = np.arange(len(rows)) + 0.26 * (place - 1)
        axes.bar(
            at,
            rows[f"{part}_mean"],
            width=0.24,
            color=COLOURS[place],
            hatch=HATCHES[place],
            edgecolor="black",
            linewidth=0.6,
        )
        for x, row in zip(at, records(rows), strict=True):
            mean = row[f"{part}_mean"]
            low, high = max(row[f"{part}_low"], 0.0), min(row[f"{part}_high"], 1.0)
            top = mean
            if not np.isnan(row[f"{part}_low"]):
                axes.errorbar(
                    x, mean, yerr=[[mean - low], [high - mean]], color="black", linewidth=1, capsize=2
                )
                top = high
            axes.annotate(
                f"{mean:.2f}", (x, top), xytext=(0, 2), textcoords="offset points", ha="center", fontsize=7.5
            )
    names = [
        f"{row['class']}\n{row['gold_mean']:,.0f} true\n{row['predicted_mean']:,.0f} predicted"
        for row in records(rows)
    ]
    style.name_ticks(axes, names, axis="x")
    axes.set_ylim(0, 1.12)
    axes.set_yticks(np.linspace(0, 1, 6))
    axes.grid(visible=False, axis="x")
    handles = [
        Patch(facecolor=COLOURS[i], hatch=HATCHES[i], edgecolor="black", linewidth=0.6, label=name)
        for i, name in enumerate(("precision", "recall", "F1"))
    ]
    legend_right(figure, handles, f"95% t intervals,\n{seeds_text(rows['n'])}")
    axes.set_xlabel("entity class (mean counts per seed)")
    axes.set_ylabel("score (0 to 1)")
    return figure


@styled
def confusion(cells: pd.DataFrame, what: str) -> Figure:
    """Mean counts by true and predicted class, shaded by the share of the row; `what` is counted.

    cells: as from `predicted.confusion` or `predicted.span_confusion`.
    """
    true, said = list(dict.fromkeys(cells["label"])), list(dict.fromkeys(cells["prediction"]))
    figure = new_figure(1.7 + 0.5 * max(len(true), 3))
    axes = figure.add_subplot()
    if cells.empty or cells["mean"].sum() == 0:
        say_empty(axes, NO_CONFUSION)
        return figure
    counts = cells["mean"].to_numpy(dtype=float).reshape(len(true), len(said))
    shares = counts / np.maximum(np.nansum(counts, axis=1, keepdims=True), 1e-12)
    n = int(cells["n"].iloc[0])
    whole = np.allclose(counts, np.round(counts), equal_nan=True)
    texts = [
        ["" if np.isnan(count) else f"{count:,.{0 if whole or not count else 1}f}" for count in line]
        for line in counts
    ]
    image = heat_map(axes, shares, texts, 0.0, 1.0)
    style.name_ticks(axes, [_broken(name) for name in said], axis="x")
    style.name_ticks(axes, true, axis="y")
    axes.set_xlabel(f"predicted ({what}, mean count over n = {n} seed{'s' * (n != 1)})")
    axes.set_ylabel("true")
    bar = figure.colorbar(image, ax=axes)
    bar.set_label("share of the row (0 to 1)")
    return figure


def _broken(name: str) -> str:
    return plain_text(name).replace(" ", "\n") if len(name) > 8 else name
