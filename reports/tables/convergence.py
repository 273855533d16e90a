"""Rows of `history.parquet` -> the best validation score so far over steps, and the step of convergence, by arm.

A row of history is an evaluation (it has `val/*`) or, in between, the mix weights alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from adalayers.results.study_file import RequestRecord
from adalayers.tasks.metrics import bounds
from reports.reading.frames import numbers
from reports.tables.arms import confirmed, summary

SHARE = 0.95
"""Convergence: the first step at `baseline + SHARE * (own best - baseline)`."""

STEPS = 60
"""Most steps of a curve."""


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


def best_so_far(
    trials: pd.DataFrame, history: pd.DataFrame, metric: str, baseline: float | None
) -> BestSoFar:
    """Return the best scores so far of confirmed trials with history; a diverged one has the trivial model's."""
    columns = {"step": numbers(history, "step"), "score": numbers(history, f"val/{metric}")}
    evaluations = pd.DataFrame({"trial_id": history["trial_id"], **columns}).dropna()
    curves = dict(iter(evaluations.sort_values(["trial_id", "step"]).groupby("trial_id")))
    by_arm: dict[str, dict[int, tuple[np.ndarray, np.ndarray]]] = {}
    rows = confirmed(trials).dropna(subset=["seed"])
    for trial_id, arm, seed, status in rows[["trial_id", "arm", "seed", "status"]].to_numpy(dtype=object):
        if status == "diverged" and baseline is not None:
            by_arm.setdefault(arm, {})[int(seed)] = np.zeros(1), np.full(1, baseline)
        elif trial_id in curves:
            steps, scores = (curves[trial_id][name].to_numpy() for name in columns)
            by_arm.setdefault(arm, {})[int(seed)] = steps, np.maximum.accumulate(scores)
    return BestSoFar(by_arm, baseline)


def learning_curves(best: BestSoFar, request: RequestRecord) -> pd.DataFrame:
    """A row per arm and step: mean best validation score so far over its n seeds, with its t interval.

    The best so far is what a trial would hand over if it ended there, so one that stopped for want of
    patience keeps its own, and the same seeds count at every step; a step counts from where all of an
    arm's seeds have been evaluated. At most `STEPS`, evenly taken, are kept of a long history.
    """
    limits, rows = bounds(request.metric), []
    for arm in (arm.name for arm in request.arms if arm.name in best.curves):
        curves = best.curves[arm].values()
        steps = np.unique(np.concatenate([own for own, _ in curves]))
        steps = steps[steps >= max(own[0] for own, _ in curves)]
        thinned = np.unique(np.linspace(0, len(steps) - 1, min(len(steps), STEPS)).round().astype(int))
        for step in steps[thinned]:
            values = [scores[np.searchsorted(own, step, side="right") - 1] for own, scores in curves]
            rows.append({"arm": arm, "step": step, **summary(values, limits=limits)})
    return pd.DataFrame(rows)


def convergence(best: BestSoFar, request: RequestRecord) -> pd.DataFrame:
    """A row per arm with history: arm, median, low, high, n, censored.

    median: of the steps at which trials first have `SHARE` of their own gain over the trivial model. One that is never
            above that model is censored, and counts as later than any other (inf: half or more were)
    low, high: the earliest and the latest (inf where any is censored; NaN for a single trial). The range of n trials
            holds the arm's true median with probability 1 - 2^(1 - n)
    n: trials with history, censored ones among them
    """
    rows = []
    for arm in (arm.name for arm in request.arms if arm.name in best.curves):
        steps = [_own_step(*curve, best.baseline) for curve in best.curves[arm].values()]
        ends = (min(steps), max(steps)) if len(steps) > 1 else (np.nan, np.nan)
        rows.append([arm, np.median(steps), *ends, len(steps), steps.count(np.inf)])
    return pd.DataFrame(rows, columns=["arm", "median", "low", "high", "n", "censored"])


def _own_step(steps: np.ndarray, best: np.ndarray, baseline: float | None) -> float:
    """Return the first step with `SHARE` of a trial's own gain; inf without a gain."""
    if baseline is None or best[-1] <= baseline:
        return float("inf")
    # The best evaluation itself always counts, whatever rounding does to the threshold.
    return float(steps[np.argmax(best >= min(best[-1], baseline + SHARE * (best[-1] - baseline)))])
