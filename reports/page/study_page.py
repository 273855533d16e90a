"""report.md, the page that is read: the finding, a figure, a table, what limits it, how it was done, the next run."""

from __future__ import annotations

import re

from matplotlib.figure import Figure

from reports.evidence.evidence import Evidence
from reports.names import title
from reports.page.details import SECTIONS, section_of
from reports.page.finding import finding
from reports.page.limits import limits
from reports.page.next_run import next_run
from reports.page.scores import scores
from reports.page.setup import setup
from reports.reading.frames import numbers
from reports.render import render
from reports.section import Page
from reports.tables.arms import confirmed

FOREST = "quality"
"""The section whose figure stands on the page of a study that names none with a figure."""
LIMITS, WORDS = 4, 450
"""Most limits on the page, and words outside tables and the next command above which it names fewer of them."""


def study_page(evidence: Evidence) -> Page:
    """Return the page of one study, and its figure."""
    study, found, lead = evidence.loaded.study, finding(evidence), _lead(evidence)
    said = {
        "title": title(study),
        "runs": study.runs,
        "dirty": study.environment.git.dirty,
        "finding": found,
        "own_draws": numbers(confirmed(evidence.trials), "draw").nunique() > 1,
        "lead": lead and lead[:2],
        "scores": scores(evidence, found.score),
        "setup": setup(evidence),
        "next": next_run(evidence),
        "problems": evidence.loaded.problems,
    }
    text, rules = "", limits(evidence)
    for most in range(LIMITS, 0, -1):
        text = render("page.md.j2", limits=rules[:most], **said)
        prose = re.sub(r"(?ms)^```.*?^```|^\|.*?$", "", text)
        if len(prose.split()) <= WORDS:
            break
    return Page(text, {lead[0]: lead[2]} if lead else {})


def _lead(evidence: Evidence) -> tuple[str, str, Figure] | None:
    """Return the name, the words and the figure of the study's own section that has one, else of the forest."""
    wanted = [name for name in evidence.request.parts if name in SECTIONS]
    for name in (*wanted, FOREST):
        shown = section_of(evidence, name)
        if shown and shown.figures:
            figure = next(iter(shown.figures))
            return figure, shown.alt, shown.figures[figure]
    return None
