"""The search space of `study.json`, Optuna's own JSON of distributions -> domains; whether the best lies at an end."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from adalayers.results.study_file import StudyFile
from reports.reading.factors import column, level, levels, numeric
from reports.reading.frames import numbers, records, searched

OUTER = 0.05
"""Share of a range, at either end, that counts as its edge."""


@dataclass(frozen=True)
class Domain:
    """Where one hyperparameter was searched: a range (`low` < `high`), or `choices` in their order, as text.

    role: scientific, nuisance, or "searched" where `study.json` does not say.
    """

    name: str
    role: str
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    choices: tuple[str, ...] = ()


def domains(study: StudyFile, search: str = "") -> list[Domain]:
    """Return the domains of a study's search space that can be read, scientific ones first.

    search: one of several, whose own space it is then
    """
    request = study.request
    roles = {name: role for role in ("scientific", "nuisance") for name in getattr(request, role)}
    given = request.spaces.get(search, request.space)
    in_order = [name for name in dict.fromkeys((*roles, *given)) if name in given]
    found = [read(name, given[name], roles.get(name, "searched")) for name in in_order]
    return [domain for domain in found if domain is not None]


def read(name: str, distribution: Mapping[str, Any], role: str = "searched") -> Domain | None:
    """Return the domain that Optuna's JSON of a distribution describes; None where there is nothing to choose."""
    attributes = distribution.get("attributes", {})
    low, high = (float(attributes.get(end, 0.0)) for end in ("low", "high"))
    choices = tuple(map(str, attributes.get("choices", ())))
    domain = Domain(name, role, low, high, bool(attributes.get("log")), choices)
    return domain if len(choices) > 1 or low < high else None


def describe(domain: Domain) -> str:
    """Return a domain as a line of text: "loguniform(0.5, 1024)", "choice(0.0, 0.001)"."""
    if domain.choices:
        return f"choice({', '.join(domain.choices)})"
    return f"{'log' if domain.log else ''}uniform({domain.low:g}, {domain.high:g})"


def as_choice(value: Any, choices: tuple[str, ...]) -> str | None:
    """Return the choice that a value of `trials.csv` is: numbers are compared as numbers (0 is 0.0)."""
    return next((choice for choice in choices if level(choice) == level(str(value))), None)


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
    # What a search finds best may have run in another one.
    tuned = next((arm.config for arm in request.arms if search and search in arm.tunes), {})
    found = []
    for domain in domains(study, search):
        if column(domain.name) not in rows:
            continue  # nothing here uses it
        value = level(tuned.get(domain.name, best.get(column(domain.name))))
        chosen = [*levels(rows[column(domain.name)]), value] if grid else domain.choices
        ends = numeric(levels(chosen)) if chosen else [domain.low, domain.high]
        if not isinstance(value, float) or ends is None or (chosen and len(ends) < 3):
            continue
        low, high, at = min(ends), max(ends), value
        if domain.log and not chosen:
            low, high, at = map(math.log, (low, high, value))
        share, margin = (at - low) / (high - low), 0.0 if chosen else OUTER
        if share >= 1 - margin or (share <= margin and not (chosen and low == 0)):
            found.append({"name": domain.name, "value": value, "end": "high" if share > 0.5 else "low"})
    return found
