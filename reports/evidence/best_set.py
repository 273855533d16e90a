"""Which settings may be the best, or within the smallest effect of it: the set holds the best one with 95%.

A setting leaves the set once another one is better by more than the smallest effect of interest, on the seeds that both
have: one-sided tests of "at most so much better" (an indifference zone). Only the tests of the truly best setting
against the others can make the set wrong, so those share the error (multiple comparisons with the best; Hsu 1981, with
Bonferroni's bound: spreads may differ, and pairs may have seeds of their own). It is spent over analyses as the claims'
is, but is an error of its own. Settings with fewer than six seeds are not judged.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from adalayers.comparisons import FIRST, PlannedArm
from adalayers.results.intervals import LEVEL, mean_interval
from reports.evidence import tables
from reports.evidence.analyses import Analysis, Replay
from reports.evidence.statistics import differences, paired
from reports.reading.frames import numbers
from reports.reading.load import Plan

ALIKE = 1.01
"""Times the fewest parameters up to which an arm is as cheap: the six logits of a mix are no saving."""


@dataclass(frozen=True)
class Excluded:
    """A setting that is not the best: `by` is the one found better by most, `difference` over the `n` seeds of both."""

    arm: str
    by: str
    difference: float
    n: int


@dataclass(frozen=True)
class BestSet:
    """What is known of the best setting.

    Attributes:
        metric, split: Of the score.
        analyses: Number of the analysis that this is of.
        arms: Those that may be best, by falling mean.
        excluded: Those that are worse than another one by more than `within`.
        not_judged: Those with too few seeds.
        within: The smallest effect of interest; 0 where none is known.
        cheapest: Of `arms`, the one with the fewest added parameters.
        saves: Whether `cheapest` has fewer than the first of `arms`, by more than a hundredth.
    """

    metric: str
    split: str
    analyses: int
    arms: tuple[str, ...] = ()
    excluded: tuple[Excluded, ...] = ()
    not_judged: tuple[str, ...] = ()
    within: float = 0.0
    cheapest: str = ""
    saves: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return the content of `best_set.json`."""
        return {
            "metric": self.metric,
            "split": self.split,
            "level": LEVEL,
            "analyses": self.analyses,
            "within": self.within,
            "arms": list(self.arms),
            "not_judged": list(self.not_judged),
            "cheapest": self.cheapest,
            "excluded": [vars(exclusion) for exclusion in self.excluded],
        }


def best_set(trials: pd.DataFrame, plan: Plan, analyses: Sequence[Analysis]) -> BestSet:
    """Return the settings that may be best on the split that arms are compared on; all of them before an analysis."""
    split = tables.score_split(trials, plan)
    scores = tables.values(trials, f"{split}/{plan.metric}")
    comparable = [arm.name for arm in _comparable(plan) if arm.name in scores]
    names = [arm for arm in comparable if analyses and len(analyses[-1].seeds.get(arm, ())) >= FIRST]
    exclusions: dict[str, Excluded] = {}
    replays = {pair: Replay() for pair in itertools.permutations(names, 2)}
    for analysis in analyses:
        seen: dict[str, Excluded] = {}
        for (arm, other), replay in replays.items():
            if arm in exclusions or other in exclusions:
                continue
            worse = _worse(arm, other, scores, analysis, replay, plan)
            if worse and (arm not in seen or abs(worse.difference) > abs(seen[arm].difference)):
                seen[arm] = worse
        if len(exclusions) + len(seen) < len(names):  # if chance rules out all that are left, none is
            exclusions |= seen
    rechecked = {
        arm: _recheck(exclusion, scores, analyses[-1], plan) for arm, exclusion in exclusions.items()
    }
    exclusions = {arm: exclusion for arm, exclusion in rechecked.items() if exclusion is not None}
    left = _by_mean([arm for arm in names if arm not in exclusions], scores)
    return BestSet(
        plan.metric,
        split,
        analyses[-1].number if analyses else 0,
        tuple(left),
        tuple(exclusions[arm] for arm in names if arm in exclusions),
        tuple(arm for arm in comparable if arm not in names),
        plan.smallest_effect or 0.0,
        *_cheapest(trials, left),
    )


def _comparable(plan: Plan) -> list[PlannedArm]:
    """Return the arms under the control's conditions: nobody chooses a setting by the amount of data it had."""
    names = [factor.name for factor in plan.factors if factor.condition]
    control = next((arm for arm in plan.arms if arm.name == plan.control), None)
    if control is None:
        return list(plan.arms)
    return [
        arm for arm in plan.arms if all(arm.config.get(name) == control.config.get(name) for name in names)
    ]


def _worse(
    arm: str,
    other: str,
    scores: Mapping[str, Mapping[int, float]],
    analysis: Analysis,
    replay: Replay,
    plan: Plan,
) -> Excluded | None:
    """Return how `arm` is worse than `other` at this analysis, if it shows that; replay: of the analyses before it."""
    if not {arm, other} <= analysis.seeds.keys():
        return None
    differences_by_seed = differences(
        scores, {other: 1.0, arm: -1.0}, analysis.seeds[arm] & analysis.seeds[other]
    )
    # One side of a two-sided test: twice the error, which is half used.
    critical = replay.critical(analysis, len(differences_by_seed), 2 / max(1, len(analysis.seeds) - 1))
    if critical is None or math.isinf(critical):
        return None
    pair = paired(
        differences_by_seed.values(),
        scale=max(abs(scores[name][seed]) for name in (arm, other) for seed in differences_by_seed),
    )
    if pair.p_value is None or pair.difference is None or pair.sd is None:
        return None
    if pair.difference > (plan.smallest_effect or 0.0) + critical * pair.sd / math.sqrt(pair.n):
        return Excluded(arm, other, pair.difference, pair.n)
    return None


def _recheck(
    exclusion: Excluded, scores: Mapping[str, Mapping[int, float]], last: Analysis, plan: Plan
) -> Excluded | None:
    """Return what the seeds of the last analysis say of an exclusion; None where they no longer bear it out.

    A few seeds that happen to agree may rule a setting out which more seeds show to be as good. To take it back where
    the plain interval over all seeds reaches the smallest effect makes exclusions rarer, and so no error larger.
    """
    shared = last.seeds.get(exclusion.arm, frozenset()) & last.seeds.get(exclusion.by, frozenset())
    differences_by_seed = differences(scores, {exclusion.by: 1.0, exclusion.arm: -1.0}, shared)
    if len(differences_by_seed) <= exclusion.n:
        return exclusion
    interval = mean_interval(list(differences_by_seed.values()))
    if interval.mean is None or (interval.low if interval.low is not None else interval.mean) <= (
        plan.smallest_effect or 0.0
    ):
        return None
    return Excluded(exclusion.arm, exclusion.by, interval.mean, len(differences_by_seed))


def _by_mean(arms: Sequence[str], scores: Mapping[str, Mapping[int, float]]) -> list[str]:
    """Return arms by falling mean over the seeds that all of them have; without any, as they come."""
    shared = set.intersection(*({*scores[arm]} for arm in arms)) if arms else set()
    return sorted(arms, key=lambda arm: -sum(scores[arm][seed] for seed in shared))


def _cheapest(trials: pd.DataFrame, arms: Sequence[str]) -> tuple[str, bool]:
    """Return the arm with the fewest trained parameters, to a hundredth, and whether the first of `arms` has more.

    Of equals it is the first of `arms`.
    Of those with the most seeds: an arm that nobody tried further is no advice.
    """
    rows = tables.confirmed(trials)
    by_arm = numbers(rows, "parameters").groupby(rows["arm"])
    trained, seeds = by_arm.mean().reindex(list(arms)).dropna(), by_arm.count()
    candidates = trained[seeds.reindex(trained.index) == seeds.reindex(trained.index).max()]
    if candidates.empty:
        return "", False
    cheapest = str(candidates.index[candidates <= ALIKE * candidates.min()][0])
    return cheapest, bool(trained.iloc[0] > ALIKE * trained[cheapest])
