"""Where the best of the search lies on the end of a range: better configurations may lie beyond it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from reports.space import Domain, as_choice, numeric

OUTER = 0.05
"""Share of a range, on its own scale, that counts as its end."""


@dataclass(frozen=True)
class Edge:
    """The best value of one hyperparameter lies at the `end` ("lower", "upper") of what was searched.

    near: how many of the `of` best trials lie at that same end, the best among them.
    """

    name: str
    role: str
    value: float
    bound: float
    end: str
    near: int
    of: int


def edges(points: pd.DataFrame, space: Sequence[Domain], best: int = 5) -> list[Edge]:
    """Return the hyperparameters whose best value lies in the outer 5% of its range, or at a choice's end.

    points: completed trials of the search, best first, a column per hyperparameter.
    A range is measured on its own scale (log where it is searched so). Choices count where they are all
    numbers and there are three or more; 0 at the lower end does not: nothing lies below "none of it".
    """
    found = []
    for domain in space:
        if points.empty or domain.name not in points.columns:
            continue
        ends = [_end(value, domain) for value in points[domain.name].head(best)]
        if ends and ends[0]:
            value = float(points[domain.name].iloc[0])
            found.append(
                Edge(
                    domain.name,
                    domain.role,
                    value,
                    _bound(domain, ends[0]),
                    ends[0],
                    ends.count(ends[0]),
                    len(ends),
                )
            )
    return found


def _end(value: object, domain: Domain) -> str:
    """Return "lower", "upper" or "" for a value of a domain."""
    if domain.choices:
        choices, choice = numeric(domain.choices), as_choice(value, domain.choices)
        if choices is None or len(choices) < 3 or choice is None:
            return ""
        at = float(choice)
        return "upper" if at == choices[-1] else "lower" if at == choices[0] and at != 0 else ""
    at = float(str(value))
    if math.isnan(at) or (domain.log and at <= 0):
        return ""
    low, high, at = (math.log(x) if domain.log else x for x in (domain.low, domain.high, at))
    share = (at - low) / (high - low)
    return "lower" if share <= OUTER else "upper" if share >= 1 - OUTER else ""


def _bound(domain: Domain, end: str) -> float:
    ends = numeric(domain.choices) or [domain.low, domain.high]
    return ends[0] if end == "lower" else ends[-1]
