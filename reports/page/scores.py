"""The tables of the page: the grid of a factorial, levels that are compared, and all arms with scores and verdicts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adalayers.results.measures import read_references
from adalayers.results.reference_names import REFERENCES
from reports import names
from reports.evidence.claims import Claim
from reports.evidence.evidence import Evidence
from reports.evidence.holm import SAME
from reports.reading.factors import column, level, levels, short
from reports.reading.factors import name as factor_name
from reports.reading.frames import records

ALIKE = 0.05
"""Nats within which the mixes of all cells are alike: their entropy is not shown then."""


@dataclass(frozen=True)
class Row:
    """What is compared, or an arm.

    Attributes:
        name: In words.
        scores: Mean scores of both sides, or of the arm.
        claim: Its comparison; None where it has none.
        verdict: In words; "" of a comparison without one.
        n: Seeds of the arm.
    """

    name: str
    scores: Sequence[float] = ()
    claim: Claim | None = None
    verdict: str = ""
    n: int = 0


def scores(evidence: Evidence, score: str) -> Mapping[str, Any]:
    """Return what the tables hold, by the names of `scores.md.j2`; score: what scores are called.

    grid: of a factorial; `levels`: what is compared of it; `arms`: all others
    groups: the column whose groups are drawn whole
    wider: whether some interval covers the choice of examples too; same: whether something is of no difference
    unequal: whether arms have unequal numbers of seeds; scale: scores of models that learn nothing or little
    """
    request = evidence.request
    cells = set(evidence.grid["arm"]) if evidence.grid_factors else set()
    rows_of = {
        row["arm"]: row for row in records(evidence.arms.sort_values("mean", ascending=False, kind="stable"))
    }
    order = dict.fromkeys((request.control, *evidence.by_arm, *rows_of))
    every = [_of_arm(rows_of[arm], evidence) for arm in order if arm in rows_of and arm not in cells]
    arms = [row for row in every if row.scores or row.claim]
    compared = [_row(claim, evidence.sides_of(claim) or (), evidence) for claim in evidence.others]
    claims = [row.claim for row in (*compared, *arms) if row.claim is not None]
    return {
        "score": score,
        "reference": names.arm(request.control, request),
        "grid": _grid(evidence) if evidence.grid_factors else None,
        "levels": compared,
        "arms": arms,
        "intervals": any(claim.low is not None for claim in claims),
        "wider": any(claim.examples_low is not None for claim in claims),
        "same": any(claim.primary and claim.told == SAME for claim in claims),
        "unequal": len({row.n for row in arms if row.n}) > 1,
        "scale": _scale(evidence),
        "groups": evidence.request.data.group_column or "",
    }


def _of_arm(row: Mapping[str, Any], evidence: Evidence) -> Row:
    scores = (float(row["mean"]),) if row["n"] else ()
    if claim := evidence.by_arm.get(row["arm"]):
        return _row(claim, scores, evidence, int(row["n"]))
    return Row(names.arm(row["arm"], evidence.request), scores, n=int(row["n"]))


def _row(claim: Claim, scores: Sequence[float], evidence: Evidence, n: int = 0) -> Row:
    verdict = names.VERDICTS[claim.told] if claim.primary else "not judged"
    return Row(names.compared(claim, evidence.request), scores, claim, verdict, n)


def _scale(evidence: Evidence) -> Sequence[tuple[str, float]]:
    """Return what scores are measured by: the references that a study has, the trivial model in older ones."""
    score = f"{evidence.split}/{evidence.request.metric}"
    trivial = evidence.environment.dataset.baseline.get(evidence.split)
    of_trivial = {} if trivial is None else {"majority": {score: trivial}}
    references = read_references(evidence.loaded.folder)
    known = of_trivial if references is None else references
    told = {
        **REFERENCES,
        "majority": "no entity anywhere" if evidence.tokens else "one answer to all examples",
    }
    return [(told.get(name, name), own[score]) for name, own in known.items() if score in own]


def _grid(evidence: Evidence) -> Mapping[str, Any]:
    """Return the cells: columns are levels of a condition, such as the number of examples, else of the first factor."""
    request, cells = evidence.request, evidence.grid
    factors = evidence.grid_factors
    across = next((factor for factor in factors if factor.condition), factors[0])
    down = [factor for factor in factors if factor is not across]
    columns = levels(cells[column(across.name)])
    by_row: dict[str, dict[Any, Mapping[str, Any]]] = {}
    for row in records(cells):
        at = {factor.name: row[column(factor.name)] for factor in down}
        known = next(arm for arm in request.arms if arm.name == row["arm"])
        label = [names.arm(known.label, request)] if across.condition and known.label else []
        told = [factor.name for factor in down if factor.condition or not label]
        name = ", ".join([*label, *(names.setting(each, level(at[each]), request) for each in told)])
        by_row.setdefault(name, {})[level(row[column(across.name)])] = row
    entropies = cells["entropy"].dropna()
    varied = len(entropies) > 1 and float(entropies.max() - entropies.min()) > ALIKE
    return {
        "corner": short(across) if across.condition else factor_name(across),
        "columns": [names.level(value) for value in columns],
        "rows": [(name, [own.get(value) for value in columns]) for name, own in by_row.items()],
        "equal": math.log(len(evidence.environment.hidden_states)) if varied else None,
    }
