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
PIECES = 32768
"""Lines of which the distribution of Student's t is made up where it is asked for a million times; critical values
differ by less than 1e-7 for it."""
MOST_TERMS = 60
"""Degrees of freedom from which on the sums of Student's t are longer than they are fast."""
MIN_ERROR = 1e-12
"""An amount of error below this is not spent: no value of t is critical."""
SMALL, TINY, FEW_PAIRS = 1e-4, 1e-9, 6
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
        if n < 2 or error - spent <= MIN_ERROR:
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
    if not before or before[-1][0] < 3 or spend < (SMALL if before[-1][0] <= FEW_PAIRS else TINY):
        # Where the quadrature is not good enough, the single test's value, which is never too low.
        critical = float(stats.t.isf(spend / 2, n - 1))
        return critical, math.atan2(critical, math.sqrt(n - 1))
    above = _chance_above(analyses)

    def excess(angle: float) -> float:
        return math.log(max(2 * float(above(np.array([math.sin(angle)]))[0]), 1e-300) / spend)

    # Between the single tests of all error so far and of this analysis's alone, but for the cells' width.
    low, high = (math.atan(-special.stdtrit(n - 1, part / 2) / math.sqrt(n - 1)) for part in (error, spend))
    low, high = 0.98 * low, high + 0.01 * (math.pi / 2 - high)
    angle = float(optimize.brentq(excess, low, high, xtol=1e-12))
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

    With R = sqrt(n) w, b the share of the earlier squares and tan x the mean of the new pairs in units of the root of
    all other squares, the new R is sqrt(b) R cos x + sqrt(k) sin x; b is Beta(n / 2, (k - 1) / 2) and
    tan x sqrt(n + k - 1) has the t distribution with n + k - 1 degrees of freedom, independent of b and of R. So x lies
    between two angles, of which the sines are `first` and `second`, or above the first.
    """
    shares, weights = _beta_nodes(n / 2, (k - 1) / 2)
    ahead = w > 0  # both signs of w have the same masses
    r = np.outer(np.sqrt(n * shares), w[ahead]).ravel()
    weight = np.outer(weights, masses[ahead]).ravel()
    square = k + r**2
    slope, shift = r / square, math.sqrt(k) / square
    values, rises = _sine_table(n + k - 1)
    total = np.empty(len(cuts))
    for index, cut in enumerate(cuts):
        c = math.sqrt(n + k) * float(cut)
        side, middle = slope * np.sqrt(np.maximum(square - c * c, 0.0)), c * shift
        place = np.concatenate([side - middle, -side - middle])
        place += 1.0
        place *= PIECES / 2
        piece = place.astype(np.intp)
        place -= piece
        place *= rises.take(piece, mode="clip")
        place += values.take(piece, mode="clip")
        first, second = place[: len(r)], place[len(r) :]
        total[index] = weight @ (first - second if c * c > k else first + second)
    return total


@lru_cache(maxsize=64)
def _sine_table(df: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the chance that t / sqrt(df + t^2) is below each of `PIECES` + 1 places from -1 to 1, and how it rises."""
    sine = np.linspace(-1, 1, PIECES + 1)[1:-1]
    values = np.concatenate([[0.0], student_below(df, sine * np.sqrt(df / (1 - sine**2))), [1.0]])
    values[1:-1] -= np.diff(values, 2) / 12  # so that the lines between them are right on average
    return values, np.append(np.diff(values), 0.0)


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


@lru_cache(maxsize=256)
def _beta_nodes(a: float, b: float) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights that average a smooth function over the Beta(a, b) distribution; b = 0: all at 1."""
    if b == 0:
        return np.ones(1), np.ones(1)
    nodes, weights = special.roots_jacobi(NODES if b > 1 else FEW_NODES, b - 1, a - 1)
    return (nodes + 1) / 2, weights / weights.sum()
