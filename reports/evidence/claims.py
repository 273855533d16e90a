"""What the study's seeds allow one to claim of its planned comparisons, and no more.

A claim is about the score, a contrast about anything else. Each measure is one family of comparisons: an analysis may
spend its part of the error (`spending`), divided between the comparisons beforehand, whether or not they have results.
So all intervals of a family, of this analysis and of all others, hold together with at least 95%, a verdict never
contradicts its interval, and a comparison that was decided once keeps its claim.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

import pandas as pd
from scipy import special

from adalayers.comparisons import FIRST, Comparison
from adalayers.results.intervals import LEVEL
from adalayers.tasks.metrics import bounds
from reports.evidence import convergence, prediction_hashes, tables
from reports.evidence.analyses import Analysis, Replay
from reports.evidence.spending import shares
from reports.evidence.statistics import (
    Paired,
    differences,
    paired,
    share_interval,
    unpaired_critical,
    unpaired_p,
)
from reports.reading.load import Plan

BETTER, WORSE = "better", "worse"
HIGHER, LOWER = "higher", "lower"
SAME, OPEN = "no difference seen", "not enough evidence"

FIELDS = (
    *("kind", "arm", "control", "at", "primary", "metric", "split", "n", "difference", "low", "high"),
    *("level", "comparisons", "analyses", "verdict", "tie", "p_value", "p_adjusted", "interval_level"),
    *("improvement", "improvement_low", "improvement_high", "examples_low", "examples_high"),
)
"""Of `claims.json` and `contrasts.json`, in their order."""


@dataclass(frozen=True, kw_only=True)
class Claim(Comparison):
    """A comparison, and what is found of it; `difference` is its contrast's mean over the `n` seeds of all its arms.

    low, high:      None where there is no interval: fewer than two seeds, or the same difference on all
    level:          of the whole family over all analyses; interval_level: of this one interval, by itself
    comparisons:    how many share the family's error
    analyses:          number of the analysis that this is of: the one that decided, else the last with new pairs
    tie:            all predictions agree, so there is no difference
    p_adjusted:     at most 0.05 exactly where the interval leaves out 0
    improvement:    share of seeds on which the difference is an improvement, a tie counting half, with its exact
                    interval at `interval_level`: an estimate of how often it would be on a fresh seed
    examples_low, examples_high: the interval that covers the choice of examples too, where predictions
                    allow one (`resampling`)
    values:         the difference by seed; sd: their standard deviation; above, ties: on how many seeds it is above
                    0, and 0 but for rounding; critical: how many standard errors the interval reaches to either side,
                    one_sided: the same for a test of one side
    on_these_examples: whether the verdict is not shown for other examples of the same kind
    withheld:       whether a failed trial keeps its last analysis from a verdict
    schedule:       pairs, and error spent up to them, of the analyses so far
    """

    metric: str
    split: str
    comparisons: int
    analyses: int
    n: int = 0
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    level: float = LEVEL
    verdict: str = OPEN
    tie: bool = False
    p_value: float | None = None
    p_adjusted: float | None = None
    interval_level: float = 1.0
    improvement: float | None = None
    improvement_low: float | None = None
    improvement_high: float | None = None
    examples_low: float | None = None
    examples_high: float | None = None
    values: Mapping[int, float] = field(default_factory=dict)
    sd: float | None = None
    above: int = 0
    ties: int = 0
    critical: float = math.inf
    one_sided: float = math.inf
    on_these_examples: bool = False
    share: float = 0.0
    schedule: tuple[tuple[int, float], ...] = ()
    withheld: bool = False

    @property
    def decided(self) -> bool:
        return self.verdict != OPEN

    @property
    def arms(self) -> frozenset[str]:
        return frozenset(self.weights)

    def as_json(self) -> dict[str, Any]:
        """Return the fields of the file format, in its order."""
        named = dict(zip(("arm", "control", "at"), self.names, strict=True))
        return {name: named.get(name, getattr(self, name)) for name in FIELDS}


Values = Mapping[str, Mapping[int, float]]
"""An arm's name -> its values by seed; arms without any are not in it."""

Verdict = Callable[[float, float, float], tuple[str, float, float]]
"""Of a difference and the half-widths of its intervals, two-sided and one-sided: the verdict, low and high."""


def claims(
    trials: pd.DataFrame,
    plan: Plan,
    analyses: Sequence[Analysis],
    answers: prediction_hashes.PredictionHashes,
) -> list[Claim]:
    """Return what can be said of every planned comparison of the score, on test where there are test scores.

    answers: as from `prediction_hashes.answers`
    """
    split = tables.score_split(trials, plan)
    family = ComparisonFamily(plan.metric, split, of_scores(plan.smallest_effect), answers)
    values = tables.values(trials, f"{split}/{plan.metric}")
    return family.claims(plan.comparisons, values, analyses, tables.without_score(trials, plan))


def of_scores(smallest: float | None) -> Verdict:
    """Return how verdicts on a score are reached.

    The parameter space is partitioned (Stefansson, Kim and Hsu 1988): at most one of "the difference is 0", "at least
    `smallest`" and "at most -`smallest`" is true, so each is tested with the comparison's whole error. *No difference*
    is that both one-sided tests reject (Schuirmann 1987); the interval is then cut to what they leave.

    Args:
        smallest: The smallest difference of interest; None: not known.
    """

    def verdict(difference: float, half: float, one_sided: float) -> tuple[str, float, float]:
        low, high = difference - half, difference + half
        if low > 0 or high < 0:
            return BETTER if difference > 0 else WORSE, low, high
        if smallest is not None and abs(difference) + one_sided <= smallest:
            return SAME, max(low, -smallest), min(high, smallest)
        return OPEN, low, high

    return verdict


def contrasts(
    trials: pd.DataFrame, steps: pd.DataFrame, plan: Plan, analyses: Sequence[Analysis]
) -> list[Claim]:
    """Compare the entropy of p~ (of arms that learn it) and the step of convergence.

    steps: as from `convergence.convergence`.
    Their verdicts are `higher`, `lower` or `not enough evidence`: neither measure has a good direction
    or a smallest effect of interest. No study stops by them, so they are of the last analysis.
    """
    learned = set(tables.learning_arms(trials, plan))
    entropy = ComparisonFamily("mix/entropy", "val", _direction, keeps=False).claims(
        [comparison for comparison in plan.comparisons if comparison.weights.keys() <= learned],
        tables.values(trials, "mix/entropy"),
        analyses,
    )
    # Comparing only the seeds on which both arms converged would pick the easy seeds: an arm with a
    # censored trial gets no interval and no verdict, its difference is over the others.
    lost = steps[(steps["state"] == convergence.CENSORED) & steps["seed"].notna()]
    censored = {str(arm): frozenset(map(int, rows["seed"])) for arm, rows in lost.groupby("arm")}
    reached = steps.dropna(subset=["step", "seed"])
    steps_of = {
        str(arm): dict(zip(map(int, rows["seed"]), map(float, rows["step"]), strict=True))
        for arm, rows in reached.groupby("arm")
    }
    speed = ComparisonFamily("convergence_step", "val", _direction, keeps=False).claims(
        plan.comparisons, steps_of, analyses, untestable=censored
    )
    return [*entropy, *speed]


def with_wins(claims: Iterable[Claim]) -> list[Claim]:
    """Return the claims with the share of seeds on which the difference is an improvement."""
    won = []
    for claim in claims:
        if claim.interval_level < 1.0:
            low, high = share_interval(claim.above, claim.ties, claim.n, 1.0 - claim.interval_level)
            share = (claim.above + claim.ties / 2) / claim.n
            claim = replace(claim, improvement=share, improvement_low=low, improvement_high=high)
        won.append(claim)
    return won


def with_examples(
    claims: Iterable[Claim], variances: Mapping[int, float], smallest: float | None
) -> list[Claim]:
    """Return the claims with the interval that covers the choice of examples too, where that can be had.

    half-width^2 = (t x standard error over seeds)^2 + (z x standard error over examples)^2, t and z the quantiles of
    the comparison's own level: a handful of seeds leaves few degrees of freedom to the first alone, the second comes
    from hundreds of examples. (Satterthwaite's single t for the sum misses up to 16 times as often as it says.)

    Args:
        claims: The claims.
        variances: Place in `claims` -> variance of its mean difference over draws of examples, as from `resampling`.
        smallest: As of `of_scores`.
    """
    verdict, widened = of_scores(smallest), []
    for index, claim in enumerate(claims):
        variance = variances.get(index)
        if (
            variance is not None
            and claim.sd
            and claim.difference is not None
            and math.isfinite(claim.critical)
        ):
            halves = [
                math.hypot(t * claim.sd / math.sqrt(claim.n), float(z) * math.sqrt(variance))
                for t in (claim.critical, claim.one_sided)
                for z in [special.ndtri(special.stdtr(claim.n - 1, -t))]
            ]
            with_both, low, high = verdict(claim.difference, *halves)
            low, high = _within(low, high, claim)
            on_these = claim.decided and with_both != claim.verdict
            claim = replace(claim, examples_low=low, examples_high=high, on_these_examples=on_these)
        widened.append(claim)
    return widened


def undecided(claims: Iterable[Claim], tried: Collection[str] = ()) -> frozenset[str]:
    """Return the arms of the primary comparisons that are not decided.

    tried: arms with trials that ended; a comparison of these that still has no pair of seeds is given up
    """
    return frozenset(
        arm
        for claim in claims
        if claim.primary and not claim.decided and (claim.n or not claim.arms <= {*tried})
        for arm in claim.arms
    )


def _direction(difference: float, half: float, one_sided: float) -> tuple[str, float, float]:
    verdict = OPEN if abs(difference) <= half else HIGHER if difference > 0 else LOWER
    return verdict, difference - half, difference + half


@dataclass(frozen=True)
class ComparisonFamily:
    """Comparisons of one measure, which share its error.

    keeps:   whether a comparison ends at the analysis that decides it; else it is of the last one
    verdict: of a difference and its interval; without an interval there is not enough evidence
    case_of: arm -> its case, where two cases are compared: their seeds are not paired, so each has all of its own
    """

    metric: str
    split: str
    verdict: Verdict
    answers: prediction_hashes.PredictionHashes = field(default_factory=dict)
    keeps: bool = True
    case_of: Mapping[str, str] = field(default_factory=dict)

    def claims(
        self,
        comparisons: Sequence[Comparison],
        values: Values,
        analyses: Sequence[Analysis],
        untestable: Mapping[str, frozenset[int]] | None = None,
        *,
        sharing: Sequence[Comparison] = (),
    ) -> list[Claim]:
        """Return a claim of each comparison.

        untestable: arm -> seeds; an analysis up to one of them has neither interval nor p value
        sharing: all comparisons that share the error, these among them; without, these alone
        """
        family = sharing or comparisons
        positions = {id(comparison): i for i, comparison in enumerate(family)}
        parts = [_parts(family, analysis) for analysis in analyses]
        return [
            self._claim(
                comparison,
                values,
                analyses,
                [part.get(positions[id(comparison)]) for part in parts],
                len(family),
                untestable or {},
            )
            for comparison in comparisons
        ]

    def _claim(
        self,
        comparison: Comparison,
        values: Values,
        analyses: Sequence[Analysis],
        parts: Sequence[float | None],
        many: int,
        untestable: Mapping[str, frozenset[int]],
    ) -> Claim:
        """Replay the analyses of one comparison, up to the one that decides it."""
        claim = Claim(
            **vars(comparison), metric=self.metric, split=self.split, comparisons=many, analyses=len(analyses)
        )
        replay = Replay()
        for analysis, part in zip(analyses, parts, strict=True):
            if part is None:
                continue
            seeds = frozenset.intersection(*(analysis.seeds[arm] for arm in comparison.weights))
            by_seed = differences(values, comparison.weights, seeds)
            by_case = self._by_case(comparison, values, analysis)
            n = _pairs(by_case or [by_seed])
            last = max((seed for arm in comparison.weights for seed in analysis.seeds[arm]), default=0)
            if any(seed <= last for arm in comparison.weights for seed in untestable.get(arm, ())):
                if (
                    min(map(len, by_case or [by_seed])) > claim.n
                ):  # what this analysis may spend is left for the next
                    claim = self._seen(claim, analysis, part, by_seed, by_case, values, math.inf, math.inf)
                claim = replace(claim, withheld=not claim.decided)
                continue
            critical = replay.critical(analysis, n, part)
            if critical is None:
                continue
            claim = self._seen(claim, analysis, part, by_seed, by_case, values, critical, replay.one_sided)
            claim = replace(claim, schedule=tuple(replay.schedule), withheld=False)
            if claim.decided and self.keeps:
                break
        return claim

    def _by_case(
        self, comparison: Comparison, values: Values, analysis: Analysis
    ) -> list[Mapping[int, float]]:
        """Return each case's part of a comparison of cases, by its own seeds; empty where seeds are paired."""
        weights: dict[str, dict[str, float]] = {}
        for arm, weight in comparison.weights.items() if self.case_of else ():
            weights.setdefault(self.case_of[arm], {})[arm] = weight
        return [
            differences(
                values, case_weights, frozenset.intersection(*(analysis.seeds[arm] for arm in case_weights))
            )
            for case_weights in weights.values()
        ]

    def _seen(
        self,
        claim: Claim,
        analysis: Analysis,
        part: float,
        by_seed: Mapping[int, float],
        by_case: Sequence[Mapping[int, float]],
        values: Values,
        critical: float,
        one_sided: float,
    ) -> Claim:
        """Return the claim as of an analysis: its part of the error, the differences by seed that it covers."""
        largest = max(
            abs(values[arm].get(seed, 0.0))
            for arm in claim.weights
            for part in (by_seed, *by_case)
            for seed in part
        )
        pair = paired(by_seed.values(), scale=largest)
        ties = pair.ties == pair.n >= FIRST
        n = _pairs(by_case or [by_seed])
        nominal = _error_of(critical, n)
        if by_case:
            pair, critical, one_sided = _unpaired(by_case, nominal, _error_of(one_sided, n), scale=largest)
        verdict, low, high = OPEN, None, None
        testable = pair.p_value is not None and math.isfinite(critical)
        if testable:
            error = (pair.sd or 0.0) / math.sqrt(pair.n)
            verdict, low, high = self.verdict(pair.difference or 0.0, critical * error, one_sided * error)
            low, high = _within(low, high, claim)
        # Predictions that are alike while scores are not contradict each other: no ground for a tie. Seeds that came
        # after this analysis count too: arms that differ on one of them are not the same.
        tie = ties and prediction_hashes.tied(
            claim.weights, set.intersection(*({*values[arm]} for arm in claim.weights)), self.answers
        )
        if tie:
            verdict, low, high = SAME, 0.0, 0.0
        return replace(
            claim,
            n=pair.n,
            difference=0.0 if tie else pair.difference,
            low=low,
            high=high,
            analyses=analysis.number,
            verdict=verdict,
            tie=tie,
            p_value=pair.p_value if testable else None,
            p_adjusted=min(1.0, (pair.p_value or 0.0) * (1 - LEVEL) / nominal) if testable else None,
            interval_level=1.0 - nominal,
            values=by_seed,
            sd=pair.sd,
            above=pair.above,
            ties=pair.ties,
            critical=critical,
            one_sided=one_sided,
            share=part,
        )


def _pairs(samples: Sequence[Collection[int]]) -> int:
    """Return as how many pairs samples count: those of equal size that would tell as much of a difference."""
    sizes = [len(values) for values in samples]
    return min(sizes) if min(sizes) < FIRST else int(len(sizes) / sum(1 / size for size in sizes) + 1e-9)


def _error_of(critical: float, n: int) -> float:
    """Return the two-sided error of a t test of n pairs with this critical value."""
    return 0.0 if math.isinf(critical) else 2 * float(special.stdtr(n - 1, -critical))


def _unpaired(
    by_case: Sequence[Mapping[int, float]], error: float, one_sided: float, *, scale: float
) -> tuple[Paired, float, float]:
    """Return a comparison of two cases as one of pairs, and its critical values at these two-sided errors.

    Its n is that of the case with fewer seeds, its sd that of n pairs of the same standard error.
    """
    n = min(map(len, by_case))
    if n < 2:
        return (
            Paired(n, sum(fmean(part.values()) for part in by_case) if n else None, None, None),
            math.inf,
            math.inf,
        )
    first, second = (paired(part.values(), scale=scale) for part in by_case)
    difference = sum(fmean(part.values()) for part in by_case)
    standard_error = math.sqrt(first.error + second.error)
    if not standard_error:
        return Paired(n, difference, 0.0, None), math.inf, math.inf
    return (
        Paired(
            n,
            difference,
            standard_error * math.sqrt(n),
            unpaired_p(abs(difference) / standard_error, first, second),
        ),
        unpaired_critical(error, first, second),
        unpaired_critical(one_sided, first, second),
    )


def _parts(comparisons: Sequence[Comparison], analysis: Analysis) -> dict[int, float]:
    """Return position -> share of the error, of the comparisons whose arms were known at an analysis."""
    known = [
        i for i, comparison in enumerate(comparisons) if comparison.weights.keys() <= analysis.seeds.keys()
    ]
    if not known:
        return {}
    return dict(zip(known, shares([comparisons[i].primary for i in known]), strict=True))


def _within(low: float, high: float, claim: Claim) -> tuple[float, float]:
    """Return an interval cut to what a difference of such values can be."""
    limits = bounds(claim.metric)
    if limits is None or not math.isfinite(limits[1] - limits[0]):
        return low, high
    most = (limits[1] - limits[0]) * sum(abs(weight) for weight in claim.weights.values()) / 2
    return max(low, -most), min(high, most)
