"""What of a plan will be trained: the scheduler stops trials of a search early, patience ends all trials early."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from adalayers.config import TrialConfig
from adalayers.request import REDUCTION, grace

DRAWS = 200
"""Searches that are drawn to see how many trials the scheduler lets go on."""
FEW, MANY = 0.1, 0.9


class Range(NamedTuple):
    """A number that is not known: what is expected, and what it lies between in 8 of 10 cases or so."""

    low: float
    expected: float
    high: float

    def times(self, factor: float) -> Range:
        return Range(*(factor * value for value in self))

    def plus(self, other: Range) -> Range:
        return Range(*(one + two for one, two in zip(self, other, strict=True)))


def searched(trials: int, epochs: int, scheduler: str) -> Range:
    """Return the share of its epochs that a trial of a search trains, before patience.

    By the rungs of ASHA with trials that come one after the other, in any order, and rank the same at every rung.
    """
    if scheduler != "asha" or not trials:
        return Range(1.0, 1.0, 1.0)
    rng, first, most = np.random.default_rng(0), grace(epochs), epochs + 1
    rungs = [first * REDUCTION**k for k in range(int(math.log(most / first) / math.log(REDUCTION) + 1))]
    shares = []
    for _ in range(DRAWS):
        met: list[list[float]] = [[] for _ in rungs]
        trained = 0
        for score in rng.random(trials):
            ends = epochs
            for rung, before in zip(rungs, met, strict=True):
                if rung >= epochs:
                    break
                stops = bool(before) and score < np.percentile(before, 100 * (1 - 1 / REDUCTION))
                before.append(score)
                if stops:
                    ends = rung
                    break
            trained += ends
        shares.append(trained / (trials * epochs))
    low, high = np.quantile(shares, (FEW, MANY))
    return Range(float(low), float(np.mean(shares)), float(high))


def patient(config: TrialConfig) -> Range:
    """Return the share of its epochs that a trial trains which nothing but patience ends.

    Between one that never gets better than in its first epoch, and one that does to the end; what is expected lies in
    the middle, for nobody knows.
    """
    least = min(config.epochs, config.patience + 1) / config.epochs
    return Range(least, (least + 1) / 2, 1.0)
