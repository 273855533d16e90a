"""One section of a study's details: its tables and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from matplotlib.figure import Figure

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
