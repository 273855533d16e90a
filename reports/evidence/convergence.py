"""Rows of `history.parquet` -> the step of convergence by trial and by arm.

A row of history is an evaluation (it has `val/*`) or, in between, the mix weights alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from reports.evidence.tables import confirmed
from reports.reading.frames import numbers
from reports.reading.load import Plan

SHARE = 0.95
"""Convergence: the first step at `baseline + SHARE * (own best - baseline)`."""

AT_FIRST = 0.8
"""Share of trials that converge at their first evaluation from which on steps say nothing."""
AT_LAST = 0.5
"""Share of trials that converge at their last evaluation, likewise."""

REACHED, CENSORED, UNKNOWN = "reached", "censored", "no history"


def convergence(trials: pd.DataFrame, history: pd.DataFrame, plan: Plan) -> pd.DataFrame:
    """A row per completed confirmed trial: trial_id, arm, seed, step, state.

    `step` is that of the first evaluation with `SHARE` of the trial's own gain, so it is known to within one
    evaluation. A trial that never beats the baseline is censored (NaN): it converged to nothing.
    """
    score = f"val/{plan.metric}"
    rows = confirmed(trials)
    curves = _curves(history, score)
    table = []
    for trial_id, arm, seed in zip(rows["trial_id"], rows["arm"], rows["seed"], strict=True):
        curve = curves.get(trial_id)
        row = {"trial_id": trial_id, "arm": arm, "seed": seed, "step": np.nan, "state": UNKNOWN}
        if curve is not None and plan.baseline is not None:
            scores, baseline = curve[score], plan.baseline
            threshold = baseline + SHARE * (scores.max() - baseline)
            row["state"] = CENSORED
            if scores.max() > baseline:
                # The best evaluation itself always counts, whatever rounding does to the threshold.
                first = curve.loc[scores >= min(threshold, scores.max()), "step"].iloc[0]
                row |= {"step": float(first), "state": REACHED}
        table.append(row)
    columns = ["trial_id", "arm", "seed", "step", "state"]
    return pd.DataFrame(table, columns=columns).sort_values(["arm", "seed"]).reset_index(drop=True)


def convergence_by_arm(each: pd.DataFrame, arm_table: pd.DataFrame) -> pd.DataFrame:
    """A row per arm of `tables.arms`: its role, factors and line, median, low, high, n, censored, without_history.

    each: as from `convergence`.
    median: of the steps, a censored trial counting as later than any other (inf: half or more were).
    low, high: the earliest and the latest (inf where any is censored; NaN for a single trial). The range
    of n trials holds the arm's true median with probability 1 - 2^(1 - n).
    n: trials with history, censored ones among them.
    """
    rows = []
    for arm in arm_table["arm"]:
        of_arm = each[each["arm"] == arm]
        steps = of_arm.loc[of_arm["state"] != UNKNOWN, "step"].fillna(np.inf)
        rows.append(
            {
                "median": steps.median(),
                "low": steps.min() if len(steps) > 1 else np.nan,
                "high": steps.max() if len(steps) > 1 else np.nan,
                "n": len(steps),
                "censored": (of_arm["state"] == CENSORED).sum(),
                "without_history": (of_arm["state"] == UNKNOWN).sum(),
            }
        )
    columns = ["median", "low", "high", "n", "censored", "without_history"]
    summary = pd.DataFrame(rows, columns=columns, index=arm_table.index)
    settings = arm_table.filter(regex="^(arm|role|line|config/.*)$")
    return pd.concat([settings, summary], axis=1)


@dataclass(frozen=True)
class Pace:
    """trials: those with a step of convergence; first, last: of them, those that converged at their first evaluation,
    or at their last; once: those that were evaluated once.
    """

    trials: int
    first: int
    last: int
    once: int = 0

    @property
    def saturated(self) -> bool:
        return self.first >= AT_FIRST * self.trials or self.last >= AT_LAST * self.trials

    def sentence(self) -> str:
        if self.trials and self.once == self.trials:
            return (
                "Every trial was evaluated once, so speed cannot be compared here; it would take more epochs."
            )
        if self.first < AT_FIRST * self.trials:
            return (
                f"{self.last} of {self.trials} trials were still gaining at their last evaluation, so speed cannot be "
                "compared here; it would take more epochs."
            )
        return (
            f"{self.first} of {self.trials} trials reach 95% of their own gain by their first evaluation, so speed "
            "cannot be compared here; it would take a lower learning rate, or fewer training examples."
        )


def pace(each: pd.DataFrame, history: pd.DataFrame, plan: Plan) -> Pace:
    """Return how many trials converge at their first evaluation, or at their last; each: as from `convergence`."""
    rows = each[each["state"] == REACHED]
    score = f"val/{plan.metric}"
    if rows.empty or not {"step", score} <= set(history.columns):
        return Pace(0, 0, 0)
    evaluated = history.dropna(subset=["step", score])
    ends = evaluated.groupby("trial_id")["step"].agg(["min", "max"]).reindex(rows["trial_id"])
    first = rows["step"].to_numpy() <= ends["min"].to_numpy()
    last = (rows["step"].to_numpy() >= ends["max"].to_numpy()) & ~first
    once = ends["min"].to_numpy() == ends["max"].to_numpy()
    return Pace(len(rows), int(first.sum()), int(last.sum()), int(once.sum()))


def _curves(history: pd.DataFrame, score: str) -> dict[str, pd.DataFrame]:
    """Return trial_id -> its evaluations that have a score, in the order of steps."""
    if not {"step", score} <= set(history.columns):
        return {}
    table = pd.DataFrame({"trial_id": history["trial_id"]})
    table["step"], table[score] = numbers(history, "step"), numbers(history, score)
    table = table.dropna(subset=["step", score]).sort_values(["trial_id", "step"])
    return {str(trial_id): rows for trial_id, rows in table.groupby("trial_id", sort=False)}
