"""The cover over the cases of a study: what holds over them, what each found, and a link to each page."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from adalayers.results.interim_analyses import EXTENSIONS, PLANNED
from adalayers.results.study_file import StudyFile
from reports import names
from reports.evidence.across import DIFFERENCE, MEAN, SCORE, Across, Case, across
from reports.page.cases import correlations, distances, draw_distances, draw_profiles
from reports.page.finding import finding
from reports.reading.frames import records
from reports.render import render
from reports.words import short

ASIDE = re.compile(r"\.\d{8}-\d{6}$")
"""How `--fresh` renames the study it sets aside: by the time."""
TITLES = {
    MEAN: "effect, averaged over cases",
    DIFFERENCE: "effect, against that in another case",
    SCORE: "score of a base model, on the same data",
}


@dataclass(frozen=True)
class Cover:
    """The page.

    Attributes:
        title: Of the study.
        cases: What is on it, in order; links lead from the page to their folders.
        problems: Names folders that could not be read.
    """

    title: str
    cases: Sequence[Case]
    problems: Sequence[str]

    @cached_property
    def result(self) -> Across:
        """What can be claimed across the cases, those that `--fresh` set aside left out."""
        return across(case for case in self.cases if not ASIDE.search(case.link))

    @cached_property
    def distances(self) -> pd.DataFrame:
        """The distances of the cases that were run alike, of a backbone and a dataset once."""
        known = ((*case.trained_on, case.name) for case in reversed(self.result.cases))
        own = {(backbone, data or name): name for backbone, data, name in known}.values()
        return distances([case for case in self.cases if case.name in own])

    @cached_property
    def figures(self) -> Mapping[str, Figure]:
        """The figures: file name without ending -> figure."""
        drawn = {
            "distances": draw_distances(self.distances) if len(self.distances) else None,
            "layer_profiles": draw_profiles(self.cases),
        }
        return {name: figure for name, figure in drawn.items() if figure is not None}

    def text(self) -> str:
        """Return the page as Markdown."""
        questions = dict.fromkeys(case.request.question for case in self.cases)
        arms = dict.fromkeys(
            (arm, names.arm(arm, case.request)) for case in self.cases for arm in case.evidence.arms["arm"]
        )
        entries = [
            {
                "name": case.name,
                "link": case.link,
                "state": state(case.study),
                "finding": finding(case.evidence),
            }
            for case in self.cases
        ]
        return render(
            "cover.md.j2",
            title=self.title.replace("_", " "),
            questions=[question for question in questions if question],
            entries=entries,
            arms=[(name, [case.evidence.row_of(arm) for case in self.cases]) for arm, name in arms],
            nothing=[
                case.name
                for case in self.result.cases
                if case.request.control in case.evidence.learned_nothing
            ],
            told=list(self._told()),
            left_out=self.result.left_out,
            distances=records(self.distances),
            correlations=correlations(self.distances) if len(self.distances) else [],
            figures=list(self.figures),
            problems=self.problems,
            error=100 * (PLANNED + EXTENSIONS) * (len(self.result.cases) + 1),
        )

    def _told(self) -> Iterator[Mapping[str, Any]]:
        """Yield each comparison: its kind, what is compared, of which cases, the claim and its verdict."""
        requests = {case.name: case.request for case in self.result.cases}
        for what, title in TITLES.items():
            for claim in (claim for claim in self.result.claims if claim.what == what):
                name = names.compared(claim, requests[claim.cases[0]])
                if what == SCORE:
                    name = names.arm(claim.arm, requests[claim.case])
                kind = f"{title} ({short(claim.metric)})"
                about = {"cases": claim.cases, "claim": claim, "words": names.VERDICTS[claim.told]}
                yield {"kind": kind, "name": name, **about}


def state(study: StudyFile) -> str:
    """Return how a study ended, and what makes it less than a finished one."""
    remarks = [study.runs.state or "state not stated"]
    remarks += ["smoke run"] if study.runs.smoke else []
    remarks += ["uncommitted changes"] if study.environment.git.dirty else []
    return ", ".join(remarks)
