"""One section of a study's details: its frames, the tables and the figures made from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from matplotlib.figure import Figure

from reports.evidence.evidence import Evidence

Frames = TypeVar("Frames")

FIGURES = "figures"
"""The folder of figures, next to the page."""

DETAILS = "details.md"
"""The page that holds all tables and figures. report.md names it and has no link to it: it is published without."""


@dataclass(frozen=True)
class Table:
    """A table as it is shown.

    Attributes:
        heads: Of its columns.
        rows: Cells by row. Text is escaped where it is written, unless it is `markdown` already.
        caption: One line above it; "" for none.
    """

    heads: Sequence[object]
    rows: Sequence[Sequence[object]]
    caption: str = ""


@dataclass(frozen=True)
class Section(Generic[Frames]):
    """One section of details.md; `SECTION` of its module in `reports/sections`.

    Attributes:
        title: Its heading; sections under one title, one after another, are one.
        frames: Returns what it shows; None where it does not apply to a study, which leaves it out.
        tables: Returns its tables.
        figures: File name without ending -> what draws it; None where there is nothing to draw. The first one stands on
            the page of a study that names the section (`Page.parts`), with `alt` as its words.
        alt: What the first figure shows.
    """

    title: str
    frames: Callable[[Evidence], Frames | None]
    tables: Callable[[Frames], Sequence[Table]] = lambda frames: ()
    figures: Mapping[str, Callable[[Frames], Figure | None]] = field(default_factory=dict)
    alt: str = ""
