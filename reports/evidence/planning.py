"""What further seeds would find, simulated over the analyses to come: for planning, never for a claim."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from adalayers.comparisons import BLOCK, block_end
from reports.evidence.analyses import Analysis
from reports.evidence.boundaries import critical_values
from reports.evidence.claims import Claim
from reports.evidence.prediction_hashes import PredictionHashes
from reports.evidence.spending import next_budget

CHANCE = 0.9
"""How often a study of the size named would find the difference it is meant to find."""

STUDIES, FEWEST_OPEN = 4000, 200
"""Studies that are simulated; fewest of them that are still open, else all count."""

MOST_SEEDS = 100
"""Seeds beyond which nothing is planned."""

MIN_SEEDS_OF_SPREAD = 3
"""Seeds below which an arm is left out of the spread, where others have more."""


def spread(scores: Mapping[str, Mapping[int, float]], answers: PredictionHashes) -> float | None:
    """Return the standard deviation of one score once its arm and its seed are known, pooled over arms.

    None for fewer than two arms or shared seeds. That of a comparison is this times the root of the sum of its squared
    weights, if arms vary alike.

    Of arms that give the same predictions on every shared seed, one counts: the others add nothing.
    """
    if not scores:
        return None
    most = max(len(of_arm) for of_arm in scores.values())
    scores = {arm: of_arm for arm, of_arm in scores.items() if len(of_arm) >= min(MIN_SEEDS_OF_SPREAD, most)}
    seeds = sorted(set.intersection(*map(set, scores.values())))
    distinct: dict[object, str] = {}
    for arm in scores:
        said = tuple(answers.get((arm, seed), arm) for seed in seeds)
        distinct.setdefault(said, arm)
    if len(seeds) < 2 or len(distinct) < 2:
        return None
    grid = np.array([[scores[arm][seed] for seed in seeds] for arm in distinct.values()])
    rest = grid - grid.mean(axis=0) - grid.mean(axis=1, keepdims=True) + grid.mean()
    df = (grid.shape[0] - 1) * (grid.shape[1] - 1)
    return math.sqrt(float((rest**2).sum()) / df)


def chance(schedule: Sequence[tuple[int, float]], effect: float) -> float:
    """Return how often analyses find a true difference, by simulation.

    Args:
        schedule: Pairs and error spent up to them, of each analysis (`Claim.schedule`).
        effect: The difference in standard deviations of its paired differences.
    """
    return float(_crossed(schedule, effect).any(axis=0).mean()) if schedule else 0.0


def seeds_for(effect: float, claim: Claim, made: Sequence[Analysis]) -> int | None:
    """Return after how many seeds an open comparison finds a true difference, nine times in ten.

    Simulated over the analyses that were made, the blocks to come and the error that each may spend: of the studies
    in which such a difference is still open, the share in which a later analysis finds it. None: over `MOST_SEEDS`.

    Args:
        effect: The difference in standard deviations of its paired differences.
        claim: The comparison.
        made: The analyses so far.
    """
    schedule, budget = list(claim.schedule), made[-1].budget
    start, spent, last = len(schedule), budget.spent(claim.n), budget.seeds
    while (last := block_end(last, MOST_SEEDS + BLOCK)) <= MOST_SEEDS:
        budget = next_budget(budget, seeds=last, planned=last)
        pairs = claim.n + budget.seeds - made[-1].budget.seeds
        error = schedule[start - 1][1] if start else 0.0
        schedule.append((pairs, error + claim.share * max(0.0, budget.spent(pairs) - spent)))
        crossed = _crossed(schedule, effect)
        later, decided = (np.asarray(part.any(axis=0)) for part in (crossed[start:], crossed[:start]))
        still_open = later if decided.sum() > STUDIES - FEWEST_OPEN else later[~decided]
        if still_open.mean() >= CHANCE:
            return last
    return None


def _crossed(schedule: Sequence[tuple[int, float]], effect: float) -> np.ndarray:
    """Return whether each analysis of each simulated study rejects, bool [analyses, studies]."""
    pairs = [n for n, _ in schedule]
    means, sds = _simulated()
    t = (means[pairs] + effect) / (sds[pairs] / np.sqrt(pairs)[:, None])
    return np.abs(t) > np.array(critical_values(schedule))[:, None]


@functools.cache
def _simulated() -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation of the first n of standard normal differences, [n, studies]."""
    draws = np.random.default_rng(0).standard_normal((MOST_SEEDS + BLOCK, STUDIES))
    n = np.arange(1, len(draws) + 1)[:, None]
    means = draws.cumsum(axis=0) / n
    squares = np.maximum((draws**2).cumsum(axis=0) - n * means**2, 1e-12)
    sds = np.sqrt(squares / np.maximum(n - 1, 1))
    return np.vstack([means[:1], means]), np.vstack([sds[:1], sds])
