"""Statistics on a handful of seeds: t intervals, paired differences, alpha spent, seeds needed.

Functions of plain numbers, small enough to check by hand. A number that cannot be had is None, never a
guess: one seed has no interval, and scores that agree on every seed have no spread to reckon one from.

`alpha` below is the chance of error that one interval or test may use, two-sided: 0.05 is a 95% interval.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

LEVEL = 0.95
"""Confidence level of an interval that stands alone, and of one family of comparisons over all its analyses."""

CHANCE = 0.9
"""How often a study of the size named would find the difference it is meant to find."""

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
    above, ties: on how many seeds `a` is above `b`, and equal to it but for rounding
    """

    n: int
    difference: float | None
    sd: float | None
    p_value: float | None
    above: int = 0
    ties: int = 0


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
    others = dict(zip(b.index, b, strict=True))
    pairs = np.array([(value, others[seed]) for seed, value in a.items() if seed in others], dtype=float)
    pairs = pairs.reshape(-1, 2)
    pairs = pairs[np.isfinite(pairs).all(axis=1)]
    differences = pairs[:, 0] - pairs[:, 1]
    n = int(differences.size)
    if n == 0:
        return Paired(0, None, None, None)
    mean = float(differences.mean())
    # The scale is that of the scores: 0.3 - 0.2 and 0.4 - 0.3 are the same difference, rounding apart.
    scale = float(np.abs(pairs).max())
    ties = np.abs(differences) <= _SAME * scale
    counts = (int(((differences > 0) & ~ties).sum()), int(ties.sum()))
    if n == 1:
        return Paired(1, mean, None, None, *counts)
    if _all_same(differences, scale=scale):
        return Paired(n, mean, 0.0, None, *counts)
    sd = float(differences.std(ddof=1))
    p_value = 2 * float(stats.t.sf(abs(mean) / (sd / math.sqrt(n)), n - 1))
    return Paired(n, mean, sd, p_value, *counts)


def difference_interval(paired: Paired, alpha: float, variance: float = 0.0) -> tuple[float, float] | None:
    """Return the paired t interval of the mean difference at 1 - `alpha`, or None where there is none.

    variance: of the mean difference, from a source other than seeds; added to theirs. The t distribution
    keeps the degrees of freedom of the seeds, n - 1, which errs on the wide side.
    """
    if paired.p_value is None or paired.difference is None or paired.sd is None:
        return None
    error = math.sqrt(paired.sd**2 / paired.n + variance)
    half = float(stats.t.isf(alpha / 2, paired.n - 1)) * error
    return (paired.difference - half, paired.difference + half) if math.isfinite(half) else None


def analysis_alpha(analysis: int, level: float = LEVEL) -> float:
    """Return the alpha spent by analysis 1, 2, 3... of 1 - `level`: half of what those before it left.

    The parts of all analyses ever made sum to less than 1 - level, so by the union bound all of them are right
    together with at least `level`, whenever and for whatever reason analyses are made (alpha spending; Lan
    and DeMets 1983, with a spending function that needs no planned number of analyses).
    """
    return (1.0 - level) * 0.5 ** max(1, analysis)


def comparison_alpha(analysis: int, comparisons: int, level: float = LEVEL) -> float:
    """Return the alpha spent by one of `comparisons` at an analysis: Bonferroni's equal share of its part."""
    return analysis_alpha(analysis, level) / max(1, comparisons)


def analysis_cost(analysis: int, comparisons: int, n: int) -> float:
    """Return how many times as wide intervals over `n` >= 2 seeds are as if this were the only analysis ever."""
    points = stats.t.isf(
        [comparison_alpha(analysis, comparisons) / 2, (1.0 - LEVEL) / comparisons / 2], n - 1
    )
    return float(points[0] / points[1])


def adjusted_p(p_value: float, analysis: int, comparisons: int) -> float:
    """Return the p value to compare with 0.05: at most that exactly where the interval leaves out 0."""
    return min(1.0, p_value * (1.0 - LEVEL) / comparison_alpha(analysis, comparisons))


def share_interval(hits: int, ties: int, n: int, alpha: float) -> tuple[float, float]:
    """Return Clopper and Pearson's exact interval of a probability, seen to happen `hits` times in `n` > 0.

    A tie is evidence for neither side: it counts against at the low end and for at the high end.
    """
    most = hits + ties
    low = stats.binomtest(hits, n).proportion_ci(1 - alpha, method="exact").low
    high = stats.binomtest(most, n).proportion_ci(1 - alpha, method="exact").high
    return float(low), float(high)


def sd_upper_limit(sd: float, n: int, confidence: float = LEVEL) -> float:
    """Return the upper confidence limit of a standard deviation that was estimated from `n` normal values."""
    return sd * math.sqrt((n - 1) / float(stats.chi2.ppf(1.0 - confidence, n - 1)))


def power(effect: float, n: int, alpha: float) -> float:
    """Return the chance that a two-sided paired t test at `alpha` over `n` seeds finds a difference.

    effect: the true difference in SDs of the paired difference
    """
    # The noncentral t by its definition, averaged over the quantiles of the estimated SD: scipy's own gives
    # NaN for large effects at small alpha.
    critical, shift = float(stats.t.isf(alpha / 2, n - 1)), abs(effect) * math.sqrt(n)
    spreads = critical * np.sqrt(stats.chi2.ppf((np.arange(2000) + 0.5) / 2000, n - 1) / (n - 1))
    return float((stats.norm.cdf(shift - spreads) + stats.norm.cdf(-shift - spreads)).mean())


def seeds_needed(effect: float, alpha: float, wanted: float = CHANCE, limit: int = 1000) -> int | None:
    """Return the fewest seeds that find a difference of `effect` SDs with chance `wanted`, or None."""
    high = 2
    while power(effect, high, alpha) < wanted:
        if high > limit:
            return None
        high *= 2
    low = high // 2  # power rises with n: at `low` it is too small (or n = 1), at `high` it suffices
    while high - low > 1:
        middle = (low + high) // 2
        if power(effect, middle, alpha) >= wanted:
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
