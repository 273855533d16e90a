"""Speed on the page: whether it can be compared at all, and by how much."""

from __future__ import annotations

from dataclasses import dataclass

from reports.evidence.convergence import REACHED
from reports.evidence.evidence import Evidence
from reports.parts import convergence
from reports.parts.part import Part, figure_link
from reports.reading.factors import short
from reports.words.text import escape

MOST = 0.8
"""Share of trials that converge at their first evaluation from which on steps say nothing."""
STILL = 0.5
"""Share of trials that converge at their last evaluation, likewise."""


@dataclass(frozen=True)
class Pace:
    """known: trials with a step of convergence; first, last: of them, those that converged at their first evaluation,
    or at their last.
    """

    known: int
    first: int
    last: int

    @property
    def saturated(self) -> bool:
        return self.first >= MOST * self.known or self.last >= STILL * self.known

    def sentence(self) -> str:
        if self.first < MOST * self.known:
            return (
                f"{self.last} of {self.known} trials were still gaining at their last evaluation, so speed cannot be "
                "compared here; it would take more epochs."
            )
        return (
            f"{self.first} of {self.known} trials reach 95% of their own gain by their first evaluation, so speed "
            "cannot be compared here; it would take more evaluations per epoch, or fewer training examples."
        )


def pace(evidence: Evidence) -> Pace:
    """Return how many trials converge at their first evaluation."""
    rows = evidence.convergence
    rows = rows[rows["state"] == REACHED]
    history = evidence.history
    score = f"val/{evidence.plan.metric}"
    if rows.empty or not {"step", score} <= set(history.columns):
        return Pace(0, 0, 0)
    evaluated = history.dropna(subset=["step", score])
    ends = evaluated.groupby("trial_id")["step"].agg(["min", "max"]).reindex(rows["trial_id"])
    first = rows["step"].to_numpy() <= ends["min"].to_numpy()
    last = (rows["step"].to_numpy() >= ends["max"].to_numpy()) & ~first
    return Pace(len(rows), int(first.sum()), int(last.sum()))


@dataclass(frozen=True)
class Info:
    """lines: the factor along the axis."""

    along: str


def info(evidence: Evidence) -> Info | None:
    how = pace(evidence)
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
