"""Distance of a case's data against its score: a row per case, and rank correlations where there are cases enough."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scipy import stats

from adalayers.results.intervals import LEVEL, Interval
from adalayers.results.measures import Measured
from adalayers.tasks.metrics import bounds

MIN_CASES = 5
"""Fewest cases of a rank correlation: four in a perfect order still have a p value of 0.08."""


@dataclass(frozen=True)
class Placed:
    """One case: what was measured of its data, by name, and how well its control does.

    score:   of the control, mean over seeds; trivial: the trivial model's on the same split
    reached: how much of the way from the trivial model's score to a perfect one the control goes (0 to 1, below 0 for
             one that is worse than trivial), with its interval: one scale for all metrics
    """

    name: str
    backbone: str
    measured: Mapping[str, Measured]
    metric: str
    split: str
    score: Interval
    trivial: float | None
    reached: Interval


@dataclass(frozen=True)
class Correlation:
    """Kendall's tau over the `n` cases of one backbone between a measure and the share reached.

    p_value:    two-sided, exact without ties
    p_adjusted: times the number of measures and backbones that were tested
    """

    backbone: str
    measure: str
    n: int
    tau: float
    p_value: float
    p_adjusted: float

    @property
    def significant(self) -> bool:
        return self.p_adjusted <= 1 - LEVEL


def share_of_the_way(score: float | None, trivial: float | None, metric: str) -> float | None:
    """Return (score - trivial) / (best - trivial); None where it is not tested, or the trivial model is perfect."""
    limits = bounds(metric)
    if score is None or trivial is None or limits is None or limits[1] <= trivial:
        return None
    return (score - trivial) / (limits[1] - trivial)


def reached(score: Interval, trivial: float | None, metric: str) -> Interval:
    """Return the share of the way with its interval."""
    mean, low, high = (
        share_of_the_way(value, trivial, metric) for value in (score.mean, score.low, score.high)
    )
    return Interval(mean, low, high, score.n)


def correlations(cases: Sequence[Placed]) -> list[Correlation]:
    """Return a correlation for each backbone and measure that at least `MIN_CASES` of its cases have, with scores."""
    tested = {}
    for backbone, name in dict.fromkeys((case.backbone, name) for case in cases for name in case.measured):
        pairs = [
            (distance, case.reached.mean)
            for case in cases
            if case.backbone == backbone
            and name in case.measured
            and (distance := case.measured[name].beyond) is not None
            and case.reached.mean is not None
        ]
        if len(pairs) >= MIN_CASES:
            tau, p_value = _kendall(*zip(*pairs, strict=True))
            if math.isfinite(tau):
                tested[backbone, name] = (len(pairs), tau, p_value)
    return [
        Correlation(backbone, name, n, tau, p_value, min(1.0, p_value * len(tested)))
        for (backbone, name), (n, tau, p_value) in tested.items()
    ]


def _kendall(a: Sequence[float], b: Sequence[float]) -> tuple[float, float]:
    """Return tau b and its p value: exact without ties, else over 9,999 random pairings."""
    tau = float(stats.kendalltau(a, b).statistic)
    if len(set(a)) == len(a) and len(set(b)) == len(b):
        return tau, float(stats.kendalltau(a, b, method="exact").pvalue)
    if not math.isfinite(tau):
        return tau, 1.0
    test = stats.permutation_test(
        (a,), lambda x: stats.kendalltau(x, b).statistic, permutation_type="pairings", n_resamples=9999, rng=0
    )
    return tau, float(test.pvalue)
