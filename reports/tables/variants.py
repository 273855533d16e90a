"""Scores of a trained model with something taken away, against the same model whole: by variant, over seeds."""

from __future__ import annotations

import pandas as pd

from adalayers.results.study_file import RequestRecord
from reports.reading.frames import numbers
from reports.tables.arms import confirmed, summaries

VARIANT_COLUMNS = ["arm", "variant", "split", "mean", "low", "high", "n"]


def score_changes(
    evaluations: pd.DataFrame, trials: pd.DataFrame, request: RequestRecord, baseline: float | None
) -> pd.DataFrame:
    """A row per arm and variant: by what share of the whole model's score, on the same split, it is higher, over seeds.

    low, high: its 95% t interval over the n seeds, not corrected. Models that have learned nothing, which score no
    more than a trivial one and the smallest effect, are left out. Empty without `evaluations.parquet`.
    """
    needed = {"trial_id", "split", "variant", "metric", "value"}
    if evaluations.empty or not needed <= set(evaluations.columns):
        return pd.DataFrame(columns=VARIANT_COLUMNS)
    rows = evaluations[evaluations["metric"] == request.metric].merge(confirmed(trials), on="trial_id")
    whole = pd.Series(float("nan"), index=rows.index)
    for split in rows["split"].unique():
        whole = whole.where(rows["split"] != split, numbers(rows, f"{split}/{request.metric}"))
    learned = whole > max(baseline or 0.0, 0.0) + (request.smallest_effect or 0.0)
    rows = rows.assign(change=rows["value"] / whole - 1)[learned].dropna(subset=["change"])
    return summaries(rows, VARIANT_COLUMNS[:3], "change")
