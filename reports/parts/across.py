"""What holds over the cases of a study: answer first, then every comparison across them. A part of the cover."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reports.evidence.across import DIFFERENCE, MEAN, SCORE, Across, AcrossClaim
from reports.evidence.claims import BETTER, OPEN, SAME, WORSE
from reports.evidence.spending import PLANNED, RESERVE
from reports.parts.cells import difference, named
from reports.parts.verdicts import size, verdicts
from reports.reading.load import Plan
from reports.words.labels import SPLITS, short
from reports.words.text import code, count, escape, folded, listed, number, several, table

TITLES = {
    MEAN: "Effects, averaged over cases",
    DIFFERENCE: "Effects, compared between cases",
    SCORE: "Scores of backbones on the same data",
}


def section(found: Across) -> list[str]:
    """Return the paragraphs; empty where there is one case alone."""
    if len(found.cases) + len(found.left_out) < 2:
        return []
    paragraphs = [*_answer(found), *_left_out(found)]
    if found.claims:
        paragraphs += [_how(found), _table(found)]
    return paragraphs


def _answer(found: Across) -> list[str]:
    if not found.claims:
        return [
            "**No claims across these cases**: effects are compared between cases of one metric, scores between "
            "backbones on the same data, and no two cases share these."
        ]
    if not any(one.claim.n for one in found.claims):
        return [
            "**There is no answer yet**: a comparison needs seeds that all its cases have completed, and an analysis "
            "is made after whole blocks of seeds."
        ]
    return [listed([*_scores(found), *_means(found), *_differences(found)])]


def _scores(found: Across) -> list[str]:
    """Say which backbone scores better, by the control, then how other arms agree."""
    lines = []
    for case, claims in _by_case(found, SCORE):
        first, *others = claims
        reference = code(first.reference)
        line = f"**{code(case)} against {reference}** ({_score(first)}), with {_arm(found, first)}: {_told(first)}"
        if others:
            line += f". With the other arms: {_counted(others)}"
        lines.append(f"{line}.")
    return lines


def _means(found: Across) -> list[str]:
    claims = [one for one in found.claims if one.what == MEAN]
    lines = []
    for cases in dict.fromkeys(one.cases for one in claims):
        shared = [one for one in claims if one.cases == cases]
        told = verdicts([one.claim for one in shared], _plan(found, shared[0]))
        lines.append(f"**On average over {several(map(code, cases), 6)}** ({_score(shared[0])}): {told}")
    return lines


def _differences(found: Across) -> list[str]:
    """Say where an effect depends on the case."""
    return [
        f"**Effects in {code(case)} minus those in {code(claims[0].reference)}**: "
        f"{verdicts([one.claim for one in claims], _plan(found, claims[0]))}"
        for case, claims in _by_case(found, DIFFERENCE)
    ]


def _by_case(found: Across, what: str) -> Iterable[tuple[str, list[AcrossClaim]]]:
    claims = [one for one in found.claims if one.what == what]
    for case in dict.fromkeys(one.case for one in claims):
        yield case, [one for one in claims if one.case == case]


def _arm(found: Across, one: AcrossClaim) -> str:
    known = next((case.plan for case in found.cases if case.name == one.case), None)
    return (
        f"the control ({code(one.claim.arm)})"
        if known and known.control == one.claim.arm
        else code(one.claim.arm)
    )


def _plan(found: Across, one: AcrossClaim) -> Plan:
    return next(case.plan for case in found.cases if case.name == one.cases[0])


def _score(one: AcrossClaim) -> str:
    return f"{SPLITS[one.claim.split]} {escape(short(one.claim.metric))}"


def _told(one: AcrossClaim) -> str:
    """Return a verdict with its size: "**better** by 0.12 [0.08, 0.16]"."""
    claim = one.claim
    if claim.verdict in (BETTER, WORSE):
        return f"**{claim.verdict}** by {size(claim)}"
    if claim.tie:
        return "**identical predictions**"
    if claim.verdict == SAME:
        return f"**no difference** ({number(claim.difference, signed=True)})"
    return f"**not enough evidence** ({number(claim.difference, signed=True)})"


def _counted(claims: Sequence[AcrossClaim]) -> str:
    verdicts = [one.claim.verdict for one in claims]
    return ", ".join(f"{verdicts.count(of)} {of}" for of in (BETTER, WORSE, SAME, OPEN) if of in verdicts)


def _left_out(found: Across) -> list[str]:
    if not found.left_out:
        return []
    told = "; ".join(f"{code(name)} ({escape(why)})" for name, why in found.left_out)
    return [f"Not compared with the others, for it was run with other flags: {told}."]


def _how(found: Across) -> str:
    claims = found.claims
    primary = sum(one.claim.primary for one in claims)
    pairs = sorted({one.claim.n for one in claims if one.claim.n})
    span = f"{pairs[0]}" if pairs[:1] == pairs[-1:] else f"{pairs[0]} to {pairs[-1]}" if pairs else "no"
    return (
        f"All cases run the same seeds, which set the order of data and the start of the head, so they are compared "
        f"seed by seed ({span} pairs). {count(len(claims), 'comparison')} across cases, {primary} of them primary "
        "(averages, and the control's score), are one family, planned before any score was seen: all their intervals, "
        f"at all analyses, hold together with {claims[0].claim.level:.0%} ({PLANNED:.0%} of error up to the seeds "
        f"first planned, {RESERVE:.0%} kept for later seeds and cases; "
        f"{count(len(found.analyses), 'analysis', 'analyses')} so far). They are about these cases, and these test "
        "examples: other backbones or data may differ."
    )


def _table(found: Across) -> str:
    rows = []
    for what in TITLES:
        rows += [
            [
                TITLES[what],
                f"{code(one.claim.arm)} in both"
                if what == SCORE and one.claim.arm == one.claim.control
                else f"{code(one.claim.arm)} and {code(one.claim.control)}"
                if what == SCORE
                else named(one.claim, _plan(found, one)),
                several(map(code, one.cases), 12)
                if what == MEAN
                else f"{code(one.case)} minus {code(one.reference)}",
                "identical predictions" if one.claim.tie else difference(one.claim),
                one.claim.verdict,
            ]
            for one in found.claims
            if one.what == what
        ]
    heads = ["comparison", "of", "cases", "difference [corrected interval]", "verdict"]
    return folded("Every comparison across cases", len(rows), table(heads, rows))
