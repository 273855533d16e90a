"""Words of a report: numbers and lists as text; a column's name -> what an axis or a table calls it, with its unit."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

import pandas as pd

from adalayers.tasks.metrics import metric

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


def cut(text: str, most: int) -> str:
    """Return text of at most so many characters, the last one "…" where some are left out."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


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


ODD = re.compile(r"[^\w/ .,:()+-]")
"""What no name of a column has: it is left out of labels, which stand on pages and in figures as they are."""


class AxisLabel(str):
    """What an axis calls a column, "accuracy (share correct, 0 to 1)"; `name` leaves out the unit."""

    name: str
    unit: str

    def __new__(cls, name: str, unit: str = "") -> AxisLabel:
        label = super().__new__(cls, f"{name} ({unit})" if unit else name)
        label.name, label.unit = name, unit
        return label


LABELS = {
    "mix_lr": AxisLabel("learning rate of the mix weights", "per step"),
    "lr": AxisLabel("learning rate", "per step"),
    "mix/entropy": AxisLabel("entropy of the mix weights p̃", "nats"),
    "mix/weight": AxisLabel("mix weight p̃", "share of 1"),
    "layer": AxisLabel("layer", "hidden state"),
    "training": AxisLabel("operations of training", "computed"),
    "use": AxisLabel("operations per token of one more task", "millions, computed"),
    "operations": AxisLabel("operations per token at use", "millions, computed"),
    "step": AxisLabel("training step", "count"),
}

SPLITS = {"val": "validation", "test": "test", "train": "training"}


def label(column: str) -> AxisLabel:
    """Return the label of a column, prefixes (`val/`, `test/`, `config/`) spelled out; unknown names stay."""
    prefix, _, rest = column.partition("/")
    if prefix in SPLITS and rest:
        return AxisLabel(f"{SPLITS[prefix]} {_own(rest).name}", _own(rest).unit)
    return _own(rest if prefix == "config" and rest else column)


def _own(name: str) -> AxisLabel:
    if known := metric(name):
        return AxisLabel(known.label or ODD.sub("?", name), known.unit)
    return LABELS.get(name, AxisLabel(ODD.sub("?", name)))


def short(column: str) -> str:
    """Return the label without its unit, for running text and table heads."""
    return label(column).name


def layer_name(number: int) -> str:
    """Return what a hidden state is called: 0 is the embedding output."""
    return f"layer {number}" if number else "embeddings"
