"""What was taken for what, and the surest wrong predictions by index, without texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from reports.cells import table_of
from reports.evidence.evidence import Evidence
from reports.plots import colour_bar, heatmap, single
from reports.section import Section, Table
from reports.tables import arms as tables_of_arms
from reports.tables import errors
from reports.words.labels import SPLITS

MOST = 20
"""Rows of a table of examples; all are in `predictions.parquet`."""
FEW = 20.0
"""Predictions in a row of a confusion matrix from which on its shares are shaded to the full."""


@dataclass(frozen=True)
class Frames:
    """confusion: mean counts of the best arm, true classes down; wrong: as from `errors.misclassified`."""

    confusion: pd.DataFrame
    n: int
    wrong: pd.DataFrame
    caption: str
    items: str


def frames(evidence: Evidence) -> Frames | None:
    """None where labels are numbers, and without predictions."""
    if evidence.numeric:
        return None
    rows, best = evidence.predictions, evidence.best_arm
    of_best = rows[rows["trial_id"].map(evidence.shown_arms) == best]
    if evidence.tokens:
        confusion = errors.span_confusion(of_best, evidence.scheme)
    else:
        of_best = errors.by_word(of_best) if evidence.words else of_best
        confusion = errors.confusion(of_best, evidence.loaded.study.environment.dataset.labels)
    trial = tables_of_arms.best_trial(tables_of_arms.confirmed(evidence.trials), evidence.plan)
    if not confusion.to_numpy().any() or trial is None:
        return None
    wrong = errors.misclassified(errors.rows_of(evidence.loaded.results.predictions, [trial], evidence.split))
    if evidence.tokens or evidence.words:
        pairs = zip(wrong["label"], wrong["prediction"], strict=True)
        differing = [errors.differing_words(*pair) for pair in pairs]
        wrong[["label", "prediction"]] = pd.DataFrame(differing, index=wrong.index, columns=["a", "b"])
    return Frames(
        confusion,
        of_best["trial_id"].nunique(),
        wrong,
        f"The surest of {len(wrong):,} wrong predictions on {SPLITS[evidence.split]} of trial {trial}, the best "
        "confirmed one on validation; index counts in the split.",
        "entities" if evidence.tokens else "words" if evidence.words else "examples",
    )


def tables(frames: Frames) -> Sequence[Table]:
    grid = frames.confusion
    counts = [
        [name, *(float(value) for value in row)]
        for name, row in zip(grid.index, grid.to_numpy(), strict=True)
    ]
    caption = f"Mean counts of {frames.items} over {frames.n} seeds of the arm best on validation."
    shown = [Table(["true, and predicted as", *grid.columns], counts, caption)]
    heads = {name: name for name in errors.WRONG_COLUMNS}
    return [
        *shown,
        *([table_of(frames.wrong.head(MOST), heads, frames.caption)] if len(frames.wrong) else []),
    ]


def draw(frames: Frames) -> Figure:
    """Mean counts by true and predicted class, shaded by the share of the row, paler where a row holds few."""
    counts = frames.confusion.to_numpy(dtype=float)
    totals = np.nansum(counts, axis=1, keepdims=True)
    shades = counts / np.maximum(totals, 1e-12) * np.minimum(1.0, totals / FEW)
    whole = np.allclose(counts, np.round(counts), equal_nan=True)
    texts = frames.confusion.map(
        lambda count: "" if np.isnan(count) else f"{count:,.{0 if whole or not count else 1}f}"
    )
    figure, axes = single(
        1.5 + 0.45 * max(len(texts), 3), f"predicted (mean count over n = {frames.n})", "true"
    )
    grid = pd.DataFrame(shades, index=frames.confusion.index, columns=frames.confusion.columns)
    heatmap(grid, axes, texts=texts, low=0.0, high=1.0, fontsize=9 if len(texts) < 10 else 6)
    colour_bar(figure, [axes], f"share of the row (paler below {FEW:.0f} {frames.items})")
    return figure


SECTION = Section("Errors", frames, tables, {"confusion": draw}, "True against predicted classes")
