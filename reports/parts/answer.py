"""The Answer: quality, mix and speed, in sentences made from the claims, each no stronger than its verdict."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from adalayers.results.study_file import Factor
from reports.evidence.claims import HIGHER, LOWER, Claim
from reports.evidence.evidence import Evidence
from reports.evidence.holm import BETTER, OPEN, SAME, WORSE
from reports.evidence.omnibus import MATTERS, Omnibus
from reports.parts.cells import averaged_over, difference, named, where
from reports.parts.part import Part, own_parts
from reports.parts.verdicts import size, verdict, verdicts
from reports.reading.factors import column, level, level_name, levels
from reports.reading.factors import short as factor_name
from reports.reading.load import Plan
from reports.tables import arms as tables
from reports.tables import mix as layer_weights
from reports.tables.convergence import Pace
from reports.words.labels import short
from reports.words.text import code, count, escape, listed, number, several, table

VERDICTS = (BETTER, WORSE, SAME, OPEN)
LISTED = 8
"""Most comparisons of one kind that are told of in a sentence; more are a table."""
MAX_LEVELS_NAMED = 4
"""Most levels of the other factor that are told of one by one."""

NOTABLE_ENTROPY_SHARE = 0.005
"""Share of the entropy of the uniform mix below which a difference of entropies is not worth a word."""


@dataclass(frozen=True)
class Info:
    """means: arm -> its mean score over the `shared` seeds that all arms have; examples: that they are of.

    trivial: a trivial model's score on the same split

    entropy: level of the first factor -> mean entropy (nats) of its core arms; most: of a uniform mix of its layers.

    score: what scores are called ("test accuracy"); own: the answers of the parts that are the study's own

    nothing: the arms that learned nothing
    """

    claims: tuple[Claim, ...]
    contrasts: tuple[Claim, ...]
    wholes: tuple[Omnibus, ...]
    plan: Plan
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
    nothing: frozenset[str]


def info(evidence: Evidence) -> Info:
    dataset = evidence.loaded.study.environment.dataset
    scores = evidence.scores
    seeds = sorted(set.intersection(*map(set, scores.values()))) if scores else []
    means = (
        {arm: float(np.mean([of_arm[seed] for seed in seeds])) for arm, of_arm in scores.items()}
        if seeds
        else {}
    )
    shared = len(seeds)
    return Info(
        claims=tuple(evidence.claims),
        contrasts=tuple(evidence.contrasts),
        wholes=tuple(evidence.omnibus),
        plan=evidence.plan,
        pace=evidence.pace,
        entropy=_entropy(evidence),
        score=f"{evidence.split_name} {short(evidence.plan.metric)}",
        seeds=max((claim.n for claim in evidence.claims), default=0),
        means=means,
        shared=shared,
        examples=dataset.examples.get(evidence.split_name, 0),
        trivial=dataset.baseline.get(evidence.split),
        own=tuple(_own(evidence)),
        most=_uniform_entropy(evidence),
        nothing=frozenset(evidence.learned_nothing),
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
    points = [*info.own, *_quality(info), *_mix(info), *_speed(info)]
    return [listed(points), *_tables(info)]


def _own(evidence: Evidence) -> Iterator[str]:
    """Yield what the parts that a study names answer to its question."""
    for name in own_parts(evidence):
        part = importlib.import_module(f".{name}", __package__).PART
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
    groups = _groups(info)
    points += [
        f"{title}: {_told(claims, plan)}" for title, claims in groups.items() if claims[0].kind == "factor"
    ]
    points += _depends(info)
    return points + [
        f"{title}: {_told(claims, plan)}" for title, claims in groups.items() if claims[0].kind != "factor"
    ]


def _groups(info: Info) -> dict[str, list[Claim]]:
    """Return the primary claims that are told of together: those of a factor averaged alike, and those of arms."""
    plan, groups = info.plan, dict[str, list[Claim]]()
    for claim in (claim for claim in info.claims if claim.primary):
        if claim.kind == "factor":
            over = several(escape(factor_name(other)) for other in averaged_over(claim, plan))
            changed = next((factor for factor in plan.factors if _changes(claim, factor.name)), None)
            name = escape(factor_name(changed)) if changed else code(claim.arm)
            title = f"**{name}**, averaged over {over}" if over else f"**{name}**"
        elif claim.control == plan.control:
            title = f"**Against the control** ({code(plan.control)})"
        else:
            title = "**Other pairs**"
        groups.setdefault(title, []).append(claim)
    return {f"{title}{_untrained(claims, info)}": claims for title, claims in groups.items()}


def _untrained(claims: Sequence[Claim], info: Info) -> str:
    """Say how many of the arms that an average is over learned nothing, and so pull it to 0."""
    averaged = {arm for claim in claims if claim.kind == "factor" for arm in claim.arms}
    nothing = len(averaged & info.nothing)
    return f" ({nothing} of {count(len(averaged), 'setting')} learned nothing)" if nothing else ""


def _told(claims: Sequence[Claim], plan: Plan) -> str:
    """Return what was found of comparisons of one kind; of many, how many there are of each verdict."""
    if len(claims) <= LISTED:
        return verdicts(claims, plan)
    given = [claim.shown for claim in claims]
    counts = [f"{given.count(verdict)} **{verdict}**" for verdict in VERDICTS if verdict in given]
    return f"{', '.join(counts)}; the table below has each."


def _tables(info: Info) -> list[str]:
    """Return a table for each group that is too many for a sentence, the decided first."""
    heads = ["comparison", "difference [at the level of its test]", "verdict"]
    tables = []
    for title, claims in _groups(info).items():
        if len(claims) > LISTED:
            ordered = sorted(
                claims, key=lambda claim: (VERDICTS.index(claim.shown), -abs(claim.difference or 0.0))
            )
            rows = [[named(claim, info.plan), difference(claim), verdict(claim)] for claim in ordered]
            tables += [f"{title}:", table(heads, rows)]
    return tables


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
    control_mean = info.means.get(info.plan.control)
    control = "" if control_mean is None else f"; the control has {number(control_mean)}"
    trivial = "" if info.trivial is None else f", a trivial model {number(info.trivial)}"
    over = f"means over {count(info.shared, 'common seed')} run"
    return f"{over} from {number(low)} ({code(worst)}) to {number(high)} ({code(best)}){control}{trivial}. "


def _ending(info: Info) -> str:
    """Return after how many seeds: "after 6 to 20 seeds"."""
    sizes = sorted({claim.n for claim in info.claims if claim.primary and claim.n})
    if not sizes:
        return ""
    span = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    return f", after {span} paired {'seed' if sizes == [1] else 'seeds'}"


def _depends(info: Info) -> list[str]:
    """Return how far averages over another factor can be trusted: what the interactions say, level by level."""
    if info.wholes:
        return _wholes(info)
    interactions = [claim for claim in info.claims if claim.kind == "interaction"]
    proven = [claim for claim in interactions if claim.shown in (BETTER, WORSE)]
    known = [_of(claim) for claim in proven]
    open_ = [claim for claim in interactions if claim.shown == OPEN and _of(claim) not in known]
    told = [_level_by_level(info, _factors(info, proven))] if proven else []
    if open_:
        names = several([escape(factor_name(factor)) for factor in _factors(info, open_)])
        which = "none of these interactions is decided" if proven else "no interaction is decided"
        told.append(f"Whether the effects of {names} depend on each other is open: {which}.")
    return told


def _wholes(info: Info) -> list[str]:
    """Return which factors matter as wholes, and which depend on each other: level by level, where they do."""
    symbols = {factor.name: escape(factor_name(factor)) for factor in info.plan.factors}
    parts = [
        f"{' with '.join(symbols[name] for name in effect.factors)}: {_whole(effect)}"
        for effect in info.wholes
    ]
    told = [
        f"**Factors as wholes** (permutation within {info.wholes[0].n} seeds; *with*: whether they depend on each "
        f"other): {'; '.join(parts)}."
    ]
    for effect in info.wholes:
        if len(effect.factors) == 2 and effect.verdict == MATTERS:
            factors = [factor for factor in info.plan.factors if factor.name in effect.factors]
            told.append(_level_by_level(info, factors))
    return told


def _whole(effect: Omnibus) -> str:
    p_value = f"p = {effect.p_value:.2g}"
    return p_value if effect.verdict is None else f"**{effect.verdict}** ({p_value})"


def _of(claim: Claim) -> set[str]:
    return {change.factor for change in claim.changes}


def _factors(info: Info, interactions: Sequence[Claim]) -> list[Factor]:
    """Return the factors that interactions are of."""
    return [
        factor for factor in info.plan.factors if any(_changes(claim, factor.name) for claim in interactions)
    ]


def _level_by_level(info: Info, factors: Sequence[Factor]) -> str:
    """Say that factors depend on each other, and what is decided at each level."""
    names = several([escape(factor_name(factor)) for factor in factors])
    start = f"The effects of {names} **depend** on each other"
    # Those of the first factor: at the levels of the first, the others say the same once more.
    simple = [
        claim
        for claim in info.claims
        if claim.kind == "simple" and claim.decided and _changes(claim, factors[0].name)
    ]
    parts = []
    for condition in dict.fromkeys(where(claim, info.plan) for claim in simple):
        here = [replace(claim, at=None) for claim in simple if where(claim, info.plan) == condition]
        parts.append(f"at {escape(condition)}, {verdicts(here, info.plan).rstrip('.')}")
    if not parts:
        return f"{start}: no level by itself is decided."
    more = (
        f"; {len(parts) - MAX_LEVELS_NAMED} more levels in the details"
        if len(parts) > MAX_LEVELS_NAMED
        else ""
    )
    return f"{start}. Level by level: {'; '.join(parts[:MAX_LEVELS_NAMED])}{more}."


def _changes(claim: Claim, factor: str) -> bool:
    return any(change.factor == factor for change in claim.changes)


def _uniform_entropy(evidence: Evidence) -> float:
    """Return the entropy of the uniform mix; 0 where arms mix different numbers of states, or nobody says how many."""
    counts = set(layer_weights.counts(tables.confirmed(evidence.trials), evidence.history))
    states = counts or {len(evidence.plan.hidden_states)}
    return math.log(max(1, *states)) if len(states) == 1 else 0.0


def _entropy(evidence: Evidence) -> tuple[tuple[str, float], ...]:
    mix = evidence.mix_core
    if mix.empty or not evidence.plan.factors:
        return ()
    first = column(evidence.plan.factors[0].name)
    rows = mix.dropna(subset=["entropy_mean"])
    rows = rows.assign(level=rows[first].map(level))
    return tuple(
        (escape(level_name(value)), float(rows.loc[rows["level"] == value, "entropy_mean"].mean()))
        for value in levels(rows[first])
    )


def _mix(info: Info) -> list[str]:
    """Return the entropy of the mix by level of the first factor, and what moves it."""
    compared = [claim for claim in info.contrasts if claim.metric == "mix/entropy" and claim.primary]
    parts = [
        f"{named(claim, info.plan)} {'lowers' if claim.verdict == LOWER else 'raises'} it by {size(claim)}"
        for claim in compared
        if claim.verdict in (LOWER, HIGHER)
        and abs(claim.difference or 0.0) >= NOTABLE_ENTROPY_SHARE * info.most
    ]
    undecided = sum(claim.verdict == OPEN for claim in compared)
    if len(info.entropy) > 1:
        symbol = escape(factor_name(info.plan.factors[0]))
        means = [f"{number(mean, 2)} at {symbol} = {level_name}" for level_name, mean in info.entropy]
        parts.insert(0, f"on average {', '.join(means)}")
    if undecided and info.plan.factors:
        parts.append(f"not enough evidence on {count(undecided, 'comparison')}")
    uniform = f", {number(info.most, 2)}: all layers alike" if info.most else ""
    scale = f"entropy of its weights in nats; 0: one layer has all the weight{uniform}"
    return [f"**The mix** ({scale}): {'; '.join(parts)}."] if parts else []


def _speed(info: Info) -> list[str]:
    if not info.pace.trials and not (info.pace.without and info.plan.factors):
        return []
    if info.pace.saturated:
        return [f"**Speed**: {info.pace.sentence()}"]
    parts = [
        f"{named(claim, info.plan)} needs {'fewer' if claim.verdict == LOWER else 'more'} steps, by {size(claim, 0)}"
        for claim in info.contrasts
        if claim.metric == "convergence_step" and claim.primary and claim.verdict in (LOWER, HIGHER)
    ]
    if not parts and not info.plan.factors:
        return []
    return [
        "**Speed** (steps to a score that both sides reach in all trials): "
        f"{several(parts, 3) or 'no comparison is decided'}."
    ]


PART = Part("Answer", info, section)
