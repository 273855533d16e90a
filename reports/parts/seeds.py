"""How many seeds a study would need, in words: part of the answer, and of its limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from reports.evidence.claims import Claim, next_analysis
from reports.evidence.statistics import LEVEL, comparison_alpha, sd_upper_limit, seeds_needed
from reports.reading.load import Plan
from reports.words.text import count, number


def seeds_for_one_sd(claims: Sequence[Claim]) -> str:
    """Return how many seeds find a difference as large as one SD of the paired difference: needs no data."""
    wanted = seeds_needed(1.0, comparison_alpha(next_analysis(claims), claims[0].comparisons))
    return (
        "To find a difference as large as one standard deviation of the paired difference nine times in "
        f"ten takes {wanted or 'more than 1,000'} seeds per arm, counted at {_counted(claims)}."
    )


def seeds_for_smallest_effect(claims: Sequence[Claim], plan: Plan) -> str:
    """Return how many seeds find the smallest effect of interest, from an upper limit of the spread seen.

    The observed effect plays no part: reckoning from it would promise whatever chance happened to show.
    The spread is the root mean square of the arms' SDs; its limit counts one arm's degrees of freedom
    only, because all arms share the control and so are no independent witnesses of it.
    """
    known = [claim for claim in claims if claim.sd]
    if not known or not plan.smallest_effect:
        return ""
    spread = math.sqrt(sum((claim.sd or 0.0) ** 2 for claim in known) / len(known))
    upper = sd_upper_limit(spread, int(median(claim.n for claim in known)))
    wanted = seeds_needed(
        plan.smallest_effect / upper, comparison_alpha(next_analysis(claims), claims[0].comparisons)
    )
    return (
        f"To find a difference of {plan.smallest_effect:g}, the smallest effect of interest, nine times in "
        f"ten would take {f'about {wanted}' if wanted else 'more than 1,000'} seeds per arm, counted at "
        f"{_counted(claims)} (reckoned from the upper {LEVEL:.0%} limit, {number(upper)}, of the standard "
        "deviation of the paired difference, never from the difference seen)."
    )


def _counted(claims: Sequence[Claim]) -> str:
    return f"interim analysis {next_analysis(claims)} and corrected for {count(claims[0].comparisons, 'comparison')}"
