"""What each analysis covered, the error it could spend, and what it decided."""

from __future__ import annotations

from dataclasses import dataclass

from adalayers.comparisons import FIRST
from reports.evidence.analyses import Analysis
from reports.evidence.claims import Claim
from reports.evidence.evidence import Evidence
from reports.evidence.spending import PLANNED, RESERVE
from reports.parts.cells import named
from reports.parts.part import Part
from reports.reading.load import Plan
from reports.words.text import NONE, escape, several, table


@dataclass(frozen=True)
class Info:
    claims: tuple[Claim, ...]
    analyses: tuple[Analysis, ...]
    plan: Plan


def info(evidence: Evidence) -> Info:
    return Info(tuple(evidence.claims), tuple(evidence.analyses), evidence.plan)


def section(info: Info) -> list[str]:
    if not info.claims:
        return ["Nothing was compared, so there was no analysis."]
    if not info.analyses:
        return ["No whole block of seeds has ended, so there was no analysis yet."]
    heads = ["analysis", "ended", "seeds per arm", "error spent so far", "decided here"]
    return [
        "An analysis is made after a block of seeds (`--until-decided`), else when a run ends, of the whole blocks it "
        "left; rebuilding this page does not count. Every analysis gives chance another try, so they share the error: "
        f"{PLANNED:.0%} up to the seeds first planned, in proportion to them and from {FIRST} pairs on, and "
        f"{RESERVE:.0%} kept for seeds beyond them. What is decided once keeps its claim.",
        table(heads, [_row(analysis, info) for analysis in info.analyses]),
    ]


def _row(analysis: Analysis, info: Info) -> list[str]:
    here = [claim for claim in info.claims if claim.analyses == analysis.number and claim.decided]
    primary = [named(claim, info.plan) for claim in here if claim.primary]
    others = len(here) - len(primary)
    decided = several(primary, 6) if primary else ""
    more = (
        f"{' and ' if primary else ''}{others} that {'is' if others == 1 else 'are'} not primary"
        if others
        else ""
    )
    sizes = sorted({len(seeds) for seeds in analysis.seeds.values()} - {0})
    seeds = " to ".join(str(size) for size in sorted({sizes[0], sizes[-1]})) if sizes else NONE
    spent = analysis.budget.spent(analysis.budget.seeds)
    return [
        str(analysis.number),
        escape(analysis.ended) or NONE,
        seeds,
        f"{spent:.2%}",
        f"{decided}{more}" or "nothing",
    ]


PART = Part("Analyses", info, section)
