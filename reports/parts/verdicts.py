"""What was found of comparisons, in words: each verdict with its size, the decided first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reports.evidence.claims import Claim
from reports.evidence.holm import BETTER, OPEN, SAME, WORSE
from reports.parts.cells import level, named
from reports.reading.load import Plan
from reports.words.text import escape, interval, number, several

MAX_OPEN_TOLD = 2
"""Most undecided comparisons of one kind that are told with their intervals."""
SCORES, EFFECTS = {BETTER: BETTER, WORSE: WORSE}, {BETTER: "higher", WORSE: "lower"}
"""Which way differences of scores go, and differences of effects: a smaller effect is not a worse one."""
TOLD = 8
"""Most comparisons of one verdict that are told of one by one."""


def verdicts(claims: Sequence[Claim], plan: Plan, words: Mapping[str, str] = SCORES) -> str:
    """Return what was found of comparisons of one kind, a sentence; `words` say which way a difference goes."""
    parts = []
    for word in (BETTER, WORSE):
        decided = sorted(
            (claim for claim in claims if claim.shown == word),
            key=lambda claim: -abs(claim.difference or 0),
        )
        parts += [
            f"{named(claim, plan)} is **{words[word]}** by {size(claim)}{_beyond(claim)}"
            for claim in decided[:TOLD]
        ]
        if len(decided) > TOLD:
            parts.append(f"{len(decided) - TOLD} more are **{words[word]}**")
    same = [claim for claim in claims if claim.shown == SAME]
    if ties := [claim for claim in same if claim.tie]:
        parts.append(f"{_all(ties, plan)}: **identical predictions**")
    least = "" if plan.smallest_effect is None else f" larger than {plan.smallest_effect:g}"
    for on_these in (False, True):
        if rest := [claim for claim in same if not claim.tie and claim.on_these_examples == on_these]:
            parts.append(f"{_all(rest, plan)}: **no difference**{least}{_beyond(rest[0])}")
    if undecided := [claim for claim in claims if claim.shown == OPEN]:
        seen = [f"{named(claim, plan)} ({_open(claim, len(undecided))})" for claim in undecided]
        parts.append(f"**not enough evidence** on {several(seen, 8)}")
    return f"{'; '.join(parts)}."


def verdict(claim: Claim) -> str:
    """Return a verdict with what qualifies it."""
    return f"{'identical predictions' if claim.tie else claim.shown}{_beyond(claim) if claim.decided else ''}"


def size(claim: Claim, digits: int = 3) -> str:
    """Return how large a difference is, without its sign: "0.12 [0.08, 0.16]"."""
    if claim.difference is None or claim.low is None or claim.high is None:
        return number(None)
    ends = sorted((abs(claim.low), abs(claim.high)))
    return f"{number(abs(claim.difference), digits)} {interval(ends[0], ends[1], digits)}"


def _beyond(claim: Claim) -> str:
    """Say that a verdict does not hold beyond the examples that were drawn."""
    return " (on these examples; not shown for others)" if claim.on_these_examples else ""


def _open(claim: Claim, undecided: int) -> str:
    """Return a difference that is not decided, with its interval where few are."""
    seen = number(claim.difference, signed=True)
    if claim.low is None or claim.high is None or undecided > MAX_OPEN_TOLD:
        return seen
    return f"{seen} {interval(claim.low, claim.high, signed=True)}"


def _all(claims: Sequence[Claim], plan: Plan) -> str:
    """Return names in one phrase: "α = 8 and 64 instead of 1" where they share a reference."""
    changes = [claim.changes[0] for claim in claims if claim.kind == "factor"]
    if (
        len(changes) == len(claims) > 1
        and len({(change.factor, change.reference) for change in changes}) == 1
    ):
        levels = several([escape(level(change.level)) for change in changes], 6)
        reference = escape(level(changes[0].reference))
        return f"{escape(plan.symbol(changes[0].factor))} = {levels} instead of {reference}"
    return several([named(claim, plan) for claim in claims], 6)
