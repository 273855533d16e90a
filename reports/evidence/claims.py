"""Every arm against the control: what the study's seeds allow one to claim, and no more.

A claim is about the score, a contrast about anything else. Each measure is one family of comparisons: an
analysis spends its part of 5% (`statistics.analysis_alpha`), every comparison an equal share of that (Bonferroni),
whether or not an arm has results: their number was fixed before the scores were seen. So all intervals of a
family, of this analysis and of all others, hold together with at least 95%, and a verdict never contradicts its
interval.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from reports.evidence import convergence, tables
from reports.evidence.statistics import (
    LEVEL,
    Interval,
    Paired,
    adjusted_p,
    comparison_alpha,
    difference_interval,
    paired_difference,
    share_interval,
)
from reports.reading.load import Plan

BETTER, WORSE = "better", "worse"
HIGHER, LOWER = "higher", "lower"
SAME, OPEN = "no difference seen", "not enough evidence"

FIELDS = (
    *("arm", "control", "metric", "split", "n", "difference", "low", "high", "level", "comparisons", "looks"),
    *("verdict", "p_value", "p_adjusted", "interval_level", "improvement", "improvement_low"),
    *("improvement_high", "examples_low", "examples_high"),
)
"""Of `claims.json` and `contrasts.json`, in their order."""


@dataclass(frozen=True)
class Claim:
    """One comparison; `difference` is arm - control over the `n` seeds both have, `sd` that of its pairs.

    low, high:      None where there is no interval: fewer than two seeds, or the same difference on all
    level:          of the whole family over all analyses; interval_level: of this one interval, by itself
    p_adjusted:     at most 0.05 exactly where the interval leaves out 0
    improvement:    share of seeds on which the arm beats the control, a tie counting half, with its exact
                    interval at `interval_level`: an estimate of how often it would on a fresh seed
    examples_low, examples_high: the interval that covers the choice of examples too, where predictions
                    allow one (`resampling`)
    """

    arm: str
    control: str
    metric: str
    split: str
    n: int
    difference: float | None
    low: float | None
    high: float | None
    level: float
    comparisons: int
    looks: int
    verdict: str
    p_value: float | None
    p_adjusted: float | None
    interval_level: float
    sd: float | None
    improvement: float | None
    improvement_low: float | None
    improvement_high: float | None
    examples_low: float | None = None
    examples_high: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the fields of the file format, in its order."""
        return {name: getattr(self, name) for name in FIELDS}


Values = Mapping[str, pd.Series]
"""An arm's name -> its values by seed; arms without any are not in it."""


def claims(trials: pd.DataFrame, plan: Plan) -> list[Claim]:
    """Compare the score of every arm with the control's, on test where there are test scores."""
    split = tables.score_split(trials, plan)

    def verdict(difference: float, low: float, high: float) -> str:
        if low > 0 or high < 0:
            return BETTER if (difference > 0) == (plan.mode == "max") else WORSE
        small = plan.smallest_effect
        return SAME if small is not None and -small <= low and high <= small else OPEN

    names = [arm.name for arm in plan.arms]
    column = f"{split}/{plan.metric}"
    return _family(plan, names, plan.metric, split, tables.by_seed(trials, column), verdict, wins=True)


def with_examples(found: Iterable[Claim], variances: Mapping[str, float]) -> list[Claim]:
    """Return the claims with the interval that covers the choice of examples too, where that can be had.

    variances: arm -> variance of its mean difference over draws of examples, as from `resampling`
    """
    widened = []
    for claim in found:
        pair = Paired(claim.n, claim.difference, claim.sd, claim.p_value)
        alpha = comparison_alpha(claim.looks, claim.comparisons)
        variance = variances.get(claim.arm)
        low, high = (None if variance is None else difference_interval(pair, alpha, variance)) or (None, None)
        widened.append(replace(claim, examples_low=low, examples_high=high))
    return widened


def contrasts(trials: pd.DataFrame, steps: pd.DataFrame, plan: Plan) -> list[Claim]:
    """Compare the entropy of p~ (arms that learn it) and the step of convergence with the control's.

    steps: as from `convergence.convergence`.
    Their verdicts are `higher`, `lower` or `not enough evidence`: neither measure has a good direction
    or a smallest effect of interest.
    """
    names = [arm.name for arm in plan.arms]
    learned = tables.learning_arms(trials, plan)
    entropy = _family(
        plan,
        learned,
        "mix/entropy",
        "val",
        tables.by_seed(trials, "mix/entropy"),
        _direction,
    )
    # Comparing only the seeds on which both arms converged would pick the easy seeds: an arm with a
    # censored trial gets no interval and no verdict, its difference is over the others.
    censored = set(steps.loc[steps["state"] == convergence.CENSORED, "arm"])
    reached = steps.dropna(subset=["step", "seed"])
    steps_of = {str(arm): rows.set_index("seed")["step"] for arm, rows in reached.groupby("arm")}
    speed = _family(
        plan,
        names,
        "convergence_step",
        "val",
        steps_of,
        _direction,
        untestable=set(names) if plan.control in censored else censored,
    )
    return [*entropy, *speed]


def next_analysis(claims: Sequence[Claim]) -> int:
    """Return the number of the interim analysis that more seeds would be: the first where there are no pairs yet."""
    return claims[0].looks + (1 if any(claim.n for claim in claims) else 0)


def _direction(difference: float, low: float, high: float) -> str:
    return OPEN if low <= 0 <= high else HIGHER if difference > 0 else LOWER


def _family(
    plan: Plan,
    names: Iterable[str],
    metric: str,
    split: str,
    values: Values,
    verdict: Callable[[float, float, float], str],
    untestable: set[str] | None = None,
    wins: bool = False,
) -> list[Claim]:
    """Compare each arm of `names` with the control in one family; nothing where no control is named.

    verdict:    of a difference and its interval; without an interval there is not enough evidence
    untestable: names that get neither interval nor p value
    wins:       whether one direction is the better one, so that seeds can be won
    """
    others = [name for name in names if name != plan.control]
    if not plan.control or not others:
        return []
    control = values.get(plan.control, tables.NOTHING)
    alpha = comparison_alpha(plan.looks, len(others))
    made = []
    for name in others:
        pair = paired_difference(values.get(name, tables.NOTHING), control)
        testable = name not in (untestable or set())
        low, high = (difference_interval(pair, alpha) if testable else None) or (None, None)
        p_value = pair.p_value if testable else None
        improvement = _improvement(pair, alpha, plan.mode) if wins else None
        made.append(
            Claim(
                arm=name,
                control=plan.control,
                metric=metric,
                split=split,
                n=pair.n,
                difference=pair.difference,
                low=low,
                high=high,
                level=LEVEL,
                comparisons=len(others),
                looks=plan.looks,
                verdict=OPEN
                if pair.difference is None or low is None or high is None
                else verdict(pair.difference, low, high),
                p_value=p_value,
                p_adjusted=None if p_value is None else adjusted_p(p_value, plan.looks, len(others)),
                interval_level=1.0 - alpha,
                sd=pair.sd,
                improvement=improvement.mean if improvement else None,
                improvement_low=improvement.low if improvement else None,
                improvement_high=improvement.high if improvement else None,
            )
        )
    return made


def _improvement(pair: Paired, alpha: float, mode: str) -> Interval:
    """Return the share of seeds on which the arm is the better one, and its interval."""
    better = pair.n - pair.above - pair.ties if mode == "min" else pair.above
    if not pair.n:
        return Interval(None, None, None, 0)
    low, high = share_interval(better, pair.ties, pair.n, alpha)
    return Interval((better + pair.ties / 2) / pair.n, low, high, pair.n)
