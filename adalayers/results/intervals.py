"""The interval that stands next to a mean over seeds, on pages, model cards and in frames: one rule for all."""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import fmean

import numpy as np
from scipy import stats

LEVEL = 0.95
"""Confidence level of an interval that stands alone, and of one family of comparisons over all its analyses."""
MIN_N = 5
"""Fewer values than this have no t interval: it would say more of the t distribution than of them.

One less than the first analysis of a comparison takes (`comparisons.FIRST`): a mean alone decides nothing, and where
the number of draws is published (few_shot: 5) its interval belongs next to it.
"""
TOLERANCE = 1e-12
"""Values closer than this, relative to the largest, differ by rounding alone."""


def mean_interval(
    values: Iterable[float], *, limits: tuple[float, float] = (-math.inf, math.inf)
) -> tuple[float, float, float, int]:
    """Return the mean of `values`, the ends of its t interval, and of how many it is; missing ones are left out.

    Fewer than `MIN_N` values have no interval (NaN). Nor have values that are all the same: their spread of 0 would
    give an interval of no width, which claims far more than a few seeds can show.

    limits: between which the values lie, and so the interval
    """
    array = np.asarray(list(values), dtype=float)
    finite = array[np.isfinite(array)]
    mean = fmean(finite.tolist()) if finite.size else math.nan
    if finite.size < MIN_N or all_same(finite):
        return mean, math.nan, math.nan, int(finite.size)
    low, high = map(float, stats.t.interval(LEVEL, finite.size - 1, mean, stats.sem(finite)))
    return mean, max(low, limits[0]), min(high, limits[1]), int(finite.size)


def all_same(values: np.ndarray, scale: float = 0.0) -> bool:
    """Return whether values differ by rounding alone; scale: the largest value that they come from."""
    return bool(np.ptp(values) <= TOLERANCE * max(scale, float(np.abs(values).max())))
