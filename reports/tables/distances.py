"""Distance of a case's data against its score: a row per case and measure, and rank correlations."""

from __future__ import annotations

from typing import Any

import pandas as pd
from scipy import stats

from adalayers.tasks.metrics import bounds

MIN_CASES = 5
"""Fewest cases of a rank correlation: four in a perfect order still have a p value of 0.08."""


def share_of_the_way(score: float | None, trivial: float | None, metric: str) -> float | None:
    """Return (score - trivial) / (best - trivial); None where it is not tested, or the trivial model is perfect."""
    limits = bounds(metric)
    if score is None or trivial is None or limits is None or limits[1] <= trivial:
        return None
    return (score - trivial) / (limits[1] - trivial)


def correlations(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Return Kendall's tau of each measure with the share reached, over the cases of one backbone that have both.

    At least `MIN_CASES`: backbone, measure, n, tau, and the p value times the number of those that were tested.

    Args:
        rows: A row per case and measure: backbone, title (of the measure), x (the distance), mean (the share).
    """
    tested = []
    for (backbone, title), own in rows.dropna(subset=["x", "mean"]).groupby(
        ["backbone", "title"], sort=False
    ):
        if len(own) >= MIN_CASES and own["x"].nunique() > 1 and own["mean"].nunique() > 1:
            tau, p_value = stats.kendalltau(own["x"], own["mean"])
            tested.append({"backbone": backbone, "measure": title, "n": len(own), "tau": tau, "p": p_value})
    return [{**one, "p": min(1.0, one["p"] * len(tested))} for one in tested]
