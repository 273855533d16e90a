"""Whether the best of a search lies at the edge of what it could choose from: better ones may lie beyond."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from adalayers.results.study_file import RequestRecord
from reports.reading.factors import levels, numeric
from reports.reading.frames import numbers, searched
from reports.reading.space import Domain

OUTER = 0.05
"""Share of a range, at either end, that counts as its edge."""

TOP_TRIALS = 5
"""Trials among which the best one is seen: one point lies in the edges of a range by chance in one of ten."""


@dataclass(frozen=True)
class Edge:
    """A hyperparameter whose best value lies at an end; `n_at_edge` of the `n_best` best trials lie at that end."""

    name: str
    value: float
    end: str
    n_at_edge: int
    n_best: int


def edges(
    trials: pd.DataFrame, plan: RequestRecord, space: Iterable[Domain], *, grid: bool, search: str = ""
) -> list[Edge]:
    """Return the hyperparameters of `space` whose best completed trial of a search lies at an end.

    search: its name, where there are several
    grid: whether the search took the points of a grid: then the values tried are what has ends
    """
    rows = searched(trials)
    if search:
        rows = rows[rows["search"] == search]
    done = rows[rows["status"] == "completed"]
    ranks = numbers(done, f"val/{plan.metric}").dropna().sort_values(ascending=False, kind="stable")
    best = done.loc[ranks.index[:TOP_TRIALS]]
    at_edge = []
    for domain in space:
        values = numbers(best, f"config/{domain.name}")
        tried = (
            numbers(rows, f"config/{domain.name}").dropna().unique()
            if grid
            else numeric(levels(domain.choices))
        )
        discrete = grid or bool(domain.choices)
        ends = tried if discrete else (domain.low, domain.high)
        # Of two values either is an end, and a choice of names has no ends.
        if values.empty or pd.isna(values.iloc[0]) or ends is None or (discrete and len(set(ends)) < 3):
            continue
        places = [_end(value, min(ends), max(ends), domain, discrete=discrete) for value in values.dropna()]
        if places[0]:
            there = places.count(places[0])
            value = float(values.iloc[0])
            at_edge.append(Edge(domain.name, value, places[0], there, len(places)))
    return at_edge


def _end(value: float, low: float, high: float, domain: Domain, *, discrete: bool) -> str:
    """Return "low", "high" or "". A lowest choice of 0 is no edge: nothing lies below."""
    margin, nothing_below = (0.0, low == 0) if discrete else (OUTER, False)
    if domain.log and not discrete:
        low, high, value = np.log((low, high, max(value, 1e-300)))
    share = (value - low) / (high - low)
    if share <= margin:
        return "" if nothing_below else "low"
    return "high" if share >= 1 - margin else ""
