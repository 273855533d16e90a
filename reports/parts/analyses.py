"""What each analysis covered, the error it had, and what it decided."""

from __future__ import annotations

from dataclasses import dataclass

from adalayers.comparisons import FIRST
from adalayers.results.interim_analyses import EXTENSIONS, InterimAnalysis
from reports.evidence.claims import Claim
from reports.evidence.evidence import Evidence
from reports.parts.cells import named
from reports.parts.part import Part
from reports.reading.load import Plan
from reports.words.text import several, table


@dataclass(frozen=True)
class Info:
    """error: of all planned analyses."""

    claims: tuple[Claim, ...]
    analyses: tuple[InterimAnalysis, ...]
    plan: Plan
    error: float


def info(evidence: Evidence) -> Info:
    return Info(tuple(evidence.claims), tuple(evidence.analyses), evidence.plan, evidence.error)


def section(info: Info) -> list[str]:
    if not info.claims:
        return ["Nothing was compared, so there was no analysis."]
    if not info.analyses:
        return [f"There was no analysis yet: it takes {FIRST} seeds, and all that are planned before it."]
    return [
        "Primary comparisons are judged once, as the seeds first planned have run, or up to three times "
        "(`--until-decided`); rebuilding this page does not count. Every analysis gives chance another try, so they "
        f"share the error: {info.error:.0%} among those planned, {EXTENSIONS:.0%} kept for what goes beyond them. What "
        "is decided once keeps its claim.",
        table(
            ["analysis", "seeds", "error", "decided here"],
            [_row(number, analysis, info) for number, analysis in enumerate(info.analyses, 1)],
        ),
    ]


def _row(number: int, analysis: InterimAnalysis, info: Info) -> list[str]:
    here = [
        named(claim, info.plan)
        for claim in info.claims
        if claim.primary and claim.analyses == number and claim.decided
    ]
    beyond = " (extension)" if analysis.extension else ""
    decided = several(here, 6) if here else "nothing"
    return [str(number), f"{analysis.after}{beyond}", f"{analysis.level:.2%}", decided]


PART = Part("Analyses", info, section)
