"""Every comparison with its intervals: of scores, of convergence and entropy, and what each analysis decided."""

from __future__ import annotations

from collections.abc import Sequence

from reports.cells import difference, ends
from reports.evidence.claims import Claim
from reports.evidence.evidence import Evidence
from reports.names import compared
from reports.section import Section, Table
from reports.words.labels import SPLITS, short
from reports.words.text import NONE

KINDS = {
    "factor": "Levels of a factor, averaged over what else their arms differ in",
    "arm": "Arms against the control, or another",
    "simple": "Levels of a factor at one level of another",
    "interaction": "Interactions: how far two factors together differ from the sum of both",
}


def frames(evidence: Evidence) -> Evidence | None:
    return evidence if evidence.claims else None


def tables(evidence: Evidence) -> Sequence[Table]:
    out = []
    heads = ["comparison", "planned as primary", "difference [over seeds]"]
    heads += [f"[over seeds and {SPLITS[evidence.split]} examples]", "verdict"]
    for kind, title in KINDS.items():
        rows = [_row(claim, evidence) for claim in evidence.claims if claim.kind == kind]
        if rows:
            out.append(Table(heads, rows, f"{title}."))
    for metric in dict.fromkeys(claim.metric for claim in evidence.contrasts):
        digits = 0 if metric == "convergence_step" else 3
        contrasts = [
            [compared(claim, evidence.plan), difference(claim, digits), claim.shown]
            for claim in evidence.contrasts
            if claim.metric == metric
        ]
        told = "steps to a score that both sides reach" if metric == "convergence_step" else short(metric)
        out.append(Table(["comparison", f"difference in {told} [interval]", "verdict"], contrasts))
    analyses = [
        [
            number,
            f"{analysis.after}{' (extension)' if analysis.extension else ''}",
            f"{analysis.level:.2%}",
            sum(claim.primary and claim.analyses == number and claim.decided for claim in evidence.claims),
        ]
        for number, analysis in enumerate(evidence.analyses, 1)
    ]
    if analyses:
        out.append(Table(["analysis", "seeds", "error", "comparisons decided here"], analyses))
    return out


def _row(claim: Claim, evidence: Evidence) -> list[object]:
    return [
        compared(claim, evidence.plan),
        "yes" if claim.primary else "no",
        difference(claim),
        ends(claim.examples_low, claim.examples_high, signed=True),
        claim.verdict or NONE,
    ]


SECTION = Section("Planned comparisons", frames, tables)
