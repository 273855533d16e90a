"""How many seeds a comparison would need, from a spread pooled over arms: for planning, never for a claim."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from reports.evidence.analyses import Analysis
from reports.evidence.prediction_hashes import PredictionHashes
from reports.evidence.spending import PLANNED, stage_error
from reports.evidence.statistics import CHANCE, seeds_needed

FEWEST = 3
"""Seeds below which an arm is left out of the spread, where others have more."""


@dataclass(frozen=True)
class Spread:
    """How much one score varies once its arm and its seed are known.

    sd: standard deviation, in units of the score, pooled over `arms` arms that predict differently, on `seeds` shared
        seeds; that of a comparison is sd x the root of the sum of its squared weights, if arms vary alike
    """

    sd: float
    arms: int
    seeds: int

    def of(self, weights: Mapping[str, float]) -> float:
        """Return the standard deviation over seeds of a comparison."""
        return self.sd * math.sqrt(sum(weight**2 for weight in weights.values()))


def spread(scores: Mapping[str, pd.Series], answers: PredictionHashes) -> Spread | None:
    """Return the pooled spread of arms' scores by seed; None for fewer than two arms or shared seeds.

    Of arms that give the same predictions on every shared seed, one counts: the others add nothing.
    """
    if not scores:
        return None
    most = max(len(of_arm) for of_arm in scores.values())
    scores = {arm: of_arm for arm, of_arm in scores.items() if len(of_arm) >= min(FEWEST, most)}
    seeds = sorted(set.intersection(*({*of_arm.index} for of_arm in scores.values())))
    distinct: dict[object, str] = {}
    for arm in scores:
        said = tuple(answers.get((arm, seed), arm) for seed in seeds)
        distinct.setdefault(said, arm)
    if len(seeds) < 2 or len(distinct) < 2:
        return None
    grid = np.array([scores[arm].loc[seeds].to_numpy(dtype=float) for arm in distinct.values()])
    rest = grid - grid.mean(axis=0) - grid.mean(axis=1, keepdims=True) + grid.mean()
    df = (grid.shape[0] - 1) * (grid.shape[1] - 1)
    return Spread(math.sqrt(float((rest**2).sum()) / df), len(distinct), len(seeds))


def seeds_for(
    effect: float, weights: Mapping[str, float], share: float, known: Spread, error: float = PLANNED
) -> int | None:
    """Return about how many seeds find a difference of `effect` nine times in ten; None: more than 1,000.

    share: of the family's error that the comparison has; error: that the family has for the analyses to come
    """
    sd = known.of(weights)
    return 2 if sd == 0 else seeds_needed(effect / sd, error * share, CHANCE)


def error_to_come(made: Sequence[Analysis], planned: int) -> float:
    """Return the error that a run with more seeds has: what is left of the first plan, or of the next extension."""
    if not made or made[-1].budget.seeds < planned:
        return PLANNED
    return stage_error(len(made[-1].budget.stages))
