"""Factors under study as data: their levels, read from `trials.csv` and from arms, and what to call them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from adalayers.results.study_file import Factor

Level = float | str
"""One value of a factor: a number where it is one, else text."""


def level(value: Any) -> Level | None:
    """Return a value as a level; None where there is none."""
    if value is None or (isinstance(value, float) and pd.isna(value)) or value == "" or value is pd.NA:
        return None
    if isinstance(value, bool | np.bool_):
        return str(value).lower()
    try:
        return float(value)
    except (TypeError, ValueError):  # a list is one of a fusion's own
        return str(value)


def level_name(value: Level) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def levels(values: Iterable[Any]) -> list[Level]:
    """Return the different levels: numbers in rising order, else all as they come."""
    seen = list(dict.fromkeys(parsed for value in values if (parsed := level(value)) is not None))
    numbers = numeric(seen)
    return seen if numbers is None else [*sorted(numbers)]


def numeric(values: Sequence[Level]) -> list[float] | None:
    """Return levels as numbers, or None where one of them is none."""
    numbers = [value for value in values if isinstance(value, float)]
    return numbers if len(numbers) == len(values) else None


def known(name: str, factors: Iterable[Factor]) -> Factor:
    """Return the factor of that name; of one that is none, its name is all that there is to say."""
    return next((factor for factor in factors if factor.name == name), Factor(name))


def column(name: str) -> str:
    """Return the column of tables by arm that holds a factor's levels."""
    return f"config/{name}"


def of_trials(rows: pd.DataFrame, name: str) -> list[Level | None]:
    """Return a factor's level in each trial: of `config/<name>`, else of a column of that name (`fusion`)."""
    where = next((key for key in (column(name), name) if key in rows.columns), None)
    return [None] * len(rows) if where is None else [level(value) for value in rows[where]]


def short(factor: Factor) -> str:
    """Return what running text, legends and table heads call a factor: "α"."""
    return factor.label or factor.name


def name(factor: Factor) -> str:
    """Return what a factor is called with its meaning: "α, scale of the mix logits"."""
    return f"{short(factor)}, {factor.meaning}" if factor.meaning else short(factor)


def label(factor: Factor) -> str:
    """Return what an axis calls a factor: "α, scale of the mix logits (no unit)"."""
    return f"{name(factor)} ({factor.unit or 'no unit'})"


def cell_names(table: pd.DataFrame, factors: Sequence[Factor]) -> list[str]:
    """Return for each row what its levels of `factors` are called: "α = 8, λ = 0.001"; "" where one is unknown."""
    names = []
    for row in table[[column(factor.name) for factor in factors]].to_numpy(dtype=object):
        parts = [
            f"{short(factor)} = {level_name(value)}"
            for factor, value in zip(factors, map(level, row), strict=True)
            if value is not None
        ]
        names.append(", ".join(parts) if len(parts) == len(factors) else "")
    return names


def in_order(table: pd.DataFrame, factors: Sequence[Factor]) -> pd.DataFrame:
    """Return the rows sorted by their levels of `factors`, each in the order of `levels`."""

    def ranks(values: pd.Series) -> pd.Series:
        order: dict[Level | None, int] = {value: index for index, value in enumerate(levels(values))}
        return pd.Series([order.get(level(value), len(order)) for value in values], values.index, dtype=int)

    by = [column(factor.name) for factor in factors]
    return table.sort_values(by, kind="stable", key=ranks) if by else table
