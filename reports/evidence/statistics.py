"""Statistics on a handful of seeds: t intervals and paired differences.

Functions of plain numbers, small enough to check by hand. A number that cannot be had is None, never a
guess: one seed has no interval, and scores that agree on every seed have no spread to compute one from.

`alpha` below is the chance of error that one interval or test may use, two-sided: 0.05 is a 95% interval.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy import special, stats

LEVEL = 0.95
"""Confidence level of an interval that stands alone, and of one family of comparisons over all its analyses."""

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


FEW = 5
"""Fewer values than this have no t interval: it would say more of the t distribution than of them."""


def mean_interval(
    values: Iterable[float], level: float = LEVEL, *, limits: tuple[float, float] | None = None
) -> Interval:
    """Return the mean of `values` with its t interval; missing values are left out and not counted.

    Fewer than `FEW` values have no interval. Nor have values that are all the same: their spread of 0 would give an
    interval of no width, which claims far more than a few seeds can show.

    limits: between which the values lie, and so the interval
    """
    known = _known(values)
    if known.size == 0:
        return Interval(None, None, None, 0)
    mean = float(known.mean())
    if known.size < FEW or _all_same(known):
        return Interval(mean, None, None, int(known.size))
    low, high = _t_interval(mean, float(known.std(ddof=1)), int(known.size), level)
    if limits is not None:
        low, high = max(low, limits[0]), min(high, limits[1])
    return Interval(mean, low, high, int(known.size))


def differences(
    values: Mapping[str, Mapping[int, float]], weights: Mapping[str, float], seeds: Collection[int]
) -> dict[int, float]:
    """Return the weighted sum of arms' values by seed, on those of `seeds` that all of them have, in order."""
    arms = [values.get(arm, {}) for arm in weights]
    found = {}
    for seed in sorted(seeds):
        of_seed = [of_arm.get(seed, math.nan) for of_arm in arms]
        if all(map(math.isfinite, of_seed)):
            found[seed] = sum(map(operator.mul, weights.values(), of_seed))
    return found


def paired(known: Iterable[float], *, scale: float) -> Paired:
    """Summarise differences by seed; scale: the largest value they are differences of, which sets what rounding is."""
    values = np.fromiter(known, dtype=float)
    n = int(values.size)
    if n == 0:
        return Paired(0, None, None, None)
    mean = float(values.mean())
    # The scale is that of the scores: 0.3 - 0.2 and 0.4 - 0.3 are the same difference, rounding apart.
    ties = np.abs(values) <= _SAME * scale
    counts = (int(((values > 0) & ~ties).sum()), int(ties.sum()))
    if n == 1:
        return Paired(1, mean, None, None, *counts)
    if _all_same(values, scale=scale):
        return Paired(n, mean, 0.0, None, *counts)
    sd = float(values.std(ddof=1))
    p_value = 2 * float(special.stdtr(n - 1, -abs(mean) / (sd / math.sqrt(n))))
    return Paired(n, mean, sd, p_value, *counts)


def share_interval(hits: int, ties: int, n: int, alpha: float) -> tuple[float, float]:
    """Return Clopper and Pearson's exact interval of a probability, seen to happen `hits` times in `n` > 0.

    A tie is evidence for neither side: it counts against at the low end and for at the high end.
    """
    most = hits + ties
    low = special.betaincinv(hits, n - hits + 1, alpha / 2) if hits else 0.0
    high = special.betaincinv(most + 1, n - most, 1 - alpha / 2) if most < n else 1.0
    return float(low), float(high)


def _known(values: Iterable[float]) -> np.ndarray:
    array = np.asarray(list(values), dtype=float)
    return array[np.isfinite(array)]


def _all_same(values: np.ndarray, scale: float = 0.0) -> bool:
    return bool(np.ptp(values) <= _SAME * max(scale, float(np.abs(values).max())))


def _t_interval(mean: float, sd: float, n: int, level: float) -> tuple[float, float]:
    half = float(stats.t.ppf(0.5 + level / 2, n - 1)) * sd / math.sqrt(n)
    return mean - half, mean + half
