"""Speed on the page: whether it can be compared at all, and by how much."""

from __future__ import annotations

from dataclasses import dataclass

from reports.evidence.evidence import Evidence
from reports.parts import convergence
from reports.parts.part import Part, figure_link
from reports.reading.factors import short
from reports.words.text import escape


@dataclass(frozen=True)
class Info:
    """along: the factor along the axis."""

    along: str


def info(evidence: Evidence) -> Info | None:
    how = evidence.pace
    drawn = convergence.info(evidence)
    decided = any(claim.decided for claim in evidence.contrasts if claim.metric == "convergence_step")
    if not how.known or how.saturated or drawn.core.empty or not decided:
        return None
    return Info(short(evidence.plan.factors[0]))


def section(info: Info) -> list[str]:
    return [
        "The step of convergence is the first evaluation at which a trial has 95% of its own gain over the trivial "
        "model: early does not mean good.",
        figure_link("convergence", f"Median step of convergence against {escape(info.along)}"),
    ]


PART = Part("Speed", info, section)
