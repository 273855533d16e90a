"""Scores by arm and seed as `trials.csv` and the request would hold them, for tests of what is claimed of them."""

import itertools
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pandas as pd

from adalayers.comparisons import PlannedArm, planned_comparisons
from adalayers.results.interim_analyses import PLANNED, InterimAnalysis
from adalayers.results.study_file import Factor, RequestRecord

METRIC = "matthews"
ALPHAS, WEIGHTS = (1, 8, 64, 512), (0.0, 0.001, 0.01)
GRID = {
    f"alpha={alpha} weight={weight:g}": {"alpha": alpha, "weight": weight}
    for alpha, weight in itertools.product(ALPHAS, WEIGHTS)
}
"""The cells of a 4 x 3 core: name -> configuration."""


def trials(scores: Mapping[str, Mapping[int, float]]) -> pd.DataFrame:
    """Return confirmed trials with test scores, arm -> seed -> score."""
    rows = [
        {"stage": "confirm", "status": "completed", "arm": arm, "seed": seed, "trial_id": f"{arm}-{seed:03d}"}
        | {f"test/{METRIC}": score, "config/mix": "learned", "fusion": "layer-mix"}
        for arm, of_arm in scores.items()
        for seed, score in of_arm.items()
    ]
    return pd.DataFrame(rows)


def by_seed(rows: Mapping[str, Sequence[float]]) -> dict[str, dict[int, float]]:
    """Return arm -> seed -> score of scores in the order of seeds 1, 2, 3..."""
    return {arm: dict(enumerate(map(float, row), start=1)) for arm, row in rows.items()}


def request(arms: Mapping[str, Mapping[str, Any]] | Sequence[str], **changed: Any) -> RequestRecord:
    """Return a request for arms, the first of them the control.

    arms: a mapping is a factorial core by configuration, but for arms with none; a sequence are arms without factors
    """
    of = arms if isinstance(arms, Mapping) else {arm: {} for arm in arms}
    known = [PlannedArm(arm, "core" if config else "", dict(config)) for arm, config in of.items()]
    factors = list(next(iter(of.values())))
    how = {"metric": METRIC, "control": known[0].name, "smallest_effect": 0.01, "arms": tuple(known)}
    how |= {"factors": tuple(Factor(name, name) for name in factors)}
    how |= {"comparisons": tuple(planned_comparisons(known, factors, known[0].name))}
    return RequestRecord(**{**how, **changed})


def analysed(arms: Collection[str], *ends: int, **changed: Any) -> list[InterimAnalysis]:
    """Return planned analyses after so many seeds of every arm, which share 4% in equal parts."""
    covered = {end: {arm: [*range(1, end + 1)] for arm in arms} for end in ends}
    own = {"level": PLANNED / max(1, len(ends)), "planned": ends, **changed}
    return [InterimAnalysis(**{"after": end, "covered": of, **own}) for end, of in covered.items()]
