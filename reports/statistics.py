"""Statistics on a handful of seeds: t intervals, paired differences, Holm's correction, seeds needed.

Functions of plain numbers, small enough to check by hand. A number that cannot be had is None, never a
guess: one seed has no interval, and scores that agree on every seed have no spread to reckon one from.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

LEVEL = 0.95
"""Confidence level of every interval, and of all comparisons of one family together."""

_SAME = 1e-12
"""Values closer than this, relative to the largest, differ by rounding alone."""


@dataclass(frozen=True)
class Interval:
    """A mean over `n` values and its confidence interval; low and high are None where there is none."""

    mean: float | None
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True)
class Paired:
    """Differences `a - b` over the `n` seeds that both have.

    difference: their mean; sd: their standard deviation (None for n < 2)
    p_value:    of the two-sided paired t test; None for n < 2 and for differences that are all the same
    """

    n: int
    difference: float | None
    sd: float | None
    p_value: float | None


@dataclass(frozen=True)
class Decision:
    """What Holm's procedure says of one comparison.

    p_adjusted: Holm's adjusted p value; level: the confidence level of the interval that agrees with it
    """

    p_adjusted: float | None
    rejected: bool
    level: float


def mean_interval(values: Iterable[float], level: float = LEVEL) -> Interval:
    """Return the mean of `values` with its t interval; missing values are left out and not counted.

    One value has no interval. Nor have values that are all the same: their spread of 0 would give an
    interval of no width, which claims far more than a few seeds can show.
    """
    known = _known(values)
    if known.size == 0:
        return Interval(None, None, None, 0)
    mean = float(known.mean())
    if _all_same(known):
        return Interval(mean, None, None, int(known.size))
    low, high = _t_interval(mean, float(known.std(ddof=1)), int(known.size), level)
    return Interval(mean, low, high, int(known.size))


def paired_difference(a: pd.Series, b: pd.Series) -> Paired:
    """Compare two arms on the seeds they share; `a` and `b` are scores indexed by seed."""
    pairs = pd.concat([a.rename("a"), b.rename("b")], axis=1, join="inner").dropna()
    differences = (pairs["a"] - pairs["b"]).to_numpy(dtype=float)
    n = int(differences.size)
    if n == 0:
        return Paired(0, None, None, None)
    mean = float(differences.mean())
    if n == 1:
        return Paired(1, mean, None, None)
    # The scale is that of the scores: 0.3 - 0.2 and 0.4 - 0.3 are the same difference, rounding apart.
    if _all_same(differences, scale=float(np.abs(pairs.to_numpy(dtype=float)).max())):
        return Paired(n, mean, 0.0, None)
    return Paired(n, mean, float(differences.std(ddof=1)), float(stats.ttest_1samp(differences, 0.0).pvalue))


def difference_interval(paired: Paired, level: float) -> tuple[float, float] | None:
    """Return the paired t interval of the mean difference at `level`, or None where there is none."""
    if paired.p_value is None or paired.difference is None or paired.sd is None:
        return None
    return _t_interval(paired.difference, paired.sd, paired.n, level)


def holm(p_values: Sequence[float | None], level: float = LEVEL) -> list[Decision]:
    """Holm's step-down procedure over one family of comparisons, in the order given.

    A comparison without a p value is never rejected, but counts: m is the number of comparisons planned,
    not of those that happened to work.

    The interval that belongs to a decision: a comparison rejected at step j of m has its interval at
    1 - (1 - level) / (m - j + 1), one that is not has Bonferroni's, 1 - (1 - level) / m. So an interval
    leaves out 0 exactly where Holm rejects. It is the decisions that are wrong in at most 1 - level of all
    families; the intervals of rejected comparisons, taken together, cover a little less often than that.
    """
    m, alpha = len(p_values), 1.0 - level
    tested = sorted((p, i) for i, p in enumerate(p_values) if p is not None)
    decisions = [Decision(None, False, 1.0 - alpha / m) for _ in p_values]
    running, open_ = 0.0, True
    for step, (p, i) in enumerate(tested, start=1):
        share = m - step + 1
        running = max(running, min(1.0, share * p))
        open_ = open_ and p <= alpha / share
        decisions[i] = Decision(running, open_, 1.0 - alpha / (share if open_ else m))
    return decisions


def sd_upper_limit(sd: float, n: int, confidence: float = LEVEL) -> float:
    """Return the upper confidence limit of a standard deviation that was estimated from `n` normal values."""
    return sd * math.sqrt((n - 1) / float(stats.chi2.ppf(1.0 - confidence, n - 1)))


def power(effect: float, n: int, comparisons: int = 1, level: float = LEVEL) -> float:
    """Return the chance that a paired t test over `n` seeds finds a true difference of `effect` SDs.

    The SD is that of the paired difference; the test is two-sided at (1 - level) / comparisons, which is
    what Holm asks of the first comparison.
    """
    critical = float(stats.t.ppf(1.0 - (1.0 - level) / comparisons / 2, n - 1))
    shift = abs(effect) * math.sqrt(n)
    return float(stats.nct.sf(critical, n - 1, shift) + stats.nct.cdf(-critical, n - 1, shift))


def seeds_needed(effect: float, comparisons: int = 1, wanted: float = 0.9, limit: int = 1000) -> int | None:
    """Return the fewest seeds that find a difference of `effect` SDs with chance `wanted`, or None."""
    high = 2
    while power(effect, high, comparisons) < wanted:  # doubling: far beyond the answer, nct gives up
        if high > limit:
            return None
        high *= 2
    low = high // 2  # power rises with n: at `low` it is too small (or n = 1), at `high` it suffices
    while high - low > 1:
        middle = (low + high) // 2
        if power(effect, middle, comparisons) >= wanted:
            high = middle
        else:
            low = middle
    return high if high <= limit else None


def _known(values: Iterable[float]) -> np.ndarray:
    array = np.asarray(list(values), dtype=float)
    return array[np.isfinite(array)]


def _all_same(values: np.ndarray, scale: float = 0.0) -> bool:
    return bool(np.ptp(values) <= _SAME * max(scale, float(np.abs(values).max())))


def _t_interval(mean: float, sd: float, n: int, level: float) -> tuple[float, float]:
    half = float(stats.t.ppf(0.5 + level / 2, n - 1)) * sd / math.sqrt(n)
    return mean - half, mean + half
