"""Evaluations -> learning curves by arm: the best validation score so far, over steps and seeds."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

from adalayers.results.intervals import LEVEL, MIN_N
from adalayers.results.study_file import RequestRecord
from adalayers.tasks.metrics import bounds
from reports.reading.frames import numbers
from reports.tables.arms import confirmed

STEPS = 60
"""Most steps of a curve."""

CURVE_COLUMNS = ["arm", "step", "mean", "low", "high", "n"]


def learning_curves(trials: pd.DataFrame, history: pd.DataFrame, plan: RequestRecord) -> pd.DataFrame:
    """A row per arm and step: mean best validation score so far over its n seeds, with its t interval.

    The best so far is what a trial would hand over if it ended there, so one that stopped for want of
    patience keeps its own, and the same seeds count at every step; a step counts from where all of an
    arm's seeds have been evaluated. low, high: NaN for fewer than `MIN_N` seeds, or where all seeds agree.
    At most `STEPS`, evenly taken, are kept of a long history.
    """
    score = f"val/{plan.metric}"
    rows = confirmed(trials)
    if not {"step", score} <= set(history.columns) or rows.empty:
        return pd.DataFrame(columns=CURVE_COLUMNS)
    table = pd.DataFrame(
        {"trial_id": history["trial_id"], "step": numbers(history, "step"), "score": numbers(history, score)}
    )
    table = table[table["trial_id"].isin(rows["trial_id"])].dropna()
    table["arm"] = table["trial_id"].map(rows.set_index("trial_id")["arm"])
    parts = [
        _curve(arm.name, table[table["arm"] == arm.name], plan)
        for arm in plan.arms
        if arm.name in set(table["arm"])
    ]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=CURVE_COLUMNS)


def _curve(arm: str, table: pd.DataFrame, plan: RequestRecord) -> pd.DataFrame:
    """Return the curve of one arm; `table` has trial_id, step, score."""
    # In numpy: a table of a few steps and seeds takes pandas ten times as long, and every arm has one.
    steps, row = np.unique(table["step"].to_numpy(dtype=float), return_inverse=True)
    trials, column = np.unique(table["trial_id"].to_numpy(dtype=object), return_inverse=True)
    n = len(trials)
    values = np.full((len(steps), n), np.nan)
    values[row, column] = table["score"].to_numpy(dtype=float)  # of two at one step: the later row
    values = np.fmax.accumulate(values, axis=0)
    whole = ~np.isnan(values).any(axis=1)
    steps, values = steps[whole], values[whole]
    if len(values) > STEPS:
        thinned = np.unique(np.linspace(0, len(values) - 1, STEPS).round().astype(int))
        steps, values = steps[thinned], values[thinned]
    mean = values.mean(axis=1)
    half = np.full(len(values), np.nan)
    if n >= MIN_N:
        sd = values.std(axis=1, ddof=1)
        half = np.where(sd > 1e-12, stats.t.ppf(0.5 + LEVEL / 2, n - 1) * sd / np.sqrt(n), np.nan)
    low, high = bounds(plan.metric) or (-np.inf, np.inf)
    ends = {"low": np.maximum(mean - half, low), "high": np.minimum(mean + half, high)}
    return pd.DataFrame({"arm": arm, "step": steps, "mean": mean, **ends, "n": n}, columns=CURVE_COLUMNS)
