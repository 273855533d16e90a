"""The tables of the page: all arms with their scores and verdicts, or the grid of a factorial and what is compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adalayers.results.measures import read_references
from adalayers.results.reference_names import REFERENCES
from reports import names
from reports.evidence.claims import Claim
from reports.evidence.evidence import Evidence
from reports.evidence.holm import SAME
from reports.page.finding import of_arms, sides, verdict_of
from reports.reading.factors import column, label, level, level_name, levels, short
from reports.reading.frames import records

ALIKE = 0.05
"""Nats within which the mixes of all cells are alike: their entropy is not shown then."""


@dataclass(frozen=True)
class Row:
    """An arm, or what is compared of levels.

    Attributes:
        name: In words; `control`: whether it is what others are compared with.
        mean, n: Of its score over seeds; None for levels.
        claim: Its planned comparison, None where it has none.
        against: What it is compared with where that is not the control, in words.
        verdict: As `finding.verdict_of`; "" of a comparison without one.
    """

    name: str
    control: bool = False
    mean: float | None = None
    n: int = 0
    claim: Claim | None = None
    against: str = ""
    verdict: str = ""


def scores(evidence: Evidence, score: str) -> Mapping[str, Any]:
    """Return what the tables hold, by the names of `scores.md.j2`; score: what scores are called.

    grid: of a factorial; then `rows` are what is compared, and arms outside the grid
    groups: the column whose groups are drawn whole
    wider: whether some interval covers the choice of examples too; same: whether something is of no difference
    unequal: whether arms have unequal numbers of seeds; scale: scores of models that learn nothing or little
    """
    plan = evidence.plan
    cells = set(evidence.grid["arm"]) if evidence.grid_factors else set()
    planned = {claim.key: claim for claim in evidence.planned}
    by_arm: dict[str, Claim] = {}
    for claim in planned.values():
        if of_arms(claim) and not (evidence.grid_factors and claim.kind == "factor"):
            by_arm.setdefault(sides(claim)[0], claim)
    told = {claim.key for claim in by_arm.values()}
    arms = [
        _row(row, by_arm.get(row["arm"]), evidence)
        for row in sorted(
            records(evidence.arms), key=lambda row: (row["arm"] != plan.control, -_or_least(row))
        )
        if row["arm"] not in cells and (row["n"] or row["arm"] in by_arm)
    ]
    others = [
        Row(names.compared(claim, plan), claim=claim, verdict=verdict_of(claim))
        for claim in planned.values()
        if claim.key not in told
    ]
    rows = (*others, *arms)
    claims = [row.claim for row in rows if row.claim is not None]
    return {
        "score": score,
        "reference": names.arm(plan.control, plan),
        "grid": _grid(evidence) if evidence.grid_factors else None,
        "rows": rows,
        "intervals": any(claim.low is not None for claim in claims),
        "wider": any(claim.examples_low is not None for claim in claims),
        "same": any(row.verdict == SAME for row in rows),
        "unequal": len({row.n for row in rows if row.mean is not None}) > 1,
        "scale": _scale(evidence),
        "groups": evidence.loaded.study.request.data.group_column or "",
    }


def _or_least(row: Mapping[str, Any]) -> float:
    return float(row["mean"]) if row["n"] else float("-inf")


def _row(row: Mapping[str, Any], claim: Claim | None, evidence: Evidence) -> Row:
    plan = evidence.plan
    against = sides(claim)[1] if claim else plan.control
    return Row(
        names.arm(row["arm"], plan),
        row["arm"] == plan.control,
        float(row["mean"]) if row["n"] else None,
        int(row["n"]),
        claim,
        "" if against == plan.control else names.arm(against, plan),
        verdict_of(claim) if claim else "",
    )


def _scale(evidence: Evidence) -> Sequence[tuple[str, float]]:
    """Return what scores are measured by: the references that the study measured, else the trivial model."""
    score = f"{evidence.split}/{evidence.plan.metric}"
    references = read_references(evidence.loaded.folder).items()
    rows = [(REFERENCES.get(name, name), scores[score]) for name, scores in references if score in scores]
    trivial = evidence.loaded.study.environment.dataset.baseline.get(evidence.split)
    return rows or ([] if trivial is None else [("one answer to all", trivial)])


def _grid(evidence: Evidence) -> Mapping[str, Any]:
    """Return the cells: columns are levels of a condition, such as the number of examples, else of the first factor."""
    plan, cells = evidence.plan, evidence.grid
    factors = evidence.grid_factors
    across = next((factor for factor in factors if factor.condition), factors[0])
    down = [factor for factor in factors if factor is not across]
    columns = levels(cells[column(across.name)])
    by_row: dict[str, dict[Any, Mapping[str, Any]]] = {}
    for row in records(cells):
        at = {factor.name: row[column(factor.name)] for factor in down}
        known = next(arm for arm in plan.arms if arm.name == row["arm"])
        if across.condition and known.label:
            name = names.arm(known.label, plan)
        else:
            name = ", ".join(names.setting(factor, level(value), plan) for factor, value in at.items())
        by_row.setdefault(name, {})[level(row[column(across.name)])] = row
    entropies = cells["entropy"].dropna()
    return {
        "corner": short(across) if across.condition else label(across).rpartition(" (")[0],
        "columns": [level_name(value) for value in columns],
        "rows": [(name, [own.get(value) for value in columns]) for name, own in by_row.items()],
        "entropies": len(entropies) > 1 and float(entropies.max() - entropies.min()) > ALIKE,
    }
