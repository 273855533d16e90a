"""What was taken for what, by the arm that is best on validation."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from adalayers.tasks.schemes import scheme_or_runs
from reports.evidence.evidence import Evidence
from reports.plots import colour_bar, heatmap, single
from reports.section import Section, Table
from reports.tables import arms, errors

FEW = 20.0
"""Predictions in a row of a confusion matrix from which on its shares are shaded to the full."""


def section(evidence: Evidence) -> Section | None:
    """None where labels are numbers, and without predictions."""
    if not (labels := evidence.environment.dataset.labels):
        return None
    confirmed = arms.confirmed(evidence.trials)
    own = confirmed.loc[confirmed["arm"] == arms.best_arm(evidence.arms), "trial_id"]
    rows, items = errors.rows_of(evidence.loaded.predictions, list(own), evidence.split), "examples"
    if evidence.tokens:
        grid, items = errors.span_confusion(rows, scheme_or_runs(labels)), "entities"
    else:
        if evidence.per_word:
            rows, items = errors.by_word(rows), "words"
        grid = errors.confusion(rows, labels)
    if not grid.to_numpy().any():
        return None
    counts = [[name, *map(float, row)] for name, row in zip(grid.index, grid.to_numpy(), strict=True)]
    n = rows["trial_id"].nunique()
    caption = f"Mean counts of {items} over {n} seeds of the arm best on validation."
    table = Table(["true, and predicted as", *grid.columns], counts, caption)
    return Section("Errors", [table], {"confusion": draw(grid, n, items)}, "True against predicted classes")


def draw(confusion: pd.DataFrame, n: int, items: str) -> Figure:
    """Mean counts by true and predicted class, shaded by the share of the row, paler where a row holds few."""
    counts = confusion.to_numpy(dtype=float)
    totals = np.nansum(counts, axis=1, keepdims=True)
    shades = counts / np.maximum(totals, 1e-12) * np.minimum(1.0, totals / FEW)
    texts = confusion.map(lambda count: "" if np.isnan(count) else f"{count:,.1f}".removesuffix(".0"))
    height = 1.5 + 0.45 * max(len(texts), 3)
    figure, axes = single(height, f"predicted (mean count over n = {n})", "true")
    grid = pd.DataFrame(shades, index=confusion.index, columns=confusion.columns)
    heatmap(grid, axes, texts=texts, low=0.0, high=1.0, fontsize=9 if len(texts) < 10 else 6)
    colour_bar(figure, [axes], f"share of the row (paler below {FEW:.0f} {items})")
    return figure
