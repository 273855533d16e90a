"""What was taken for what, by the arm that is best on validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from reports.evidence.evidence import Evidence
from reports.plots import colour_bar, heatmap, single
from reports.section import Section, Table
from reports.tables import errors

FEW = 20.0
"""Predictions in a row of a confusion matrix from which on its shares are shaded to the full."""


@dataclass(frozen=True)
class Frames:
    """confusion: mean counts over n seeds, true classes down; items: what is counted."""

    confusion: pd.DataFrame
    n: int
    items: str


def frames(evidence: Evidence) -> Frames | None:
    """None where labels are numbers, and without predictions."""
    if not evidence.environment.dataset.labels:
        return None
    rows = evidence.predictions
    rows = rows[rows["trial_id"].map(evidence.shown_arms) == evidence.best_arm]
    if evidence.tokens:
        confusion = errors.span_confusion(rows, evidence.scheme)
    else:
        rows = errors.by_word(rows) if evidence.words else rows
        confusion = errors.confusion(rows, evidence.environment.dataset.labels)
    items = "entities" if evidence.tokens else "words" if evidence.words else "examples"
    return Frames(confusion, rows["trial_id"].nunique(), items) if confusion.to_numpy().any() else None


def tables(frames: Frames) -> Sequence[Table]:
    grid = frames.confusion
    counts = [[name, *map(float, row)] for name, row in zip(grid.index, grid.to_numpy(), strict=True)]
    caption = f"Mean counts of {frames.items} over {frames.n} seeds of the arm best on validation."
    return [Table(["true, and predicted as", *grid.columns], counts, caption)]


def draw(frames: Frames) -> Figure:
    """Mean counts by true and predicted class, shaded by the share of the row, paler where a row holds few."""
    counts = frames.confusion.to_numpy(dtype=float)
    totals = np.nansum(counts, axis=1, keepdims=True)
    shades = counts / np.maximum(totals, 1e-12) * np.minimum(1.0, totals / FEW)
    texts = frames.confusion.map(lambda count: "" if np.isnan(count) else f"{count:,.1f}".removesuffix(".0"))
    height = 1.5 + 0.45 * max(len(texts), 3)
    figure, axes = single(height, f"predicted (mean count over n = {frames.n})", "true")
    grid = pd.DataFrame(shades, index=frames.confusion.index, columns=frames.confusion.columns)
    heatmap(grid, axes, texts=texts, low=0.0, high=1.0, fontsize=9 if len(texts) < 10 else 6)
    colour_bar(figure, [axes], f"share of the row (paler below {FEW:.0f} {frames.items})")
    return figure


SECTION = Section("Errors", frames, tables, {"confusion": draw}, "True against predicted classes")
