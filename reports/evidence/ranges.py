"""Whether the best of a search lies at the edge of what it could choose from: better ones may lie beyond."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from reports.reading.frames import numbers
from reports.reading.load import Plan
from reports.reading.space import Domain, numeric

OUTER = 0.05
"""Share of a range, at either end, that counts as its edge."""

BEST = 5
"""Trials among which the best one is seen: one point lies in the edges of a range by chance in one of ten."""


@dataclass(frozen=True)
class Edge:
    """A hyperparameter whose best value lies at an end; `there` of the `of` best trials lie at that end."""

    name: str
    value: float
    end: str
    there: int
    of: int


def edges(trials: pd.DataFrame, plan: Plan, space: Iterable[Domain], *, grid: bool) -> list[Edge]:
    """Return the hyperparameters of `space` whose best completed search trial lies at an end.

    grid: whether the search took the points of a grid: then the values tried are what has ends
    """
    done = trials[(trials["stage"] == "search") & (trials["status"] == "completed")]
    ranks = (
        plan.better(numbers(done, f"val/{plan.metric}")).dropna().sort_values(ascending=False, kind="stable")
    )
    best = done.loc[ranks.index[:BEST]]
    found = []
    for domain in space:
        name = domain.name
        values = numbers(best, f"config/{name}")
        ends = _tried(numbers(trials, f"config/{name}")) if grid else _ends(domain)
        if ends is None or values.empty or pd.isna(values.iloc[0]):
            continue
        places = [_end(float(value), ends) for value in values.dropna()]
        if places[0]:
            found.append(Edge(name, float(values.iloc[0]), places[0], places.count(places[0]), len(places)))
    return found


Ends = tuple[str, list[float]]
"""The kind of a domain, "log", "linear" or "choice", and its ends or its values in order."""


def _ends(domain: Domain) -> Ends | None:
    if domain.choices:
        values = numeric(domain.choices)  # a choice of names has no ends
        return None if values is None else _checked(values)
    return "log" if domain.log else "linear", [domain.low, domain.high]


def _tried(values: pd.Series) -> Ends | None:
    return _checked([float(value) for value in values.dropna()])


def _checked(values: Iterable[float]) -> Ends | None:
    known = sorted(set(values))
    return None if len(known) < 3 else ("choice", known)  # of two values either is an end


def _end(value: float, domain: Ends) -> str:
    """Return "low", "high" or "". A lowest choice of 0 is no edge: nothing lies below."""
    kind, values = domain
    low, high = values[0], values[-1]
    if kind == "choice":
        return "high" if value >= high else "low" if value <= low and low != 0 else ""
    if kind == "log":
        low, high, value = float(np.log(low)), float(np.log(high)), float(np.log(max(value, 1e-300)))
    place = (value - low) / (high - low)
    return "low" if place <= OUTER else "high" if place >= 1 - OUTER else ""
