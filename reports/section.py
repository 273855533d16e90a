"""What pages are made of: sections of tables and figures, and their cells: an arm, a mean with its interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from adalayers.escaping import code
from adalayers.results.intervals import LEVEL
from reports.evidence.claims import Claim
from reports.reading.frames import records
from reports.render import markdown
from reports.words import NONE, estimate, interval

INTERVAL = f"mean [{LEVEL:.0%} interval]"
"""What heads call a `summary`: t intervals over seeds, not corrected."""

FIGURES = "figures"
"""The folder of figures, next to the page."""

DETAILS = "details.md"
"""The page that holds all tables and figures. report.md names it and has no link to it: it is published without."""


@dataclass(frozen=True)
class Table:
    """A table as it is shown; one without rows is left out.

    Attributes:
        heads: Of its columns.
        rows: Cells by row. Text is escaped where it is written, unless it is `markdown` already.
        caption: One line above it; "" for none.
    """

    heads: Sequence[object]
    rows: Sequence[Sequence[object]]
    caption: str = ""


@dataclass(frozen=True)
class Section:
    """What `section(evidence)` of a module in `reports/sections` shows of a study.

    Attributes:
        title: Its heading; sections under one title, one after another, are one.
        figures: By file name without ending. The first one stands on the page of a study that names the section
            (`Page.parts`), with `alt` as its words.
        alt: What the first figure shows.
    """

    title: str
    tables: Sequence[Table] = ()
    figures: Mapping[str, Figure] = field(default_factory=dict)
    alt: str = ""


@dataclass(frozen=True)
class Page:
    """A page as Markdown, with links relative to its folder, and the figures that it shows, by name."""

    text: str
    figures: Mapping[str, Figure]


def named(name: object) -> str:
    """Return a name from data as code; a dash for none."""
    return markdown(code(name)) if name else NONE


def summary(row: Mapping[str, Any], prefix: str = "", digits: int = 3, *, signed: bool = False) -> str:
    """Return a mean with its interval and n, of columns that begin with `prefix`; n may have none."""
    mean, low, high = (row[f"{prefix}{name}"] for name in ("mean", "low", "high"))
    n = row[f"{prefix}n" if f"{prefix}n" in row else "n"]
    return markdown(estimate(mean, low, high, n, digits, signed=signed))


def relative(row: Mapping[str, Any]) -> str:
    """Return a mean share with its interval in per cent."""
    mean, low, high = (100 * row[name] for name in ("mean", "low", "high"))
    return markdown(estimate(mean, low, high, row["n"], 1, signed=True))


def ends(low: float | None, high: float | None, digits: int = 3, *, signed: bool = False) -> str:
    """Return an interval alone; a dash where there is none."""
    if low is None or high is None or pd.isna(low) or pd.isna(high):
        return NONE
    return markdown(interval(low, high, digits, signed=signed))


def difference(claim: Claim, digits: int = 3) -> str:
    if claim.tie:
        return "identical predictions"
    return markdown(estimate(claim.difference, claim.low, claim.high, claim.n, digits, signed=True))


def table_of(frame: pd.DataFrame, heads: Mapping[str, Any], caption: str = "") -> Table:
    """Return a table of a row per row; heads -> a column, or what makes a cell of a row."""
    return Table(
        list(heads),
        [[cell(row) if callable(cell) else row[cell] for cell in heads.values()] for row in records(frame)],
        caption,
    )
