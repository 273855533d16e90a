"""The two pages of a study: their parts in the order a reader asks for them."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from matplotlib.figure import Figure

from adalayers.results.files import REPORT
from reports.drawing.style import plain_text, styled
from reports.evidence.caveats import caveats, uniform_mix
from reports.evidence.evidence import Evidence
from reports.parts.part import DETAILS, Part, own_parts
from reports.words.text import escape

MORE = f"*More: `{DETAILS}`, which `adalayers report` on this folder writes.*"
BACK = f"The answer, and what it rests on, is in [{REPORT}]({REPORT}). Here is everything else."

SHORT = ("answer", "caveats", "settings", "rates", "quality", "mix", "next_run")
"""Modules of `reports.parts` on report.md, each with its `SHORT_PART` or `PART`; a study's own come second."""

PARTS = (
    "setup",
    "arms",
    "published",
    "comparisons",
    "single_layers",
    "variability",
    "layer_spans",
    "cutoff",
    "cost_at_use",
    "data_size",
    "few_shot",
    "core",
    "convergence",
    "mix",
    "classes",
    "errors",
    "residuals",
    "search",
    "importances",
    "analyses",
    "caveats",
    "measures",
)
"""Those on details.md, each with its `PART`. Parts under one title, one after another, are one section."""


def parts(names: tuple[str, ...] = PARTS, *, short: bool = False) -> list[Part[Any]]:
    """Return the parts of these names; short: as they stand on report.md."""
    modules = [importlib.import_module(f"..parts.{name}", __package__) for name in names]
    return [getattr(module, "SHORT_PART", module.PART) if short else module.PART for module in modules]


@dataclass(frozen=True)
class ReportPage:
    """One page: what each part shows is computed once, for words and figures.

    short: whether it is report.md, the page that is read; else it is details.md
    own:   those of the names that are the study's own: report.md has them without their folded tables, details.md
           these tables alone
    """

    evidence: Evidence
    names: tuple[str, ...] = PARTS
    short: bool = False
    own: tuple[str, ...] = ()

    @cached_property
    def shown(self) -> list[tuple[Part[Any], Any, bool]]:
        """The parts that apply to this study, each with its info, and whether it is the study's own."""
        infos = [
            (part, self.evidence.once(name, part.info), name in self.own)
            for name, part in zip(self.names, parts(self.names, short=self.short), strict=True)
        ]
        return [(part, info, own) for part, info, own in infos if info is not None]

    def text(self) -> str:
        """Return the page as Markdown, with links relative to the results folder."""
        question = self.evidence.loaded.study.request.question or "(not stated in study.json)"
        top = [*_banner(self.evidence), "## Question", escape(question, 2000)] if self.short else [BACK]
        head = [_title(self.evidence, self.short), *top]
        return "\n\n".join([*head, *self._sections(), *([MORE] if self.short else [])]) + "\n"

    @styled
    def figures(self) -> dict[str, Figure]:
        """Draw every figure: file name without ending -> figure."""
        drawn = {
            name: draw(info)
            for part, info, own in self.shown
            if self.short or not own
            for name, draw in part.draw.items()
        }
        figures = {name: figure for name, figure in drawn.items() if figure is not None}
        if uniform_mix(self.evidence):
            note = plain_text(f'Effectively uniform: the mix of "{self.evidence.plan.control}"')
            for (
                figure
            ) in figures.values():  # top left: below the panels or to their right there may be a legend
                figure.suptitle(note, x=0.01, ha="left", fontsize=8, color="0.3")
        return figures

    def _sections(self) -> Iterator[str]:
        before = ""
        for part, info, own in self.shown:
            paragraphs = [paragraph for paragraph in part.section(info) if paragraph]
            if own:
                paragraphs = self._of_own(paragraphs)
            if paragraphs and part.title != before:
                yield f"## {escape(part.title)}"
                before = part.title
            yield from paragraphs

    def _of_own(self, paragraphs: list[str]) -> list[str]:
        """Return what this page shows of a part that is the study's own."""
        tables = [paragraph for paragraph in paragraphs if paragraph.startswith("<details>")]
        if not self.short:
            return tables
        shown = [paragraph for paragraph in paragraphs if paragraph not in tables]
        return [*shown, f"All numbers: `{DETAILS}`."] if tables else shown


def short_page(evidence: Evidence) -> ReportPage:
    """Return report.md: the answer, what it rests on, and the next run."""
    own = own_parts(evidence)
    # The mix gives way to what the study itself asks.
    rest = [name for name in SHORT if name not in own and not (own and name == "mix")]
    return ReportPage(evidence, (*rest[:1], *own, *rest[1:]), short=True, own=own)


def details_page(evidence: Evidence) -> ReportPage:
    """Return details.md: everything else."""
    own = own_parts(evidence)
    return ReportPage(evidence, (*own, *(name for name in PARTS if name not in own)), own=own)


def _title(evidence: Evidence, short: bool) -> str:
    on, plan = evidence.loaded.study.environment, evidence.plan
    where = f"{on.backbone.name} on {on.dataset.name}" if on.backbone.name and on.dataset.name else plan.name
    return f"# {escape(plan.study)}: {escape(where)}{'' if short else ', details'}"


def _banner(evidence: Evidence) -> list[str]:
    """Say first what makes the page less than a finished study of a mix that was learned."""
    checks = evidence.once("checks", caveats)
    lines = [f"**{caveat.finding}**" for caveat in checks if caveat.on_top]
    return ["\n>\n".join(f"> {line}" for line in lines)] if lines else []
