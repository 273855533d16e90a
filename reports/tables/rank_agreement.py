"""Whether two orders of a few layers agree: Spearman's rank correlation, and how large it gets by chance."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from adalayers.results.intervals import LEVEL

EXACT = 8
"""Most things whose orders are counted one by one, 8! = 40,320 of them; for more there is t's approximation."""

MIN_RANKED = 3
"""Fewest things that have an order to speak of."""


def spearman(a: ArrayLike, b: ArrayLike) -> float | None:
    """Return Spearman's rank correlation of two sequences.

    None for fewer than three values, for one that is missing, and where all values of one sequence are the same.
    """
    pairs = np.array([a, b], dtype=float)
    if pairs.shape[1] < MIN_RANKED or np.isnan(pairs).any() or (np.ptp(pairs, axis=1) == 0).any():
        return None
    return float(stats.spearmanr(*pairs).statistic)


@functools.cache
def critical(n: int) -> float | None:
    """Return the least |r| of `n` things that two orders without relation reach in at most 5% of all cases, two-sided.

    Counted over all orders up to `EXACT` things, without ties; by Student's t beyond. None where even |r| = 1 is more
    frequent than that.
    """
    if n < MIN_RANKED:
        return None
    if n > EXACT:
        t = float(stats.t.ppf((1 + LEVEL) / 2, n - 2))
        return t / math.sqrt(n - 2 + t**2)
    orders = np.array(list(itertools.permutations(range(n))))
    squares = ((orders - np.arange(n)) ** 2).sum(axis=1)
    sizes = np.abs(1 - 6 * squares / (n * (n**2 - 1)))
    for size in np.unique(sizes.round(12)):
        if (sizes >= size - 1e-9).mean() <= 1 - LEVEL:
            return float(size)
    return None
