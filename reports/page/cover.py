"""The cover over the cases of a study: what holds over them, what each found, and a link to each page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from adalayers.results.interim_analyses import EXTENSIONS, PLANNED
from reports import names
from reports.evidence.across import DIFFERENCE, MEAN, SCORE, Across, Case, across, run_alike
from reports.evidence.evidence import Evidence
from reports.page.cases import distances, draw_distances, draw_profiles
from reports.page.finding import Finding, finding
from reports.page.index import ASIDE, state
from reports.reading.frames import records
from reports.render import render
from reports.tables.distances import correlations
from reports.words.labels import short

TITLES = {
    MEAN: "effect, averaged over cases",
    DIFFERENCE: "effect, against that in another case",
    SCORE: "score of a base model, on the same data",
}


@dataclass(frozen=True)
class CoverEntry:
    """One folder on the cover: `link` leads from the cover to its folder.

    A link is named by its folder, which a study set aside by `--fresh` does not share with its successor.
    """

    link: str
    evidence: Evidence

    @property
    def name(self) -> str:
        return self.link.rsplit("/", 1)[-1]

    @cached_property
    def finding(self) -> Finding:
        return finding(self.evidence)

    @property
    def state(self) -> str:
        return state(self.evidence.loaded.study)

    def mean(self, arm: str) -> Mapping[str, Any]:
        """Return the row of an arm, with its mean score over seeds."""
        return self.evidence.row_of(arm) or {"n": 0}


def across_cases(entries: Sequence[CoverEntry]) -> Across:
    """Return what can be claimed across the cases, those that `--fresh` set aside left out."""
    return across(_cases(entries))


def _cases(entries: Sequence[CoverEntry]) -> list[Case]:
    return [Case(entry.name, entry.evidence) for entry in entries if not ASIDE.search(entry.link)]


@dataclass(frozen=True)
class Cover:
    """The page.

    Attributes:
        title: Of the study.
        entries: What is on it, in order.
        problems: Names folders that could not be read.
        result: As from `across_cases`.
    """

    title: str
    entries: Sequence[CoverEntry]
    problems: Sequence[str]
    result: Across

    @cached_property
    def distances(self) -> pd.DataFrame:
        """The distances of the cases that were run alike, of a backbone and a dataset once."""
        alike, _ = run_alike(_cases(self.entries))
        known = ((*case.trained_on, case.name) for case in reversed(alike))
        own = {(backbone, data or name): name for backbone, data, name in known}.values()
        return distances([(entry.name, entry.evidence) for entry in self.entries if entry.name in own])

    @cached_property
    def figures(self) -> Mapping[str, Figure]:
        """The figures: file name without ending -> figure."""
        drawn = {
            "distances": draw_distances(self.distances) if len(self.distances) else None,
            "layer_profiles": draw_profiles([(entry.name, entry.evidence) for entry in self.entries]),
        }
        return {name: figure for name, figure in drawn.items() if figure is not None}

    def text(self) -> str:
        """Return the page as Markdown."""
        questions = (entry.evidence.request.question for entry in self.entries)
        arms = dict.fromkeys(
            (arm, names.arm(arm, entry.evidence.request))
            for entry in self.entries
            for arm in entry.evidence.arms["arm"]
        )
        return render(
            "cover.md.j2",
            title=self.title.replace("_", " "),
            questions=[question for question in dict.fromkeys(questions) if question],
            entries=self.entries,
            arms=list(arms),
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
