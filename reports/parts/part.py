"""A part of a page: what it shows, its words and its figures."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from matplotlib.figure import Figure

from reports.evidence.evidence import Evidence
from reports.words.text import escape

Info = TypeVar("Info")

FIGURES = "figures"
"""The folder of figures, next to the page."""

DETAILS = "details.md"
"""The page that holds everything else. report.md names it and has no link to it: it is published without."""

BEST_TRIAL = (
    "the best confirmed one on validation, chosen before looking at its errors. `index` counts in the dataset's split; "
    "texts are shown only where a study was run so (`--show-text`, in `examples.md`)."
)
"""What is said of the trial whose errors are shown."""

MAX_ROWS = 20
"""Rows of a table of trials or examples on the page; all are in the files."""


@dataclass(frozen=True)
class Part(Generic[Info]):
    """One part of a page: `PART` of its module on details.md, or `SHORT_PART`, where there is one, on report.md.

    Parts that follow each other under the same title are one section.

    title:   of its section
    info:    computes what is shown; None where the part does not apply to this study: it is left out then
    section: its paragraphs of Markdown; empty ones are left out
    answer:  its sentences in the Answer of a study that names it; what they say, its section does not say again
    draw:    its figures: file name without ending -> how it is drawn; None where there is nothing to draw over
    """

    title: str
    info: Callable[[Evidence], Info | None]
    section: Callable[[Info], Sequence[str]]
    draw: Mapping[str, Callable[[Info], Figure | None]] = field(default_factory=dict)
    answer: Callable[[Info], Sequence[str]] = lambda info: ()


def own_parts(evidence: Evidence) -> tuple[str, ...]:
    """Return the parts that answer the study's own question, as it names them: modules of `reports.parts`.

    A name of another version, which is none here, is passed over.
    """
    modules = {module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)])}
    return tuple(name for name in evidence.loaded.study.request.parts if name in modules)


def figure_link(name: str, text: str) -> str:
    """Return a figure as Markdown."""
    return f"![{escape(text)}]({FIGURES}/{name}.png)"
