"""The Answer: sentences made from the claims, each no stronger than its verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reports.evidence.caveats import Caveat
from reports.evidence.claims import BETTER, HIGHER, LOWER, OPEN, SAME, WORSE, Claim
from reports.evidence.evidence import Evidence
from reports.parts.caveats import headline
from reports.parts.part import Part
from reports.parts.seeds import seeds_for_one_sd, seeds_for_smallest_effect
from reports.reading.load import Plan
from reports.words.labels import SPLITS, short
from reports.words.text import code, count, estimate, listed, prose, several


@dataclass(frozen=True)
class Info:
    claims: tuple[Claim, ...]
    contrasts: tuple[Claim, ...]
    plan: Plan
    caveats: tuple[Caveat, ...]
    notes: tuple[str, ...]


def info(evidence: Evidence) -> Info:
    notes = evidence.loaded.study.asked.notes
    return Info(
        tuple(evidence.claims), tuple(evidence.contrasts), evidence.plan, tuple(evidence.caveats), notes
    )


def section(info: Info) -> list[str]:
    notes = (
        ["**Notes** of the study:", listed(prose(note, 1000) for note in info.notes)] if info.notes else []
    )
    return [*_answer(info.claims, info.contrasts, info.plan), headline(info.caveats), *notes]


def _answer(claims: Sequence[Claim], contrasts: Sequence[Claim], plan: Plan) -> list[str]:
    if not claims:
        return ["**There is no answer yet**: no arm could be compared with a control."]
    if not any(claim.n >= 2 for claim in claims):
        most = max(claim.n for claim in claims)
        return [
            "**There is not enough evidence to answer.** A comparison needs at least two seeds that an arm "
            "and the control have both completed; here there "
            f"{'is' if most == 1 else 'are'} at most {most}. " + seeds_for_one_sd(claims)
        ]
    paragraphs = [_headline(claims)]
    paragraphs += filter(None, [_decided(claims, plan), _same(claims, plan), _open(claims, plan)])
    paragraphs += filter(None, [_mix(contrasts), _speed(contrasts)])
    return paragraphs


def _headline(claims: Sequence[Claim]) -> str:
    first = claims[0]
    counts = {
        verdict: sum(claim.verdict == verdict for claim in claims) for verdict in (BETTER, WORSE, SAME, OPEN)
    }
    if counts[OPEN] == len(claims):
        start = "**There is not enough evidence to answer.**"
    elif counts[BETTER] or counts[WORSE]:
        start = (
            "**Some arms differ from the control.**"
            if counts[SAME] + counts[OPEN]
            else "**Every arm differs from the control.**"
        )
    else:
        start = "**No difference was found where the evidence suffices.**"
    parts = [
        f"{counts[BETTER]} better",
        f"{counts[WORSE]} worse",
        f"{counts[SAME]} with no difference seen",
        f"{counts[OPEN]} without enough evidence either way",
    ]
    return (
        f"{start} On {SPLITS.get(first.split, first.split)} {short(first.metric)}, of "
        f"{count(len(claims), 'arm')} compared with the control {code(first.control)}: {', '.join(parts)}. "
        f"Paired t intervals over {_span(claims)} shared seeds, corrected (Bonferroni) for "
        f"{count(first.comparisons, 'comparison')} at interim analysis {first.looks}."
    )


def _decided(claims: Sequence[Claim], plan: Plan) -> str:
    sentences = []
    for verdict in (BETTER, WORSE):
        found = [claim for claim in claims if claim.verdict == verdict]
        found.sort(key=lambda claim: -abs(claim.difference or 0.0))
        if found:
            named = several([f"{code(claim.arm)} ({_difference(claim)})" for claim in found], 3)
            sentences.append(f"{verdict.capitalize()} than the control: {named}.")
    small = plan.smallest_effect
    if small is not None:
        trifling = [claim for claim in claims if claim.verdict in (BETTER, WORSE) and _within(claim, small)]
        if trifling:
            names = several([code(claim.arm) for claim in trifling])
            sentences.append(f"Of these, {names}: smaller than the smallest effect of interest, {small:g}.")
    return " ".join(sentences)


def _same(claims: Sequence[Claim], plan: Plan) -> str:
    same = [claim for claim in claims if claim.verdict == SAME]
    if not same:
        return ""
    named = several([f"{code(claim.arm)} ({_difference(claim)})" for claim in same], 3)
    return f"No difference seen, that is, none larger than {plan.smallest_effect:g} either way: {named}."


def _open(claims: Sequence[Claim], plan: Plan) -> str:
    undecided = [claim for claim in claims if claim.verdict == OPEN]
    if not undecided:
        return ""
    names = several([code(claim.arm) for claim in undecided])
    text = f"Not enough evidence either way, so these may be better, worse or alike: {names}. "
    return text + (seeds_for_smallest_effect(claims, plan) or seeds_for_one_sd(claims))


def _mix(contrasts: Sequence[Claim]) -> str:
    found = [claim for claim in contrasts if claim.metric == "mix/entropy"]
    if not found:
        return ""
    lower = [claim for claim in found if claim.verdict == LOWER]
    higher = [claim for claim in found if claim.verdict == HIGHER]
    text = (
        "The mix itself: against the control, the entropy of the mix weights is lower (fewer layers carry "
        f"the weight) in {len(lower)} of {count(len(found), 'arm')} that learn it, higher in {len(higher)}; "
        f"for {len(found) - len(lower) - len(higher)} there is not enough evidence."
    )
    if lower:
        furthest = min(lower, key=lambda claim: claim.difference or 0.0)
        text += f" Lowest: {code(furthest.arm)} ({_difference(furthest)}, in nats)."
    return text


def _speed(contrasts: Sequence[Claim]) -> str:
    found = [claim for claim in contrasts if claim.metric == "convergence_step" and claim.n > 0]
    if not found:
        return ""
    earlier = [claim for claim in found if claim.verdict == LOWER]
    later = [claim for claim in found if claim.verdict == HIGHER]
    text = (
        f"Speed: {len(earlier)} of {count(len(found), 'arm')} reach 95% of their own gain in fewer steps "
        f"than the control, {len(later)} in more; for {len(found) - len(earlier) - len(later)} "
        "there is not enough evidence."
    )
    if earlier:
        first = min(earlier, key=lambda claim: claim.difference or 0.0)
        size = estimate(first.difference, first.low, first.high, first.n, 0, signed=True)
        text += f" Earliest: {code(first.arm)} ({size}, in steps)."
    return text


def _difference(claim: Claim) -> str:
    return estimate(claim.difference, claim.low, claim.high, claim.n, signed=True)


def _within(claim: Claim, small: float) -> bool:
    return claim.low is not None and claim.high is not None and -small <= claim.low and claim.high <= small


def _span(claims: Sequence[Claim]) -> str:
    low, high = min(claim.n for claim in claims), max(claim.n for claim in claims)
    return f"{low}" if low == high else f"{low} to {high}"


PART = Part("Answer", info, section)
