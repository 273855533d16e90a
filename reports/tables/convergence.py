"""Rows of `history.parquet` -> the step of convergence by trial and by arm.

A row of history is an evaluation (it has `val/*`) or, in between, the mix weights alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from reports.reading.frames import numbers
from reports.reading.load import Plan
from reports.tables.arms import confirmed

SHARE = 0.95
"""Convergence: the first step at `baseline + SHARE * (own best - baseline)`."""

AT_FIRST = 0.8
"""Share of trials that have a common score at their first evaluation from which on steps say nothing."""

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
class BestSoFar:
    """The best validation score so far of every confirmed trial, by which arms are compared for speed.

    curves: arm -> seed -> the steps of a trial's evaluations, and the best score up to each
    baseline: the trivial model's score
    """

    curves: Mapping[str, Mapping[int, tuple[np.ndarray, np.ndarray]]]
    baseline: float | None

    def steps(self, arms: Iterable[str]) -> dict[str, dict[int, float]]:
        """Return arm -> seed -> the step at which a trial first has a score that all trials of these arms reach.

        It is `SHARE` of the way from the trivial score to the least of their bests. Nothing where one trial of them is
        no better than the trivial model: then there is no such score.
        """
        of_arms = {arm: self.curves.get(arm, {}) for arm in arms}
        bests = [float(scores[-1]) for curves in of_arms.values() for _, scores in curves.values()]
        if self.baseline is None or not all(of_arms.values()) or min(bests) <= self.baseline:
            return {}
        score = min(min(bests), self.baseline + SHARE * (min(bests) - self.baseline))
        return {
            arm: {seed: float(steps[np.argmax(scores >= score)]) for seed, (steps, scores) in curves.items()}
            for arm, curves in of_arms.items()
        }


def best_so_far(trials: pd.DataFrame, history: pd.DataFrame, plan: Plan) -> BestSoFar:
    """Return the best scores so far of confirmed trials with history; a diverged one has the trivial model's."""
    rows, curves = confirmed(trials), _curves(history, f"val/{plan.metric}")
    by_arm: dict[str, dict[int, tuple[np.ndarray, np.ndarray]]] = {}
    names = ("trial_id", "arm", "seed", "status")
    for trial_id, arm, seed, status in zip(*(rows[name] for name in names), strict=True):
        if pd.isna(seed):
            continue
        if status == "diverged" and plan.baseline is not None:
            by_arm.setdefault(arm, {})[int(seed)] = np.zeros(1), np.full(1, plan.baseline)
        elif (curve := curves.get(trial_id)) is not None:
            scores = np.maximum.accumulate(curve[f"val/{plan.metric}"].to_numpy())
            by_arm.setdefault(arm, {})[int(seed)] = curve["step"].to_numpy(), scores
    return BestSoFar(by_arm, plan.baseline)


@dataclass(frozen=True)
class Pace:
    """Whether the speed of arms can be compared.

    trials: those of primary comparisons with a score that all trials of both sides reach, each comparison's counted
    first: of them, those that have it at their first evaluation
    without: primary comparisons without such a score
    once: trials that were evaluated once
    """

    trials: int
    first: int
    without: int
    once: int = 0

    @property
    def saturated(self) -> bool:
        return self.first >= AT_FIRST * self.trials

    def sentence(self) -> str:
        if not self.trials:
            return "no score above the trivial one is reached by all trials of both sides, so it cannot be compared."
        if self.once == self.trials:
            return "every trial was evaluated once, so it cannot be compared; it would take more epochs."
        return (
            f"{self.first} of {self.trials} trials have the score that both sides reach at their first evaluation, so "
            "it cannot be compared; it would take a lower learning rate, or fewer training examples."
        )


def pace(best: BestSoFar, plan: Plan) -> Pace:
    """Return whether the speed of arms can be compared."""
    trials = first = without = once = 0
    for comparison in plan.comparisons:
        arms = comparison.weights
        if not comparison.primary or not all(best.curves.get(arm) for arm in arms):
            continue
        reached = best.steps(arms)
        without += not reached
        for arm, by_seed in reached.items():
            trials += len(by_seed)
            once += sum(len(best.curves[arm][seed][0]) == 1 for seed in by_seed)
            first += sum(bool(step <= best.curves[arm][seed][0][0]) for seed, step in by_seed.items())
    return Pace(trials, first, without, once)


def _curves(history: pd.DataFrame, score: str) -> dict[str, pd.DataFrame]:
    """Return trial_id -> its evaluations that have a score, in the order of steps."""
    if not {"step", score} <= set(history.columns):
        return {}
    table = pd.DataFrame({"trial_id": history["trial_id"]})
    table["step"], table[score] = numbers(history, "step"), numbers(history, score)
    table = table.dropna(subset=["step", score]).sort_values(["trial_id", "step"])
    return {str(trial_id): rows for trial_id, rows in table.groupby("trial_id", sort=False)}
