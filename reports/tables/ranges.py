"""Whether the best of a search lies at the edge of what it could choose from: better ones may lie beyond."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from adalayers.results.study_file import StudyFile
from reports.reading.factors import column, level, levels, numeric
from reports.reading.frames import numbers, records, searched
from reports.reading.space import domains

OUTER = 0.05
"""Share of a range, at either end, that counts as its edge."""


def edges(trials: pd.DataFrame, study: StudyFile) -> list[dict[str, Any]]:
    """Return name, value and end ("low" or "high") of what the best completed trial of each search has at an end."""
    return [edge for search in study.request.spaces or [""] for edge in _edges(trials, study, search)]


def _edges(trials: pd.DataFrame, study: StudyFile, search: str) -> list[dict[str, Any]]:
    """Of two values either is an end, a choice of names has none, and below a choice of 0 lies nothing."""
    request, rows = study.request, searched(trials)
    grid = request.search == "grid"  # then the values tried are what has ends
    if search:
        rows = rows[rows["search"] == search]
    scores = numbers(rows[rows["status"] == "completed"], f"val/{request.metric}").dropna()
    best = records(rows.loc[[scores.idxmax()]])[0] if len(scores) else {}
    found = []
    for domain in domains(study, search):
        chosen = levels(rows[column(domain.name)]) if grid else domain.choices
        ends = numeric(levels(chosen)) if chosen else [domain.low, domain.high]
        value = level(best.get(column(domain.name)))
        if not isinstance(value, float) or ends is None or (chosen and len(ends) < 3):
            continue
        low, high, at = min(ends), max(ends), value
        if domain.log and not chosen:
            low, high, at = map(math.log, (low, high, value))
        share, margin = (at - low) / (high - low), 0.0 if chosen else OUTER
        if share >= 1 - margin or (share <= margin and not (chosen and low == 0)):
            found.append({"name": domain.name, "value": value, "end": "high" if share > 0.5 else "low"})
    return found
