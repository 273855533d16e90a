"""How many seeds a study would need, in words: part of the answer, and of its limits."""

from __future__ import annotations

from collections.abc import Sequence

from reports.evidence.claims import Claim
from reports.evidence.planning import Spread, seeds_for
from reports.reading.load import Plan
from reports.words.text import number


def seeds_for_smallest_effect(
    claims: Sequence[Claim], plan: Plan, spread: Spread | None, error: float
) -> str:
    """Return how many seeds find the smallest effect of interest, by the pooled spread of the scores seen.

    The differences seen play no part: reckoning from them would promise whatever chance happened to show.
    """
    if spread is None or not plan.smallest_effect:
        return ""
    found = {
        claim.kind: seeds_for(plan.smallest_effect, claim.weights, claim.share, spread, error)
        for claim in reversed(claims)
        if claim.primary and claim.share
    }
    if not found:
        return ""
    kinds = {"factor": "an averaged effect of a factor", "arm": "one arm against the control"}
    parts = [
        f"{f'about {seeds}' if seeds else 'more than 1,000'} for {kinds[kind]}"
        for kind, seeds in found.items()
        if kind in kinds
    ]
    return (
        f"Seeds to find {plan.smallest_effect:g}, the smallest effect of interest, nine times in ten: "
        f"{', '.join(parts)} (from a standard deviation of {number(spread.sd, 3)} per score, pooled over the "
        f"{spread.arms} arms that predict differently, as if all varied alike)."
    )
