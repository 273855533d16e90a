"""The Answer: quality, mix, speed and advice, in sentences made from the claims, each no stronger than its verdict."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from reports.evidence.best_set import BestSet
from reports.evidence.claims import BETTER, HIGHER, LOWER, OPEN, SAME, WORSE, Claim
from reports.evidence.convergence import Pace
from reports.evidence.evidence import Evidence
from reports.parts.cells import averaged_over, named, where
from reports.parts.cells import level as level_text
from reports.parts.part import Part, own_parts
from reports.reading.factors import column, level, level_name, levels
from reports.reading.factors import short as factor_name
from reports.reading.load import Plan
from reports.words.labels import short
from reports.words.text import code, count, escape, interval, listed, number, several

NOTABLE_EFFECT_SD = 5
"""How many times its spread over seeds a difference is, that is worth saying though nothing is claimed of it."""
FEW = 2
"""Most undecided comparisons of one kind that are told with their intervals."""
TOLD = 8
"""Most comparisons of one verdict that are told of one by one."""
LEVELS = 4
"""Most levels of the other factor that are told of one by one."""

LEAST = 0.005
"""Share of the entropy of the uniform mix below which a difference of entropies is not worth a word."""


@dataclass(frozen=True)
class Info:
    """means: arm -> its mean score over the `shared` seeds that all arms have; examples: that they are of.

    trivial: a trivial model's score on the same split

    entropy: level of the first factor -> mean entropy (nats) of its core arms; most: of a uniform mix of its layers.

    score: what scores are called ("test accuracy"); own: the answers of the parts that are the study's own
    """

    claims: tuple[Claim, ...]
    contrasts: tuple[Claim, ...]
    plan: Plan
    best: BestSet
    pace: Pace
    entropy: tuple[tuple[str, float], ...]
    score: str
    seeds: int
    means: dict[str, float]
    shared: int
    examples: int
    trivial: float | None
    own: tuple[str, ...]
    most: float


def info(evidence: Evidence) -> Info:
    dataset = evidence.loaded.study.environment.dataset
    scores = {arm: of_arm for arm, of_arm in evidence.scores.items() if len(of_arm)}
    seeds = set.intersection(*({*of_arm.index} for of_arm in scores.values())) if scores else set()
    means = {arm: float(of_arm.loc[sorted(seeds)].mean()) for arm, of_arm in scores.items()} if seeds else {}
    shared = len(seeds)
    return Info(
        claims=tuple(evidence.claims),
        contrasts=tuple(evidence.contrasts),
        plan=evidence.plan,
        best=evidence.best_set,
        pace=evidence.pace,
        entropy=_entropy(evidence),
        score=f"{evidence.split_name} {short(evidence.plan.metric)}",
        seeds=max((claim.n for claim in evidence.claims), default=0),
        means=means,
        shared=shared,
        examples=dataset.examples.get({"val": "validation"}.get(evidence.split, evidence.split), 0),
        trivial=dataset.baseline.get(evidence.split),
        own=tuple(_own(evidence)),
        most=math.log(len(evidence.plan.hidden_states)) if evidence.plan.hidden_states else 0.0,
    )


def section(info: Info) -> list[str]:
    if not info.claims:
        return ["**There is no answer yet**: nothing could be compared with a control."]
    if not info.seeds:
        return [
            "**There is no answer yet**: a comparison needs seeds that all its arms have completed, and an analysis "
            "is made after whole blocks of seeds.",
            listed(info.own) if info.own else "",
        ]
    points = [*info.own, *_quality(info), *_mix(info), *_speed(info), *_advice(info)]
    return [listed(points)]


def _own(evidence: Evidence) -> Iterator[str]:
    """Yield what the parts that a study names answer to its question."""
    for name in own_parts(evidence):
        part = importlib.import_module(f"reports.parts.{name}").PART
        if (shown := part.info(evidence)) is not None:
            yield from part.answer(shown)


def _quality(info: Info) -> list[str]:
    plan = info.plan
    primary = [claim for claim in info.claims if claim.primary]
    decided = sum(claim.decided for claim in primary)
    points = [
        f"**Quality** ({info.score}{_examples(info)}): {_range(info)}{decided} of "
        f"{count(len(primary), 'primary comparison')} {'is' if decided == 1 else 'are'} decided{_identical(primary)}"
        f"{_ending(info)}."
    ]
    for factor in plan.factors:
        effects = [claim for claim in primary if claim.kind == "factor" and _changes(claim, factor.name)]
        over = [averaged_over(claim, plan) for claim in effects]
        for factors in dict.fromkeys(over):
            found = [claim for claim, of_claim in zip(effects, over, strict=True) if of_claim == factors]
            names = several(escape(factor_name(other)) for other in factors)
            averaged = f", averaged over {names}" if factors else ""
            points.append(f"**{escape(factor_name(factor))}**{averaged}: {_verdicts(found, plan)}")
    points += _depends(info)
    arms = [claim for claim in primary if claim.kind != "factor"]
    if against := [claim for claim in arms if claim.control == plan.control]:
        points.append(f"**Against the control** ({_control(plan)}): {_verdicts(against, plan)}")
    if pairs := [claim for claim in arms if claim.control != plan.control]:
        points.append(f"**Other pairs**: {_verdicts(pairs, plan)}")
    return points


def _identical(primary: Sequence[Claim]) -> str:
    """Return how many are decided by the same predictions throughout, which no reader takes for a finding."""
    same = sum(claim.tie for claim in primary)
    return f", {same} of them by predictions that are all the same" if same else ""


def _examples(info: Info) -> str:
    return f", {info.examples:,} examples" if info.examples else ""


def _range(info: Info) -> str:
    """Return the lowest and the highest mean, the control's, and what a trivial model scores."""
    if len(info.means) < 2:
        return ""
    (low, worst), *_, (high, best) = sorted((mean, arm) for arm, mean in info.means.items())
    control = info.means.get(info.plan.control)
    known = "" if control is None else f"; the control has {number(control)}"
    trivial = "" if info.trivial is None else f", a trivial model {number(info.trivial)}"
    over = f"means over {count(info.shared, 'common seed')} run"
    return f"{over} from {number(low)} ({code(worst)}) to {number(high)} ({code(best)}){known}{trivial}. "


def _ending(info: Info) -> str:
    """Return after how many seeds: "after 6 to 20 seeds"."""
    sizes = sorted({claim.n for claim in info.claims if claim.primary and claim.n})
    if not sizes:
        return ""
    span = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    return f", after {span} paired {'seed' if sizes == [1] else 'seeds'}"


def _control(plan: Plan) -> str:
    arm = next((arm for arm in plan.arms if arm.name == plan.control), None)
    config = arm.config if arm and arm.role == "core" else {}
    known = {factor: level(config.get(factor.name)) for factor in plan.factors}
    parts = [f"{factor_name(factor)} = {level_name(of)}" for factor, of in known.items() if of is not None]
    return escape(", ".join(parts)) if parts else code(plan.control)


def _verdicts(claims: Sequence[Claim], plan: Plan) -> str:
    """Return what was found of comparisons of one kind, the decided first."""
    parts = []
    for verdict in (BETTER, WORSE):
        found = sorted(
            (claim for claim in claims if claim.verdict == verdict),
            key=lambda claim: -abs(claim.difference or 0),
        )
        parts += [
            f"{named(claim, plan)} is **{verdict}** by {_size(claim)}{_beyond(claim)}"
            for claim in found[:TOLD]
        ]
        if len(found) > TOLD:
            parts.append(f"{len(found) - TOLD} more are **{verdict}**")
    same = [claim for claim in claims if claim.verdict == SAME]
    ties = [claim for claim in same if claim.tie]
    if ties:
        parts.append(f"{_all(ties, plan)}: **identical predictions**")
    if rest := [claim for claim in same if not claim.tie]:
        parts.append(f"{_all(rest, plan)}: **no difference** larger than {plan.smallest_effect:g}")
    if undecided := [claim for claim in claims if claim.verdict == OPEN]:
        seen = several([f"{named(one, plan)} ({_open(one, undecided)}{_large(one)})" for one in undecided], 8)
        parts.append(f"**not enough evidence** on {seen}")
    return f"{'; '.join(parts)}."


def _beyond(claim: Claim) -> str:
    """Say that a verdict does not hold beyond the examples that were drawn."""
    low, high = claim.examples_low, claim.examples_high
    here = low is not None and high is not None and low <= 0 <= high
    return " (on these examples; not shown for others)" if here else ""


def _large(claim: Claim) -> str:
    """Say that a difference that is not decided is large next to its spread over seeds."""
    large = claim.n > 1 and claim.sd and abs(claim.difference or 0.0) > NOTABLE_EFFECT_SD * claim.sd
    return f", over {NOTABLE_EFFECT_SD} times its spread" if large else ""


def _open(claim: Claim, undecided: Sequence[Claim]) -> str:
    """Return a difference that is not decided, with its interval where few are."""
    seen = number(claim.difference, signed=True)
    if claim.low is None or claim.high is None or len(undecided) > FEW:
        return seen
    return f"{seen} {interval(claim.low, claim.high, signed=True)}"


def _all(claims: Sequence[Claim], plan: Plan) -> str:
    """Return names in one phrase: "α = 8 and 64 instead of 1" where they share a reference."""
    changes = [claim.changes[0] for claim in claims if claim.kind == "factor"]
    if len(changes) == len(claims) > 1 and len({(one.factor, one.reference) for one in changes}) == 1:
        several_levels = several([escape(level_text(change.level)) for change in changes], 6)
        reference = escape(level_text(changes[0].reference))
        return f"{escape(plan.symbol(changes[0].factor))} = {several_levels} instead of {reference}"
    return several([named(claim, plan) for claim in claims], 6)


def _size(claim: Claim, digits: int = 3) -> str:
    if claim.difference is None or claim.low is None or claim.high is None:
        return number(None)
    ends = sorted((abs(claim.low), abs(claim.high)))
    return f"{number(abs(claim.difference), digits)} {interval(ends[0], ends[1], digits)}"


def _depends(info: Info) -> list[str]:
    """Return how far averages over another factor can be trusted: what the interactions say, level by level."""
    found = [claim for claim in info.claims if claim.kind == "interaction"]
    if not found or all(claim.verdict == SAME for claim in found):
        return []
    names = [
        escape(factor_name(factor))
        for factor in info.plan.factors
        if any(_changes(claim, factor.name) for claim in found)
    ]
    proven = any(claim.verdict in (BETTER, WORSE) for claim in found)
    if not proven:
        return [
            f"Whether the effects of {several(names)} depend on each other is open: no interaction is decided."
            f"{_ties(info)}"
        ]
    start = f"The effects of {several(names)} **depend** on each other"
    # Those of the first factor: at the levels of the first, the others say the same once more.
    simple = [
        claim
        for claim in info.claims
        if claim.kind == "simple" and claim.decided and _changes(claim, info.plan.factors[0].name)
    ]
    parts = []
    for at in dict.fromkeys(where(claim, info.plan) for claim in simple):
        here = [replace(claim, at=None) for claim in simple if where(claim, info.plan) == at]
        parts.append(f"at {escape(at)}, {_verdicts(here, info.plan).rstrip('.')}")
    if not parts:
        return [f"{start}: no level by itself is decided."]
    more = f"; {len(parts) - LEVELS} more levels in the details" if len(parts) > LEVELS else ""
    return [f"{start}. Level by level: {'; '.join(parts[:LEVELS])}{more}."]


def _ties(info: Info) -> str:
    """Return at which levels of one factor another one changes no prediction at all."""
    simple = [claim for claim in info.claims if claim.kind == "simple"]
    found = []
    for at, factor in dict.fromkeys((claim.at, claim.changes[0].factor) for claim in simple):
        same = [claim for claim in simple if claim.at == at and _changes(claim, factor)]
        if all(claim.tie for claim in same):
            found.append(f"at {escape(where(same[0], info.plan))}, {escape(info.plan.symbol(factor))}")
    told = "; ".join(found)
    return f" {told[0].upper()}{told[1:]}: **identical predictions**." if found else ""


def _changes(claim: Claim, factor: str) -> bool:
    return any(change.factor == factor for change in claim.changes)


def _entropy(evidence: Evidence) -> tuple[tuple[str, float], ...]:
    mix = evidence.mix_core
    if mix.empty or not evidence.plan.factors:
        return ()
    first = column(evidence.plan.factors[0].name)
    known = mix.dropna(subset=["entropy_mean"])
    of = [level(value) for value in known[first]]
    return tuple(
        (escape(level_name(value)), float(known.loc[[one == value for one in of], "entropy_mean"].mean()))
        for value in levels(known[first])
    )


def _mix(info: Info) -> list[str]:
    found = [claim for claim in info.contrasts if claim.metric == "mix/entropy" and claim.primary]
    if len(info.entropy) < 2 and (_unasked(info, found) or not found):
        return []
    text = "**The mix**:"
    if len(info.entropy) > 1:
        symbol = escape(factor_name(info.plan.factors[0]))
        means = ", ".join(f"{number(mean, 2)} at {symbol} = {of}" for of, mean in info.entropy)
        text += (
            f" the entropy of the mix weights is on average {means} (nats; 0: one layer has all the weight"
            f"{f', {number(info.most, 2)}: all layers alike' if info.most else ''})."
        )
    else:
        text += " the entropy of the mix weights, in nats."
    parts = [
        f"{named(claim, info.plan)} {'lowers' if claim.verdict == LOWER else 'raises'} it by {_size(claim)}"
        f"{_by_level(claim, info)}"
        for claim in found
        if claim.verdict in (LOWER, HIGHER) and abs(claim.difference or 0.0) >= LEAST * (info.most or 0.0)
    ]
    rest = [claim for claim in found if claim.verdict == OPEN]
    if not parts and not rest and len(info.entropy) < 2:
        return []
    if parts:
        text += f" Shown: {'; '.join(parts)}."
    if rest:
        text += f" Not enough evidence on {count(len(rest), 'comparison')}{' more' if parts else ''}."
    return [text]


def _by_level(claim: Claim, info: Info) -> str:
    """Return an averaged effect level by level, where the average is that of no level."""
    simple = [
        one
        for one in info.contrasts
        if one.kind == "simple"
        and (one.metric, one.changes) == (claim.metric, claim.changes)
        and one.difference is not None
    ]
    sizes = [one.difference for one in simple if one.difference is not None]
    # Of one sign, or next to nothing: ends of opposite signs take the table.
    sign = -1.0 if claim.verdict == LOWER else 1.0
    far = max(sizes, default=0.0) - min(sizes, default=0.0) >= abs(claim.difference or 0.0)
    if claim.kind != "factor" or not far or min(sign * size for size in sizes) < -LEAST * info.most:
        return ""
    ends = sorted(simple, key=lambda one: abs(one.difference or 0.0))
    least, most = (
        f"{number(abs(one.difference or 0.0), 2)} at {escape(where(one, info.plan))}"
        for one in (ends[0], ends[-1])
    )
    return f" ({least} to {most})"


def _unasked(info: Info, found: Sequence[Claim]) -> bool:
    """Whether a study without factors shows nothing of what it does not ask for."""
    return not info.plan.factors and all(claim.verdict not in (LOWER, HIGHER) for claim in found)


def _speed(info: Info) -> list[str]:
    if not info.pace.known:
        return []
    if info.pace.saturated:
        return [f"**Speed**: {info.pace.sentence()}"]
    found = [claim for claim in info.contrasts if claim.metric == "convergence_step" and claim.primary]
    parts = [
        f"{named(claim, info.plan)} needs {'fewer' if claim.verdict == LOWER else 'more'} steps, by {_size(claim, 0)}"
        for claim in found
        if claim.verdict in (LOWER, HIGHER)
    ]
    if _unasked(info, found):
        return []
    said = f"{'; '.join(parts)}." if parts else "no comparison is decided."
    return [f"**Speed** (steps to 95% of a trial's own gain): {said}"]


def _advice(info: Info) -> list[str]:
    best, every = info.best, len(info.best.arms) + len(info.best.excluded)
    if not best.arms or every < 2:
        return []
    if len(best.arms) == 1:
        return [
            f"**Advice**: use {code(best.arms[0])}; all {every - 1} others are ruled out as the best (95%, after Hsu)."
        ]
    sign = -1.0 if info.plan.mode == "min" else 1.0
    known = sorted((arm for arm in best.arms if arm in info.means), key=lambda arm: -sign * info.means[arm])
    left = f"{len(best.arms)} of {every} settings may be the best (95%, after Hsu)"
    if len(known) == len(best.arms) <= 3 and len(known) < len(best.excluded):
        return [
            f"**Advice**: {left}: {several([_with_mean(info, arm) for arm in known])}. The others are ruled out."
        ]
    mean = ""
    if known:
        told = best.saves and best.cheapest in info.means
        cheap = f"; {_with_mean(info, best.cheapest)} trains fewer parameters" if told else ""
        mean = f"; {code(known[0])} has the best mean ({number(info.means[known[0]])}){cheap}"
    if not best.excluded:
        return [f"**Advice**: none of the {every} settings is ruled out as the best (95%, after Hsu){mean}."]
    out = several([code(one.arm) for one in best.excluded], 6)
    return [f"**Advice**: {left}{mean}. Ruled out: {out}."]


def _with_mean(info: Info, arm: str) -> str:
    return f"{code(arm)} (mean {number(info.means[arm])})"


PART = Part("Answer", info, section)
