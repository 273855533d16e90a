"""details.md: every table and figure, section by section, no prose."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from reports.evidence.evidence import Evidence, once
from reports.names import title
from reports.page.limits import limits
from reports.plots import styled
from reports.render import render
from reports.section import Page, Section

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


def details(evidence: Evidence, names: Sequence[str] = SECTIONS) -> Page:
    """Return the page of those of these sections that apply to a study, its own first."""
    own = [name for name in evidence.request.parts if name in names]
    shown = [section_of(evidence, name) for name in dict.fromkeys((*own, *names))]
    sections = [section for section in shown if section is not None]
    text = render(
        "details.md.j2", title=title(evidence.loaded.study), sections=sections, limits=limits(evidence)
    )
    return Page(text, {name: figure for section in sections for name, figure in section.figures.items()})


@once
@styled
def section_of(evidence: Evidence, name: str) -> Section | None:
    """Return what a module of `reports.sections` shows of a study; None where it does not apply."""
    section: Section | None = importlib.import_module(f"..sections.{name}", __package__).section(evidence)
    return section
