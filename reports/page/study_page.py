"""report.md, the page that is read: the finding, a figure, a table, what limits it, how it was done, the next run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from matplotlib.figure import Figure

from reports.evidence.evidence import Evidence
from reports.page.details import SECTIONS, section_of
from reports.page.finding import finding
from reports.page.limits import limits
from reports.page.next_run import next_run
from reports.page.scores import scores
from reports.page.setup import setup
from reports.reading.frames import numbers
from reports.render import render
from reports.tables.arms import confirmed

FOREST = "quality"
"""The section whose figure stands on the page of a study that names none with a figure."""
LIMITS, WORDS = 4, 450
"""Most limits on the page, and words outside tables and the next command above which it names fewer of them."""


@dataclass(frozen=True)
class StudyPage:
    """The page of one study."""

    evidence: Evidence

    @property
    def title(self) -> str:
        study, environment = self.evidence.loaded.study, self.evidence.environment
        backbone, dataset = environment.backbone.name, environment.dataset.name
        where = f"{backbone} on {dataset}" if backbone and dataset else study.name
        label = study.request.label
        return f"{study.request.title or study.study.replace('_', ' ')}: {where}" + (
            f" ({label})" if label else ""
        )

    @cached_property
    def lead(self) -> tuple[str, str, Figure] | None:
        """The figure of the page, with its name and its words: of the study's own section, else the forest."""
        wanted = [name for name in self.evidence.request.parts if name in SECTIONS]
        for name in (*wanted, FOREST):
            shown = section_of(self.evidence, name)
            if shown and shown.figures:
                figure = next(iter(shown.figures))
                return figure, shown.alt, shown.figures[figure]
        return None

    @property
    def figures(self) -> Mapping[str, Figure]:
        return {self.lead[0]: self.lead[2]} if self.lead else {}

    def text(self) -> str:
        """Return the page as Markdown, with links relative to the results folder."""
        page = ""
        for most in range(LIMITS, 0, -1):
            page = self._text(most)
            prose = re.sub(r"(?ms)^```.*?^```|^\|.*?$", "", page)
            if len(prose.split()) <= WORDS:
                break
        return page

    def _text(self, most: int) -> str:
        evidence = self.evidence
        study, found = evidence.loaded.study, finding(evidence)
        return render(
            "page.md.j2",
            title=self.title,
            runs=study.runs,
            dirty=bool(study.environment.git.dirty),
            finding=found,
            own_draws=numbers(confirmed(evidence.trials), "draw").nunique() > 1,
            lead=self.lead[:2] if self.lead else None,
            scores=scores(evidence, found.score),
            planned=len(found.all),
            limits=limits(evidence)[:most],
            setup=setup(evidence),
            next=next_run(evidence),
            problems=evidence.loaded.problems,
        )
