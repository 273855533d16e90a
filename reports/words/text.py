"""Numbers and names as Markdown text."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pandas as pd

NONE = "—"


def number(value: float | int | None, digits: int = 3, *, signed: bool = False) -> str:
    """Return a number with `digits` decimals; an unknown one is a dash."""
    if value is None or pd.isna(value):
        return NONE
    if math.isinf(value):
        return "not reached"
    text = f"{value:+,.{digits}f}" if signed else f"{value:,.{digits}f}"
    return text.lstrip("+-") if float(text.replace(",", "")) == 0 else text


def estimate(
    mean: float | None,
    low: float | None,
    high: float | None,
    n: float,
    digits: int = 3,
    *,
    signed: bool = False,
) -> str:
    """Return a mean with its interval and n: `0.412 [0.371, 0.453], n = 5`; or without one."""
    if mean is None or pd.isna(mean) or n == 0:
        return f"{NONE} (n = {n:.0f})"
    if low is None or high is None or pd.isna(low) or pd.isna(high):
        return f"{number(mean, digits, signed=signed)} (n = {n:.0f}, no interval)"
    return f"{number(mean, digits, signed=signed)} {interval(low, high, digits, signed=signed)}, n = {n:.0f}"


def interval(low: float, high: float, digits: int = 3, *, signed: bool = False) -> str:
    return f"[{number(low, digits, signed=signed)}, {number(high, digits, signed=signed)}]"


def several(names: Iterable[str], most: int = 4) -> str:
    """Return names joined as in a sentence: "a, b and c", "a, b, c, d and 3 more"; "a, 1; b" where one has a comma."""
    listed = list(names)
    if any("," in name for name in listed):
        more = [f"and {len(listed) - most} more"] if len(listed) > most else []
        return "; ".join([*listed[:most], *more])
    if len(listed) > most:
        return f"{', '.join(listed[:most])} and {len(listed) - most} more"
    return " and ".join(filter(None, [", ".join(listed[:-1]), listed[-1] if listed else ""]))


def count(n: float, noun: str, plural: str = "") -> str:
    """Return "1 trial", "3 trials"."""
    return f"{n:,.0f} {noun if n == 1 else plural or noun + 's'}"
