"""Whether the best of a search lies at the edge of what it could choose from: better ones may lie beyond."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from reports.reading.frames import numbers
from reports.reading.load import Plan

OUTER = 0.05
"""Share of a range, at either end, that counts as its edge."""

BEST = 5
"""Trials beside which the best one is seen: one point lies in the edges of a range by chance in one of ten."""


@dataclass(frozen=True)
class Edge:
    """A hyperparameter whose best value lies at an end; `there` of the `of` best trials lie at that end."""

    name: str
    value: float
    end: str
    there: int
    of: int


def edges(trials: pd.DataFrame, plan: Plan, space: Mapping[str, Any], *, grid: bool) -> list[Edge]:
    """Return the hyperparameters of `space` whose best completed search trial lies at an end.

    space: as `study.json` describes it, "loguniform(0.5, 1024)", "uniform(0, 1)", "choice(0, 1, 2)"
    grid:  whether the search took the points of a grid: then the values tried are what has ends
    """
    done = trials[(trials["stage"] == "search") & (trials["status"] == "completed")]
    ranks = (
        plan.better(numbers(done, f"val/{plan.metric}")).dropna().sort_values(ascending=False, kind="stable")
    )
    best = done.loc[ranks.index[:BEST]]
    found = []
    for name, text in space.items():
        values = numbers(best, f"config/{name}")
        domain = _tried(numbers(trials, f"config/{name}")) if grid else _domain(str(text))
        if domain is None or values.empty or pd.isna(values.iloc[0]):
            continue
        places = [_end(float(value), domain) for value in values.dropna()]
        if places[0]:
            found.append(Edge(name, float(values.iloc[0]), places[0], places.count(places[0]), len(places)))
    return found


Domain = tuple[str, list[float]]
"""Its kind, "loguniform", "uniform" or "choice", and its ends or its values in order."""


def _domain(text: str) -> Domain | None:
    match = re.fullmatch(r"(loguniform|uniform|choice)\(([^()]*)\)", text)
    if match is None:
        return None
    try:
        values = sorted({float(part) for part in match[2].split(",")})
    except ValueError:  # a choice of names has no ends
        return None
    return _checked(match[1], values)


def _tried(values: pd.Series) -> Domain | None:
    return _checked("choice", sorted({float(value) for value in values.dropna()}))


def _checked(kind: str, values: list[float]) -> Domain | None:
    few = len(values) < (3 if kind == "choice" else 2)  # of two values either is an end
    return None if few or (kind == "loguniform" and values[0] <= 0) else (kind, values)


def _end(value: float, domain: Domain) -> str:
    """Return "low", "high" or "". A lowest choice of 0 is no edge: nothing lies below."""
    kind, values = domain
    low, high = values[0], values[-1]
    if kind == "choice":
        return "high" if value >= high else "low" if value <= low and low != 0 else ""
    if kind == "loguniform":
        low, high, value = float(np.log(low)), float(np.log(high)), float(np.log(max(value, 1e-300)))
    place = (value - low) / (high - low)
    return "low" if place <= OUTER else "high" if place >= 1 - OUTER else ""
