"""What the study's seeds allow one to claim of its planned comparisons, and no more (docs/evidence.md).

A claim is about the score, a contrast about anything else. Each measure is one family of comparisons. Verdicts are for
the primary ones, by two Holm runs at each analysis (`holm`); the others have intervals that hold together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import TypeVar

import numpy as np
import pandas as pd

from adalayers.comparisons import FIRST, Comparison
from adalayers.results.interim_analyses import InterimAnalysis
from adalayers.results.intervals import TOLERANCE
from adalayers.results.study_file import RequestRecord
from adalayers.storage.to_json import JsonObject
from adalayers.tasks.metrics import bounds
from reports.evidence.holm import BETTER, OPEN, SAME, TIE, WORSE, Decision, Estimate, Step, decide, paired
from reports.tables import arms as tables
from reports.tables.convergence import BestSoFar

HIGHER, LOWER = "higher", "lower"
ENTROPY, SPEED = "mix/entropy", "convergence_step"
"""What is compared besides scores: neither has a good direction."""

FIELDS = (
    *("kind", "arm", "control", "at", "primary", "metric", "split", "n", "difference", "low", "high"),
    *("level", "at_most", "comparisons", "analyses", "verdict", "tie", "p_value", "p_adjusted"),
    *("examples_low", "examples_high"),
)
"""Of `claims.json` and `contrasts.json`, in their order."""


@dataclass(frozen=True, kw_only=True)
class Claim(Comparison):
    """A comparison, and what is found of it.

    Attributes:
        metric, split: Of the score.
        comparisons: How many are judged together.
        analyses: Number of the analysis that decided it, else of the last one; 0 before the first.
        n: Seeds that all its arms have; of independent samples, of the smallest.
        difference: Its mean over them.
        low, high: None where there is no interval: fewer than six seeds, or the same difference on all.
        level: The error of the test that the interval is of: two-sided, of *no difference* one-sided.
        same_level: That of the tests against the smallest effect, one-sided.
        at_most: What the size of the difference does not exceed, with an error of `same_level`.
        verdict: None of comparisons that are not primary.
        tie: Whether all predictions agree, so that there is no difference.
        p_value, p_adjusted: Of the two-sided test; adjusted for the comparisons that are judged together.
        examples_low, examples_high: The interval that covers the choice of examples too.
        on_these_examples: Whether the verdict is not shown for other examples of the same kind.
        estimate: What its tests rest on; values: the difference by seed, where seeds are paired.
        withheld: Whether a failed trial keeps its last analysis from a verdict.
    """

    metric: str
    split: str
    comparisons: int = 0
    analyses: int = 0
    n: int = 0
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    level: float | None = None
    same_level: float | None = None
    at_most: float | None = None
    verdict: str | None = None
    tie: bool = False
    p_value: float | None = None
    p_adjusted: float | None = None
    examples_low: float | None = None
    examples_high: float | None = None
    on_these_examples: bool = False
    estimate: Estimate | None = None
    values: Mapping[int, float] = field(default_factory=dict)
    withheld: bool = False

    @property
    def shown(self) -> str:
        """The verdict; of a comparison without one, what its interval shows."""
        if self.verdict is not None or self.estimate is None or self.low is None or self.high is None:
            return SAME if self.tie else self.verdict or OPEN
        if self.low > 0 or self.high < 0:
            up, down = (HIGHER, LOWER) if self.metric in (ENTROPY, SPEED) else (BETTER, WORSE)
            return up if self.low > 0 else down
        small = self.estimate.smallest is not None and (self.at_most or 0.0) < self.estimate.smallest
        return SAME if small else OPEN

    @property
    def told(self) -> str:
        """What pages tell of it: `shown`, or that it is a tie."""
        return TIE if self.tie else self.shown

    @property
    def within(self) -> float | None:
        """What a page says that the size of the difference does not exceed: where its printed intervals end."""
        ends = (self.low, self.high, self.examples_low, self.examples_high)
        return max((abs(end) for end in ends if end is not None), default=None)

    @property
    def decided(self) -> bool:
        return self.shown != OPEN

    @property
    def arms(self) -> frozenset[str]:
        return frozenset(self.weights)

    @property
    def sd(self) -> float:
        """The standard deviation of the difference by seed; 0 where rounding is all there is, or a single seed."""
        sd = float(np.std([*self.values.values()], ddof=1)) if len(self.values) > 1 else 0.0
        return sd if sd > TOLERANCE else 0.0

    @property
    def above(self) -> int:
        """On how many seeds the difference is above 0."""
        return sum(value > 0 for value in self.values.values())

    def as_json(self) -> JsonObject:
        """Return the fields of the file format, in its order."""
        named = dict(zip(("arm", "control", "at"), self.names, strict=True))
        return {name: named.get(name, getattr(self, name)) for name in FIELDS}


Key = tuple[object, ...]
"""What tells a comparison from the others of a study (`Comparison.key`)."""
AnyClaim = TypeVar("AnyClaim", bound=Claim)
Values = Mapping[str, Mapping[int, float]]
"""An arm's name -> its values by seed; arms without any are not in it."""
PredictionHashes = Mapping[tuple[str, int], str]
"""(arm, seed) -> what stands for all its predictions, equal where they are."""

_WEIGHT_ROUNDING = 1e-9


def contrasts(
    trials: pd.DataFrame,
    best: BestSoFar,
    request: RequestRecord,
    analyses: Sequence[InterimAnalysis],
    error: float,
) -> list[Claim]:
    """Compare the entropy of p~ (of arms that learn it, over the same hidden states), and the steps to a score that
    both sides reach.

    best: as from `convergence.best_so_far`.
    Their verdicts are `higher`, `lower` or `not enough evidence`: neither measure has a good direction
    or a smallest effect of interest. No study stops by them, so they are of the last analysis.
    """
    entropies, learned = tables.values(trials, "mix/entropy"), {*tables.learning_arms(trials, request)}
    last = [replace(analysis, failed={}) for analysis in analyses[-1:]]  # no verdict that a failure withholds
    reads = {arm.name: arm.reads for arm in request.arms}
    named = [Claim(**vars(planned), metric="", split="val") for planned in request.comparisons]
    of_mixes = [
        replace(claim, metric=ENTROPY)
        for claim in named
        if claim.arms <= learned and len({reads.get(arm) for arm in claim.arms}) == 1
    ]
    found = [
        *Family(lambda _: entropies).claims(of_mixes, last, error),
        *Family(best.steps).claims([replace(claim, metric=SPEED) for claim in named], last, error),
    ]
    words = {BETTER: HIGHER, WORSE: LOWER}
    return [replace(claim, verdict=words.get(claim.verdict or "", claim.verdict)) for claim in found]


@dataclass(frozen=True)
class Family:
    """What comparisons of one measure rest on.

    Attributes:
        values: Arms -> their values by seed.
        smallest: The smallest effect of interest; None: not known.
        untestable: Arm -> seeds; an analysis up to one of them has neither interval nor p value, nor has one at which a
            trial had failed that has been run again since.
        answers: As from `prediction_hashes`.
    """

    values: Callable[[Iterable[str]], Values]
    smallest: float | None = None
    untestable: Mapping[str, frozenset[int]] = field(default_factory=dict)
    answers: PredictionHashes = field(default_factory=dict)

    def claims(
        self, named: Sequence[Claim], analyses: Sequence[InterimAnalysis], error: float
    ) -> list[Claim]:
        """Return the claims with what is found of each.

        Args:
            named: What is compared.
            analyses: All that were made, in order.
            error: Of all planned ones (`PLANNED` or `CROSSED` of `interim_analyses`).
        """
        looks = [
            {
                place: self.seen(claim, analysis)
                for place, claim in enumerate(named)
                # What joined after the first analysis is judged by extensions alone.
                if claim.primary
                and claim.arms <= (analysis if analysis.extension else analyses[0]).covered.keys()
            }
            for analysis in analyses
        ]
        last, levels = analyses[-1] if analyses else None, [analysis.level for analysis in analyses]
        return judged([self.seen(claim, last) for claim in named], [*zip(levels, looks, strict=True)], error)

    def seen(self, claim: Claim, analysis: InterimAnalysis | None) -> Claim:
        """Return what an analysis sees of a comparison; without one, all seeds there are, and nothing is tested."""
        values = self.values(claim.weights)
        everything = differences(values, claim.weights)
        covered = analysis.covered if analysis else values
        seeds = [set(covered.get(arm, ())) for arm in claim.weights]
        shared = set.intersection(*seeds)
        by_seed = {seed: value for seed, value in everything.items() if seed in shared}
        last = max(set().union(*seeds), default=0)
        withheld = any(
            (analysis and analysis.failed.get(arm))
            or any(seed <= last for seed in self.untestable.get(arm, ()))
            for arm in claim.weights
        )
        claim = replace(claim, n=len(by_seed), values=by_seed, withheld=withheld)
        if not by_seed:
            return claim
        scale = max(abs(values[arm][seed]) for arm in claim.weights for seed in by_seed)
        tested = analysis and len(by_seed) >= FIRST and not withheld
        return replace(
            claim,
            difference=fmean(by_seed.values()),
            estimate=paired(by_seed.values(), self.smallest, scale=scale) if tested else None,
            # Of all seeds there are. Alike predictions of other scores contradict each other: no ground for a tie.
            tie=len(everything) >= FIRST
            and max(map(abs, everything.values())) <= TOLERANCE
            and _tied(claim.weights, everything, self.answers),
        )


def prediction_hashes(trials: pd.DataFrame) -> dict[tuple[str, int], str]:
    """Return what stands for the predictions of each confirmed trial; trials without any are left out."""
    runs = tables.confirmed(trials).dropna(subset=["seed"])
    said = zip(runs["arm"], runs["seed"], runs["predictions"], strict=True)
    return {(str(arm), int(seed)): str(text) for arm, seed, text in said if text}


def _tied(weights: Mapping[str, float], seeds: Iterable[int], known: PredictionHashes) -> bool:
    """Whether a comparison is of the same predictions with both signs, on every seed."""
    for seed in seeds:
        total: Counter[str | None] = Counter()
        for arm, weight in weights.items():
            total[known.get((arm, seed))] += weight  # type: ignore[assignment]  # weights are no whole numbers
        if None in total or any(abs(weight) >= _WEIGHT_ROUNDING for weight in total.values()):
            return False
    return True


def differences(values: Values, weights: Mapping[str, float]) -> dict[int, float]:
    """Return the weighted sum of arms' values by seed, on those that all of them have, in order."""
    shared = set.intersection(*({*values.get(arm, {})} for arm in weights))
    return {
        seed: sum(weight * values[arm][seed] for arm, weight in weights.items()) for seed in sorted(shared)
    }


def judged(
    latest: Sequence[AnyClaim], analyses: Sequence[tuple[float, Mapping[int, AnyClaim]]], error: float
) -> list[AnyClaim]:
    """Return the claims with what is found of each.

    Args:
        latest: All comparisons, which share the error, as the last analysis sees them.
        analyses: The level of each, and the primary comparisons that it judges as it sees them, by place in `latest`.
        error: Of all planned analyses; the comparisons that are not primary have it too.
    """
    decisions = decide(
        [(level, {place: seen.estimate for place, seen in looks.items()}) for level, looks in analyses]
    )
    primary = sum(claim.primary for claim in latest)
    others, unasked, found = len(latest) - primary, Step(False, 0.0, 1.0), []
    for place, seen in enumerate(latest):
        decision = decisions.get(place) or Decision(-1, OPEN, unasked, unasked, primary)
        if not seen.primary:
            p_value = seen.estimate.p_value if seen.estimate else 1.0
            step = Step(False, error / others, min(1.0, others * p_value))
            decision = Decision(len(analyses) - 1, None, step, step, others)
        elif decision.analysis >= 0 and not seen.tie:
            seen = analyses[decision.analysis][1][place]
        found.append(_found(seen, decision))
    return found


def _found(seen: AnyClaim, decision: Decision) -> AnyClaim:
    """Return a claim with what was decided of it."""
    verdict = SAME if seen.tie and seen.primary else decision.verdict
    claim = replace(
        seen,
        comparisons=decision.comparisons,
        analyses=decision.analysis + 1,
        verdict=verdict,
        level=(decision.same if verdict == SAME else decision.different).level or None,
        same_level=decision.same.level or None,
        withheld=seen.withheld and verdict in (None, OPEN),
    )
    if claim.tie:
        return replace(claim, difference=0.0, low=0.0, high=0.0, at_most=0.0, estimate=None)
    if claim.estimate is None or claim.same_level is None:
        return replace(claim, estimate=None)
    low, high = _interval(claim)
    return replace(
        claim,
        low=low,
        high=high,
        at_most=min(abs(claim.estimate.difference) + claim.estimate.half(claim.same_level), _reach(claim)),
        p_value=claim.estimate.p_value,
        p_adjusted=decision.different.adjusted,
    )


def _interval(claim: Claim, variance: float = 0.0) -> tuple[float, float]:
    """Return the interval at the claim's level, cut to what a difference can be; variance: over draws of examples.

    Of *no difference* it is that of two one-sided tests, which holds 0 (Hsu, Hwang, Liu and Ruberg 1994).
    """
    assert claim.estimate is not None
    assert claim.level is not None
    same, difference = claim.verdict == SAME, claim.estimate.difference
    half = claim.estimate.half(claim.level / (1 if same else 2), variance)
    low, high = difference - half, difference + half
    if same:
        low, high = min(0.0, low), max(0.0, high)
    return float(max(low, -_reach(claim))), float(min(high, _reach(claim)))


def _reach(claim: Claim) -> float:
    """Return how large a difference can be."""
    least, most = bounds(claim.metric) or (-np.inf, np.inf)
    return float((most - least) * sum(map(abs, claim.weights.values())) / 2)


def with_examples(claims: Iterable[Claim], variances: Mapping[Key, float]) -> list[Claim]:
    """Return the claims with the interval that covers the choice of examples too, where that can be had.

    Args:
        claims: The claims.
        variances: Key of a claim -> variance of its mean difference over draws of examples, as from `resampling`.
    """
    widened = []
    for claim in claims:
        if claim.estimate and claim.low is not None and claim.key in variances:
            low, high = _interval(claim, variances[claim.key])
            smallest = claim.estimate.smallest or 0.0
            stands = max(-low, high) < smallest if claim.shown == SAME else low > 0 or high < 0
            claim = replace(
                claim, examples_low=low, examples_high=high, on_these_examples=claim.decided and not stands
            )
        widened.append(claim)
    return widened


def undecided(
    claims: Iterable[Claim], tried: Collection[str] = (), running: Collection[str] | None = None
) -> frozenset[str]:
    """Return the arms of the primary comparisons that are not decided.

    Args:
        claims: The claims.
        tried: Arms with trials that ended; a comparison of these that still has no pair of seeds is given up.
        running: Arms that can get seeds; a comparison with another, such as a search's earlier best, gets none.
    """
    return frozenset(
        arm
        for claim in claims
        if claim.primary and not claim.decided and (claim.n or not claim.arms <= {*tried})
        if running is None or claim.arms <= {*running}
        for arm in claim.arms
    )
