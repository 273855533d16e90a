"""The search's trials one by one, best first; one seed each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reports.cells import table_of
from reports.evidence.evidence import Evidence
from reports.names import symbol
from reports.reading.factors import column, level
from reports.section import Section, Table
from reports.words.text import NONE, number

MOST = 20
"""Rows of trials; all are in `trials.csv`."""


def frames(evidence: Evidence) -> Evidence | None:
    return evidence if len(evidence.search) else None


def tables(evidence: Evidence) -> Sequence[Table]:
    request, trials = evidence.request, evidence.search
    names = dict.fromkeys([*(factor.name for factor in request.factors), *request.nuisance])
    heads: dict[str, Any] = {
        "trial": "trial_id",
        "status": lambda row: "stopped early" if row["status"] == "stopped" else row["status"],
        **{symbol(name, request): lambda row, name=name: _brief(row[column(name)]) for name in names},
        "score": "score",
        "epochs": lambda row: number(row["epochs"], 0),
    }
    caption = (
        f"The best {min(MOST, len(trials))} of {len(trials)} trials, on validation; a stopped trial's score is what it "
        "had by then."
    )
    return [table_of(trials.head(MOST), heads, caption)]


def _brief(value: Any) -> str:
    parsed = level(value)
    return NONE if parsed is None else f"{parsed:.3g}" if isinstance(parsed, float) else parsed


SECTION = Section("Search (exploratory)", frames, tables)
