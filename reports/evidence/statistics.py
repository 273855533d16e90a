"""Statistics on a handful of seeds: t intervals and paired differences.

Functions of plain numbers, small enough to check by hand. A number that cannot be had is None, never a
guess: one seed has no interval, and scores that agree on every seed have no spread to compute one from.

`alpha` below is the chance of error that one interval or test may use, two-sided: 0.05 is a 95% interval.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy import optimize, special

from adalayers.results.intervals import TOLERANCE, all_same
from reports.evidence.boundaries import student_below


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

    @property
    def error(self) -> float:
        """The squared standard error of the mean, of two seeds or more."""
        return (self.sd or 0.0) ** 2 / self.n


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
    ties = np.abs(values) <= TOLERANCE * scale
    counts = (int(((values > 0) & ~ties).sum()), int(ties.sum()))
    if n == 1:
        return Paired(1, mean, None, None, *counts)
    if all_same(values, scale=scale):
        return Paired(n, mean, 0.0, None, *counts)
    sd = float(values.std(ddof=1))
    p_value = 2 * float(special.stdtr(n - 1, -abs(mean) / (sd / math.sqrt(n))))
    return Paired(n, mean, sd, p_value, *counts)


def unpaired_p(t: float, first: Paired, second: Paired) -> float:
    """Return the two-sided p value of t >= 0, the sum of two independent means over its standard error.

    Of Behrens and Fisher: under the null hypothesis t is the sum of two Student's t, with n - 1 degrees of freedom
    each, in proportion to the two standard errors as seen. Satterthwaite's single t rejects several times as often
    as it says at the small errors and few seeds of a study; this one was nowhere found to (docs/evidence.md).
    """
    exact, spread = sorted((first, second), key=lambda part: part.error)
    total = first.error + second.error
    quantiles, weights = _quantiles(exact.n - 1)
    shift = math.sqrt(exact.error / total) * quantiles
    width = math.sqrt(spread.error / total)
    below = student_below(spread.n - 1, np.concatenate([-(shift + t), shift - t]) / width)
    return float((np.tile(weights, 2) * below).sum())


def unpaired_critical(alpha: float, first: Paired, second: Paired) -> float:
    """Return the t whose `unpaired_p` is alpha; infinite where alpha is 0."""
    if alpha <= 0:
        return math.inf
    most = float(
        special.stdtrit(min(first.n, second.n) - 1, 1 - alpha / 2)
    )  # that of the fewest degrees of freedom
    return float(optimize.brentq(lambda t: unpaired_p(t, first, second) - alpha, 0.0, 1.1 * most, xtol=1e-9))


@functools.cache
def _quantiles(df: int) -> tuple[np.ndarray, np.ndarray]:
    """Return values of Student's t and weights that average over its distribution, dense in its tails."""
    nodes, weights = special.roots_legendre(400)
    x = (nodes + 1) / 2
    return special.stdtrit(df, x**3 * (10 - 15 * x + 6 * x**2)), 15 * x**2 * (1 - x) ** 2 * weights


def share_interval(hits: int, ties: int, n: int, alpha: float) -> tuple[float, float]:
    """Return Clopper and Pearson's exact interval of a probability, seen to happen `hits` times in `n` > 0.

    A tie is evidence for neither side: it counts against at the low end and for at the high end.
    """
    most = hits + ties
    low = special.betaincinv(hits, n - hits + 1, alpha / 2) if hits else 0.0
    high = special.betaincinv(most + 1, n - most, 1 - alpha / 2) if most < n else 1.0
    return float(low), float(high)
