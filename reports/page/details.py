"""details.md: every table and figure, section by section, no prose."""

from __future__ import annotations

import importlib
import itertools
from dataclasses import dataclass
from functools import cached_property

from matplotlib.figure import Figure

from reports.evidence.evidence import Evidence, once
from reports.page.limits import limits
from reports.plots import styled
from reports.render import render
from reports.section import Section

SECTIONS: tuple[str, ...] = (
    "setup",
    "arms",
    "quality",
    "published",
    "single_layers",
    "layer_spans",
    "costs",
    "factor",
    "convergence",
    "mix",
    "weights",
    "classes",
    "importances",
    "measures",
)
"""Modules of `reports.sections`, as they are read; a study's own stand first."""


@dataclass(frozen=True)
class Details:
    """The page; names: of its sections."""

    evidence: Evidence
    names: tuple[str, ...] = SECTIONS

    @cached_property
    def shown(self) -> list[Section]:
        """The sections that apply to this study, its own first."""
        own = [name for name in self.evidence.request.parts if name in self.names]
        shown = [section_of(self.evidence, name) for name in dict.fromkeys((*own, *self.names))]
        return [section for section in shown if section is not None]

    @property
    def figures(self) -> dict[str, Figure]:
        return {name: figure for section in self.shown for name, figure in section.figures.items()}

    def text(self, title: str) -> str:
        """Return the page as Markdown, with links relative to the results folder."""
        chapters = [
            (head, list(own)) for head, own in itertools.groupby(self.shown, lambda shown: shown.title)
        ]
        return render(
            "details.md.j2",
            title=title,
            chapters=chapters,
            limits=limits(self.evidence),
            problems=self.evidence.loaded.problems,
        )


@styled
def section_of(evidence: Evidence, name: str) -> Section | None:
    """Return what a module of `reports.sections` shows of a study; None where it does not apply."""
    module = importlib.import_module(f"..sections.{name}", __package__)
    section: Section | None = once(module.section)(evidence)
    return section
