"""How many seeds find a difference: for planning, never for a claim."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd
from scipy import special, stats

from adalayers.comparisons import FIRST
from reports.evidence.claims import PredictionHashes

CHANCE = 0.9
"""How often a study of the size named would find the difference it is meant to find."""

MOST_SEEDS = 100
"""Seeds beyond which nothing is planned."""

MIN_SEEDS_OF_SPREAD = 3
"""Seeds below which an arm is left out of the spread, and below which there is none, where others have more."""


def spread(
    scores: Mapping[str, Mapping[int, float]] | pd.DataFrame, answers: PredictionHashes
) -> float | None:
    """Return the standard deviation of one score once its arm and its seed are known, pooled over arms.

    None for fewer than two arms or shared seeds, or than three where arms have more. That of a comparison is this times
    the root of the sum of its squared weights, if arms vary alike.

    Of arms that give the same predictions on every shared seed, one counts: the others add nothing.
    """
    table = pd.DataFrame(scores).sort_index()  # seeds x arms
    least = min(MIN_SEEDS_OF_SPREAD, table.count().max())
    table = table.loc[:, table.count() >= least].dropna()
    seeds = [int(seed) for seed in table.index.to_numpy()]
    distinct = {tuple(answers.get((str(arm), seed), str(arm)) for seed in seeds): table[arm] for arm in table}
    grid = np.array([*distinct.values()])
    if min(grid.shape) < 2 or len(seeds) < least:
        return None
    rest = grid - grid.mean(axis=0) - grid.mean(axis=1, keepdims=True) + grid.mean()
    return math.sqrt(float((rest**2).sum()) / ((grid.shape[0] - 1) * (grid.shape[1] - 1)))


def chance(seeds: int, effect: float, level: float) -> float:
    """Return how often a two-sided paired t test finds a true difference, the right way round.

    Args:
        seeds: Pairs.
        effect: The difference in standard deviations of its paired differences.
        level: The error of the test.
    """
    critical = stats.t.isf(level / 2, seeds - 1)
    return float(stats.nct.sf(critical, seeds - 1, effect * math.sqrt(seeds)))


def seeds_for(effect: float, sd: float, level: float, variance: float = 0.0) -> int | None:
    """Return how many seeds find a difference nine times in ten; None: over `MOST_SEEDS`.

    Args:
        effect: The difference.
        sd: The standard deviation of its paired differences.
        level: The error of the two-sided test.
        variance: Of the difference over draws of test examples, which seeds do not lower.
    """
    wanted = (
        seeds
        for seeds in range(FIRST, MOST_SEEDS + 1)
        if chance(seeds, effect / max(math.hypot(sd, math.sqrt(seeds * variance)), 1e-9), level) >= CHANCE
    )
    return next(wanted, None)


def resolution(variance: float, level: float) -> float:
    """Return the half-width that the choice of test examples alone gives a two-sided interval, whatever the seeds."""
    return -float(special.ndtri(level / 2)) * math.sqrt(variance)
