"""Critical values of a t test that is made again as pairs come in (a group sequential test), exactly.

Under the null hypothesis the t statistics at n_1 < n_2 < ... pairs of normal differences have a joint distribution
that depends on no unknown: with w = sum(x) / (sqrt(n) |x|), t = w sqrt(n - 1) / sqrt(1 - w^2), and w is a Markov chain,
because |x|^2 is independent of the directions seen so far. So an amount of error can be spent at every analysis
(Lan and DeMets 1983) without the normal approximation, which is poor at three pairs. `tests` compare with
simulated studies.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from scipy import optimize, special, stats

CELLS = 240
"""Of the interval in which a test goes on; halving their width changes the critical values by less than 1e-3."""
NODES, FEW_NODES = 12, 40
"""Of the quadrature over how the squares divide between the pairs seen and those to come; the second for three or
fewer to come."""
MOST_TERMS = 60
"""Degrees of freedom from which on the sums of Student's t are longer than they are fast."""
LEAST = 1e-12
"""An amount of error below this is not spent: no value of t is critical."""
SMALL, TINY, FEW = 1e-4, 1e-9, 6
"""Error below the first is spent as by a single test after so few pairs or fewer; below the second, always."""


def critical_values(analyses: Sequence[tuple[int, float]]) -> list[float]:
    """Return for each analysis (n pairs, total two-sided error spent up to it) the |t| above which it rejects.

    The chance that any of the first j analyses rejects a true null hypothesis is the error of the j-th. Infinite
    where there is no error to spend, or fewer than two pairs. Raises `ValueError` unless n grows and error does not
    fall.
    """
    sizes, errors = [n for n, _ in analyses], [error for _, error in analyses]
    if any(b <= a for a, b in itertools.pairwise(sizes)) or sorted(errors) != errors:
        raise ValueError(f"wanted growing numbers of pairs and errors that do not fall, got {list(analyses)}")
    critical, spending, spent = [], [], 0.0
    for n, error in analyses:
        if n < 2 or error - spent <= LEAST:
            critical.append(math.inf)
            continue
        spent = error
        spending.append((int(n), float(error)))
        critical.append(_last(tuple(spending))[0])
    return critical


@lru_cache(maxsize=4096)
def _last(analyses: tuple[tuple[int, float], ...]) -> tuple[float, float]:
    """Return the last analysis's critical |t|, and the angle whose sine is that value's w."""
    (n, error), before = analyses[-1], analyses[:-1]
    spend = error - (before[-1][1] if before else 0.0)
    if not before or before[-1][0] < 3 or spend < (SMALL if before[-1][0] <= FEW else TINY):
        # Where the quadrature is not good enough, the single test's value, which is never too low.
        critical = float(stats.t.isf(spend / 2, n - 1))
        return critical, math.atan2(critical, math.sqrt(n - 1))
    above = _chance_above(analyses)
    angle = float(
        optimize.brentq(
            lambda x: 2 * above(np.array([math.sin(x)]))[0] - spend, 1e-9, math.pi / 2, xtol=1e-12
        )
    )
    return float(_t(np.array([math.sin(angle)]), n)[0]), angle


@lru_cache(maxsize=4096)
def _continuation_density(analyses: tuple[tuple[int, float], ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return the middles (w) and masses of the cells in which the test goes on after the last of these analyses.

    On their own, as they take far longer than a critical value, and none is asked of a schedule's last analysis.
    """
    angle = _last(analyses)[1]
    edges = np.sin(np.linspace(0.0, angle, CELLS // 2 + 1))
    falls = -np.diff(_chance_above(analyses)(edges))
    middles = np.sin((np.arange(CELLS // 2) + 0.5) * angle / (CELLS // 2))
    return np.concatenate([-middles[::-1], middles]), np.concatenate([falls[::-1], falls])


def _chance_above(analyses: tuple[tuple[int, float], ...]) -> Callable[[np.ndarray], np.ndarray]:
    """Return what gives the chance that w exceeds each cut at the last analysis, and that the test went on to it."""
    (n, _), before = analyses[-1], analyses[:-1]
    if not before:
        return lambda cuts: stats.t.sf(_t(cuts, n), n - 1)
    seen = before[-1][0]
    return lambda cuts: _above(cuts, *_continuation_density(before), seen, n - seen)


def _t(w: np.ndarray, n: int) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return w * math.sqrt(n - 1) / np.sqrt(np.maximum(0.0, 1 - w**2))


def _above(cuts: np.ndarray, w: np.ndarray, masses: np.ndarray, n: int, k: int) -> np.ndarray:
    """Return for each cut >= 0 the chance that the test went on and w exceeds it after k further pairs.

    With R = sqrt(n) w, b the share of the earlier squares and y the mean of the new pairs in units of all other
    squares, the new R is (sqrt(b) R + sqrt(k) y) / sqrt(1 + y^2); b is Beta(n / 2, (k - 1) / 2) and
    y sqrt(n + k - 1) has the t distribution with n + k - 1 degrees of freedom, independent of b and of R.
    """
    shares, weights = _beta_nodes(n / 2, (k - 1) / 2)
    r = np.sqrt(n * shares)[:, None] * w[None, :]
    weight = weights[:, None] * masses[None, :]
    df = n + k - 1
    total = np.empty(len(cuts))
    for index, cut in enumerate(cuts):
        c = math.sqrt(n + k) * float(cut)
        a = k - c * c
        if abs(a) < 1e-6:  # the quadratic is linear: y > (c^2 - r^2) / (2 r sqrt(k)) for r > 0
            line = (c * c - r**2) / (2 * math.sqrt(k) * np.where(r > 0, r, 1.0))
            chance = np.where(r > 0, student_below(df, -math.sqrt(df) * line), 0.0)
            total[index] = (weight * chance).sum()
            continue
        # Where a < 0, y must lie between two roots, and only here are there two.
        here = slice(None) if a > 0 else (r > 0) & (k + r**2 > c * c)
        radius = r[here]
        root = c * np.sqrt(k + radius**2 - c * c)
        chance = student_below(df, -math.sqrt(df) * (-radius * math.sqrt(k) + root) / a)
        if a < 0:
            chance -= student_below(df, -math.sqrt(df) * (-radius * math.sqrt(k) - root) / a)
        total[index] = (weight[here] * chance).sum()
    return total


def student_below(df: int, t: np.ndarray) -> np.ndarray:
    """Return the chance that Student's t with df degrees of freedom is below t, to 1e-15.

    The finite sums of Abramowitz and Stegun (26.7.3, 26.7.4), ten times as fast as `scipy.special.stdtr` while their
    terms are few.
    """
    if df > MOST_TERMS:
        return special.stdtr(df, t)
    square = df / (df + t**2)  # cos^2 of the angle whose tangent is t / sqrt(df)
    term = np.sqrt(square) if df % 2 else np.ones_like(t)
    total = term.copy() if df > 1 else np.zeros_like(t)
    for j in range(2 + df % 2, df, 2):
        term = term * square * ((j - 1) / j)
        total += term
    total *= t / np.sqrt(df + t**2)
    return 0.5 + ((np.arctan(t / math.sqrt(df)) + total) / math.pi if df % 2 else total / 2)


def _beta_nodes(a: float, b: float) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights that average a smooth function over the Beta(a, b) distribution; b = 0: all at 1."""
    if b == 0:
        return np.ones(1), np.ones(1)
    nodes, weights = special.roots_jacobi(NODES if b > 1 else FEW_NODES, b - 1, a - 1)
    return (nodes + 1) / 2, weights / weights.sum()
