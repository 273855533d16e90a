"""The cover over the cases of a study: what holds over them, what each found, and a link to each page."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from adalayers.results.interim_analyses import EXTENSIONS, PLANNED
from adalayers.results.measures import measured
from adalayers.results.study_file import StudyFile
from reports import names
from reports.evidence.across import DIFFERENCE, MEAN, SCORE, Across, Case, across
from reports.page.finding import finding, share_of_the_way
from reports.plots import legend, looks_of, panels, points, single, styled
from reports.reading.frames import records
from reports.render import render
from reports.words import short

ASIDE = re.compile(r"\.\d{8}-\d{6}$")
"""How `--fresh` renames the study it sets aside: by the time."""
MIN_CASES = 5
"""Fewest cases of a rank correlation: four in a perfect order still have a p value of 0.08."""
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
        return render(
            "cover.md.j2",
            title=self.title.replace("_", " "),
            questions=[question for question in questions if question],
            entries=[(case, state(case.study), finding(case.evidence)) for case in self.cases],
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


def distances(cases: Sequence[Case]) -> pd.DataFrame:
    """Return how far each case's data lies from the reference, and how well it is learned.

    A row per case and measure of a distance: series (the case), backbone, reference, the fields of `Measured`, but
    `over` for its interval, x (the distance beyond what there is where there is nothing to find), and mean, low, high,
    n: how much of the way from the trivial model's score to a perfect one its control goes, one scale for all metrics.
    """
    rows = []
    for case in cases:
        evidence = case.evidence
        environment, metric = evidence.environment, evidence.request.metric
        trivial, score = (
            environment.dataset.baseline.get(evidence.split),
            evidence.row_of(evidence.request.control),
        )
        reached = {
            end: None if score is None else share_of_the_way(score[end], trivial, metric)
            for end in ("mean", "low", "high")
        }
        about = {"series": case.name, "backbone": environment.backbone.name, "n": score["n"] if score else 0}
        about["reference"] = evidence.request.own.get("reference_dataset")
        for measure in measured(evidence.loaded.folder).values():
            if measure.distance:
                own = dataclasses.asdict(measure) | {"over": (measure.low, measure.high), "of": measure.n}
                rows.append({**own, **about, **reached, "x": measure.beyond})
    return pd.DataFrame(rows)


def correlations(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Return Kendall's tau of each measure with the share reached, over the cases of one backbone that have both.

    At least `MIN_CASES`: backbone, measure, n, tau, and the p value times the number of those that were tested.

    Args:
        rows: A row per case and measure: backbone, title (of the measure), x (the distance), mean (the share).
    """
    tested = []
    for (backbone, title), own in rows.dropna(subset=["x", "mean"]).groupby(
        ["backbone", "title"], sort=False
    ):
        if len(own) >= MIN_CASES and own["x"].nunique() > 1 and own["mean"].nunique() > 1:
            tau, p_value = stats.kendalltau(own["x"], own["mean"])
            tested.append({"backbone": backbone, "measure": title, "n": len(own), "tau": tau, "p": p_value})
    return [{**one, "p": min(1.0, one["p"] * len(tested))} for one in tested]


@styled
def draw_distances(rows: pd.DataFrame) -> Figure | None:
    """The share of the gap closed over each distance, a point per case."""
    rows = rows.astype({"x": float, "mean": float}).dropna(subset=["x", "mean"])
    if rows.empty:
        return None
    looks = looks_of(rows["series"])
    groups = rows.assign(title=rows["title"] + ", above its baseline (" + rows["unit"] + ")")
    titles = list(dict.fromkeys(groups["title"]))
    figure, shown = panels(titles, 3.0, y="share of the gap closed, 0: a trivial model", share=False)
    for axes, title in zip(shown, titles, strict=True):
        points(groups[groups["title"] == title], axes, scale="linear", joined=False, looks=looks)
    legend(figure, looks, "case: the control", lines=False)
    return figure


@styled
def draw_profiles(cases: Sequence[Case]) -> Figure | None:
    """Mix weights over relative depth, a line per case, 1 being the uniform mix."""
    profiles = [
        case.evidence.profile.assign(series=case.name, x=case.evidence.profile["depth"])
        for case in cases
        if len(case.evidence.profile)
    ]
    if not profiles:
        return None
    rows = pd.concat(profiles)
    looks = looks_of(rows["series"])
    figure, axes = single(
        3.4, "relative depth (0: embeddings, 1: last layer)", "weight x number of states (1: uniform)"
    )
    points(rows, axes, scale="linear", looks=looks)
    axes.axhline(1, color="0.3", linestyle="--", linewidth=1, zorder=1)
    axes.set_ylim(bottom=0)
    legend(figure, looks, "best learned mix of each case")
    return figure
