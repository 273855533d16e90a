"""Completed trials of the search -> the mean score in each cell of a grid over two hyperparameters."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pandas as pd

from reports.reading.space import Domain, numeric

BINS = 6
COLUMNS = ["x", "y", "mean", "n"]


def two_factors(space: Sequence[Domain]) -> tuple[Domain, Domain] | None:
    """Return the two hyperparameters to draw against: the first two of the space, scientific ones first.

    Along x goes a range, where one of the two is one.
    """
    usable = [domain for domain in space if not domain.choices or numeric(domain.choices)]
    if len(usable) < 2:
        return None
    first, second = usable[:2]
    return (second, first) if first.choices and not second.choices else (first, second)


def surface(points: pd.DataFrame, x: Domain, y: Domain) -> pd.DataFrame:
    """A row per cell of the grid: x, y (names of bins, in order), mean score, n trials; NaN where n = 0.

    points: as from `importances.search_points`; its completed rows count. A cell averages over everything
    else that was searched, and nothing is guessed for cells without a trial.
    """
    done = points[points["status"] == "completed"]
    names = [bin_names(domain) for domain in (x, y)]
    places = [bin_places(done[domain.name], domain) for domain in (x, y)]
    table = []
    for i, x_name in enumerate(names[0]):
        for j, y_name in enumerate(names[1]):
            inside = done.loc[(places[0] == i) & (places[1] == j), "score"]
            table.append((x_name, y_name, inside.mean() if len(inside) else np.nan, len(inside)))
    return pd.DataFrame(table, columns=COLUMNS)


def bin_names(domain: Domain) -> list[str]:
    """Return the names of a domain's bins: its choices, or equal parts of its range on its own scale."""
    if domain.choices:
        return [f"{value:g}" for value in numeric(domain.choices) or []]
    ends = _ends(domain)
    return [f"{brief(low)} to {brief(high)}" for low, high in itertools.pairwise(ends)]


def bin_places(values: pd.Series, domain: Domain) -> np.ndarray:
    """Return the place of each value's bin, int [values]; what lies outside counts to the outermost bin."""
    known = values.astype(float).to_numpy()
    if domain.choices:
        return np.searchsorted(numeric(domain.choices) or [], known)
    return np.searchsorted(_ends(domain)[1:-1], known, side="right")


def brief(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2g}"


def _ends(domain: Domain) -> np.ndarray:
    make = np.geomspace if domain.log else np.linspace
    return make(domain.low, domain.high, BINS + 1)
