"""What holds over the cases of a study: answer first, then every comparison across them. A part of the cover."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from adalayers.results.interim_analyses import EXTENSIONS, PLANNED
from reports.evidence.across import DIFFERENCE, MEAN, SCORE, Across, AcrossClaim
from reports.evidence.holm import BETTER, OPEN, SAME, WORSE
from reports.parts.cells import difference, named
from reports.parts.verdicts import EFFECTS, size, verdicts
from reports.reading.load import Plan
from reports.words.labels import SPLITS, short
from reports.words.text import NONE, code, count, escape, folded, listed, number, several, table

TITLES = {
    MEAN: "Effects, averaged over cases",
    DIFFERENCE: "Effects, compared between cases",
    SCORE: "Scores of backbones on the same data",
}


def section(result: Across) -> list[str]:
    """Return the paragraphs; empty where there is one case alone."""
    if len(result.cases) + len(result.left_out) < 2:
        return []
    paragraphs = [*_untrained(result), *_answer(result), *_left_out(result)]
    if result.claims:
        paragraphs += [_how(result), _table(result)]
    return paragraphs


def _untrained(result: Across) -> list[str]:
    cases = [code(case.name) for case in result.cases if case.plan.control in case.evidence.learned_nothing]
    if not cases:
        return []
    return [
        f"**The control learned nothing in {several(cases)}**: averages and effects with it say which arm was "
        "trained, not which is better."
    ]


def _answer(result: Across) -> list[str]:
    if not result.claims:
        return [
            "**No claims across these cases**: effects are compared between cases of one metric, scores between "
            "backbones on the same data, and no two cases share these."
        ]
    if not any(contrast.n for contrast in result.claims):
        return [
            "**There is no answer yet**: a comparison needs seeds that all its cases have completed, and an analysis "
            "is made once they have their seeds."
        ]
    return [listed([*_scores(result), *_means(result), *_differences(result)])]


def _scores(result: Across) -> list[str]:
    """Say which backbone scores better, by the control, then how other arms agree."""
    lines = []
    for case, claims in _by_case(result, SCORE):
        first, *others = claims
        reference = code(first.reference)
        line = f"**{code(case)} against {reference}** ({_score(first)}), with {_arm(result, first)}: {_told(first)}"
        if others:
            line += f". With the other arms: {_counted(others)}"
        lines.append(f"{line}.")
    return lines


def _means(result: Across) -> list[str]:
    claims = [contrast for contrast in result.claims if contrast.what == MEAN]
    lines = []
    for cases in dict.fromkeys(contrast.cases for contrast in claims):
        shared = [contrast for contrast in claims if contrast.cases == cases]
        told = verdicts(shared, _plan(result, shared[0]))
        lines.append(f"**On average over {several(map(code, cases), 6)}** ({_score(shared[0])}): {told}")
    return lines


def _differences(result: Across) -> list[str]:
    """Say where an effect depends on the case."""
    return [
        f"**Effects in {code(case)} minus those in {code(claims[0].reference)}**: "
        f"{verdicts(claims, _plan(result, claims[0]), EFFECTS)}"
        for case, claims in _by_case(result, DIFFERENCE)
    ]


def _by_case(result: Across, what: str) -> Iterable[tuple[str, list[AcrossClaim]]]:
    claims = [contrast for contrast in result.claims if contrast.what == what]
    for case in dict.fromkeys(contrast.case for contrast in claims):
        yield case, [contrast for contrast in claims if contrast.case == case]


def _arm(result: Across, contrast: AcrossClaim) -> str:
    plan = next((case.plan for case in result.cases if case.name == contrast.case), None)
    return (
        f"the control ({code(contrast.arm)})" if plan and plan.control == contrast.arm else code(contrast.arm)
    )


def _plan(result: Across, contrast: AcrossClaim) -> Plan:
    return next(case.plan for case in result.cases if case.name == contrast.cases[0])


def _score(contrast: AcrossClaim) -> str:
    return f"{SPLITS[contrast.split]} {escape(short(contrast.metric))}"


def _told(contrast: AcrossClaim) -> str:
    """Return a verdict with its size: "**better** by 0.12 [0.08, 0.16]"."""
    claim = contrast
    if claim.shown in (BETTER, WORSE):
        return f"**{claim.shown}** by {size(contrast)}"
    if claim.tie:
        return "**identical predictions**"
    if claim.shown == SAME:
        return f"**no difference** ({number(claim.difference, signed=True)})"
    return f"**not enough evidence** ({number(claim.difference, signed=True)})"


def _counted(claims: Sequence[AcrossClaim]) -> str:
    given = [contrast.shown for contrast in claims]
    return ", ".join(f"{given.count(kind)} {kind}" for kind in (BETTER, WORSE, SAME, OPEN) if kind in given)


def _left_out(result: Across) -> list[str]:
    if not result.left_out:
        return []
    told = "; ".join(f"{code(name)} ({escape(why)})" for name, why in result.left_out)
    return [f"Not compared with the others, for it was run with other flags: {told}."]


def _how(result: Across) -> str:
    claims = result.claims
    primary = sum(contrast.primary for contrast in claims)
    pairs = sorted({contrast.n for contrast in claims if contrast.n})
    span = f"{pairs[0]}" if pairs[:1] == pairs[-1:] else f"{pairs[0]} to {pairs[-1]}" if pairs else "no"
    many = len(result.cases) + 1
    return (
        f"Averages are paired by seed. Two cases are compared with all seeds that each has, not paired, as if the "
        f"seeds of the two were independent (n, {span} here, is of the case with fewer). "
        f"{count(len(claims), 'comparison')} across cases, {primary} of them primary (averages, and the control's "
        f"score), are one family, judged once, as the cases stand (Holm, {PLANNED:.0%}); the others have intervals "
        f"that hold together with {1 - PLANNED:.0%}. Each case's page has an error of 5% of its own: a false claim on "
        f"any of these {many} pages is up to {many * (PLANNED + EXTENSIONS):.0%} likely. Claims are about these cases "
        "and these test examples: other backbones or data may differ."
    )


def _table(result: Across) -> str:
    rows = []
    for what in TITLES:
        rows += [
            [
                TITLES[what],
                f"{code(contrast.arm)} in both"
                if what == SCORE and contrast.arm == contrast.control
                else f"{code(contrast.arm)} and {code(contrast.control)}"
                if what == SCORE
                else named(contrast, _plan(result, contrast)),
                several(map(code, contrast.cases), 12)
                if what == MEAN
                else f"{code(contrast.case)} minus {code(contrast.reference)}",
                "identical predictions" if contrast.tie else difference(contrast),
                contrast.verdict or NONE,
            ]
            for contrast in result.claims
            if contrast.what == what
        ]
    heads = ["comparison", "of", "cases", "difference [interval]", "verdict"]
    return folded("Every comparison across cases", len(rows), table(heads, rows))
