"""Every arm against the control: what the study's seeds allow one to claim, and no more.

A claim is about the score, a contrast about anything else. Each measure is one family of comparisons,
corrected by Holm for the number of arms, whether or not an arm has results: that number was fixed before
the scores were seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from reports import history_tables, tables
from reports.load import Plan
from reports.statistics import LEVEL, difference_interval, holm, paired_difference

BETTER, WORSE = "better", "worse"
HIGHER, LOWER = "higher", "lower"
SAME, OPEN = "no difference seen", "not enough evidence"


@dataclass(frozen=True)
class Claim:
    """One comparison; `difference` is arm - control over the `n` seeds both have, `sd` that of its pairs.

    low and high are None where there is no interval: fewer than two seeds, or the same difference on all.
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
    p_holm: float | None
    sd: float | None

    def as_json(self) -> dict[str, Any]:
        """Return the fields of the file format, in its order."""
        names = (
            "arm",
            "control",
            "metric",
            "split",
            "n",
            "difference",
            "low",
            "high",
            "level",
            "comparisons",
        )
        return {name: getattr(self, name) for name in (*names, "looks", "verdict", "p_value", "p_holm")}


Values = Mapping[str, pd.Series]
"""An arm's name -> its values by seed; arms without any are not in it."""


def claims(trials: pd.DataFrame, plan: Plan) -> list[Claim]:
    """Compare the score of every arm with the control's, on test where there are test scores."""
    split = tables.score_split(trials, plan)

    def verdict(difference: float | None, low: float | None, high: float | None, rejected: bool) -> str:
        if rejected and difference is not None:
            return BETTER if (difference > 0) == (plan.mode == "max") else WORSE
        small = plan.smallest_effect
        if small is not None and low is not None and high is not None and -small <= low and high <= small:
            return SAME
        return OPEN

    names = [arm.name for arm in plan.arms]
    column = f"{split}/{plan.metric}"
    return _family(plan, names, plan.metric, split, tables.by_seed(trials, column), verdict)


def contrasts(trials: pd.DataFrame, steps: pd.DataFrame, arm_table: pd.DataFrame, plan: Plan) -> list[Claim]:
    """Compare the entropy of p~ (arms that learn it) and the step of convergence with the control's.

    steps: as from `history_tables.convergence`; arm_table: as from `tables.arms`.
    Their verdicts are `higher`, `lower` or `not enough evidence`: neither measure has a good direction
    or a smallest effect of interest.
    """
    learned = [
        arm for arm, mix in zip(arm_table["arm"], arm_table["mix"], strict=True) if tables.is_learned(mix)
    ]
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
    censored = set(steps.loc[steps["state"] == history_tables.CENSORED, "arm"])
    reached = steps.dropna(subset=["step", "seed"])
    steps_of = {str(arm): rows.set_index("seed")["step"] for arm, rows in reached.groupby("arm")}
    speed = _family(
        plan,
        list(arm_table["arm"]),
        "convergence_step",
        "val",
        steps_of,
        _direction,
        untestable=set(arm_table["arm"]) if plan.control in censored else censored,
    )
    return [*entropy, *speed]


def _direction(difference: float | None, low: float | None, high: float | None, rejected: bool) -> str:
    return OPEN if not rejected or difference is None else HIGHER if difference > 0 else LOWER


def _family(
    plan: Plan,
    names: Iterable[str],
    metric: str,
    split: str,
    values: Values,
    verdict: Callable[[float | None, float | None, float | None, bool], str],
    untestable: set[str] | None = None,
) -> list[Claim]:
    """Compare each arm of `names` with the control in one family; nothing where no control is named."""
    others = [name for name in names if name != plan.control]
    if not plan.control or not others:
        return []
    control = values.get(plan.control, tables.NOTHING)
    pairs = [paired_difference(values.get(name, tables.NOTHING), control) for name in others]
    p_values = [
        None if name in (untestable or set()) else pair.p_value
        for name, pair in zip(others, pairs, strict=True)
    ]
    made = []
    for name, pair, p_value, decision in zip(others, pairs, p_values, holm(p_values), strict=True):
        interval = None if p_value is None else difference_interval(pair, decision.level)
        low, high = interval if interval else (None, None)
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
                verdict=verdict(pair.difference, low, high, decision.rejected),
                p_value=p_value,
                p_holm=decision.p_adjusted,
                sd=pair.sd,
            )
        )
    return made
