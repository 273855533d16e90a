"""What each interim analysis covered, the alpha it spent, and what it decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median_low

from reports.evidence.analyses import Analysis, changed
from reports.evidence.claims import BETTER, WORSE, Claim
from reports.evidence.evidence import Evidence
from reports.evidence.statistics import LEVEL, analysis_alpha, analysis_cost, comparison_alpha
from reports.parts.part import Part
from reports.words.text import NONE, code, count, escape, several, table


@dataclass(frozen=True)
class Info:
    """number: of this analysis; analyses: all of them, this one last; empty where they cannot be worked out again."""

    claims: tuple[Claim, ...]
    number: int
    analyses: tuple[Analysis, ...]


def info(evidence: Evidence) -> Info:
    return Info(tuple(evidence.claims), evidence.plan.looks, tuple(evidence.analyses))


def section(info: Info) -> list[str]:
    claims = info.claims
    m = claims[0].comparisons if claims else 0
    if not m:
        return ["Nothing was compared, so there was no analysis."]
    n = median_low(claim.n for claim in claims)
    cost = (
        f": {analysis_cost(info.number, m, n):.2f} times that of a single analysis at n = {n}"
        if n > 1
        else ""
    )
    paragraphs = [
        f"This is interim analysis {info.number} of the confirmed trials: a run of the study after which new "
        "confirmed trials could be read; rebuilding this page from the same files shows nothing new and is "
        f"none. Every further analysis gives chance another try, so analysis j spends only 5% / 2^j of alpha: "
        f"this one {analysis_alpha(info.number):.3%}, shared by {count(m, 'comparison')}, so each interval of a "
        f"difference is one of {1 - comparison_alpha(info.number, m):.4%}. All analyses together, however many "
        f"follow, then hold with {LEVEL:.0%}. The price is width{cost}; the seeds needed, under Limits, count it in.",
    ]
    if info.number > 1 and not info.analyses:
        paragraphs.append(
            "`study.json` does not say which seeds each analysis covered, so what earlier ones decided cannot be "
            "worked out again."
        )
    if info.analyses:
        heads = [
            "analysis",
            "ended",
            "seeds per arm",
            "alpha spent",
            "called better or worse",
            "holds no longer",
        ]
        paragraphs.append(table(heads, [_row(one, claims) for one in info.analyses]))
    gone = sorted({arm for one in info.analyses for arm in changed(one, claims)})
    if gone:
        paragraphs.append(
            f"**A claim of an earlier interim analysis no longer holds**: {several(map(code, gone))}. The verdict "
            "on this page is that of this analysis."
        )
    return paragraphs


def _row(analysis: Analysis, now: Sequence[Claim]) -> list[str]:
    then = [
        f"{code(claim.arm)} {claim.verdict}"
        for claim in analysis.claims or ()
        if claim.verdict in (BETTER, WORSE)
    ]
    sizes = sorted({len(seeds) for seeds in (analysis.seeds or {}).values()})
    seeds = " to ".join(str(size) for size in sorted({sizes[0], sizes[-1]})) if sizes else NONE
    known = analysis.claims is not None
    return [
        str(analysis.number),
        escape(analysis.ended) or NONE,
        seeds,
        f"{analysis_alpha(analysis.number):.3%}",
        (several(then) or "none") if known else "not known",
        (several([code(arm) for arm in changed(analysis, now)]) or "none") if known else "not known",
    ]


PART = Part("Interim analyses", info, section)
