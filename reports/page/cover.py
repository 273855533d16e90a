"""The cover over the cases of a study: what holds over them, what each found, and a link to each page."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from adalayers.results.interim_analyses import EXTENSIONS, PLANNED
from adalayers.results.measures import measured
from adalayers.results.study_file import StudyFile
from reports import names
from reports.evidence.across import MEAN, SCORE, Across, Case
from reports.page.finding import finding, share_of_the_way
from reports.page.limits import own_rates
from reports.plots import legend, looks_of, panels, points, styled
from reports.reading.frames import records
from reports.render import render
from reports.section import Page, summary
from reports.words import short

MIN_CASES = 5
"""Fewest cases of a rank correlation: four in a perfect order still have a p value of 0.08."""
TITLES = {
    MEAN: "effect, averaged over cases",
    SCORE: "score of a base model, on the same data",
}


def cover(title: str, cases: Sequence[Case], result: Across, problems: Sequence[str]) -> Page:
    """Return the page.

    Args:
        title: Of the study.
        cases: What is on it, in order; links lead from the page to their folders.
        result: What can be claimed across the cases.
        problems: Names folders that could not be read.
    """
    questions = dict.fromkeys(case.request.question for case in cases)
    arms: dict[str, str] = {}
    for case in cases:
        for arm in case.evidence.arms["arm"]:
            name = names.arm(arm, case.request)
            arms[arm] = _of_both(arms.get(arm, name), name)
    found = {case.name: finding(case.evidence) for case in cases}
    rows = {case.name: [case.evidence.row_of(arm) for arm in arms] for case in cases}
    scores = {name: [summary(row) if row and row["n"] else "" for row in own] for name, own in rows.items()}
    table = [["mean, 95% interval", *arms.values()]]
    table += [[f"{name} ({found[name].score})", *own] for name, own in scores.items()]
    if len(cases) <= len(arms):
        table = [list(column) for column in zip(*table, strict=True)]
    nothing = [case.name for case in result.cases if case.request.control in case.evidence.learned_nothing]
    pages = len(cases) + sum(len(group) > 1 for group in result.groups)
    far = distances(cases, result)
    drawn = {"distances": draw_distances(far), "layer_profiles": draw_profiles(cases)}
    figures = {name: figure for name, figure in drawn.items() if figure is not None}
    text = render(
        "cover.md.j2",
        title=title.replace("_", " "),
        questions=[question for question in questions if question],
        entries=[(case, state(case.study), found[case.name]) for case in cases],
        table=table,
        nothing=nothing,
        told=list(_told(result)),
        own_rates=[case.name for case in result.cases if own_rates(case.evidence)],
        left_out=result.left_out,
        distances=records(far),
        correlations=correlations(far),
        figures=list(figures),
        problems=problems,
        error=min(100, 100 * (PLANNED + EXTENSIONS) * pages),
    )
    return Page(text, figures)


def _told(result: Across) -> Iterator[Mapping[str, Any]]:
    """Yield each judged comparison: its kind, what is compared, of which cases, the claim, its verdict, and, of a mean,
    the ends between which the cases lie."""
    by_name = {case.name: case for case in result.cases}
    judged = (claim for claim in result.claims if claim.primary)
    for claim in sorted(judged, key=lambda claim: [*TITLES].index(claim.what)):
        than, request = "", by_name[claim.cases[0]].request
        if claim.what == SCORE:
            name = names.arm(claim.arm, by_name[claim.case].request)
        else:
            called = [names.compared(claim, by_name[case].request) for case in claim.cases]
            name = functools.reduce(_of_both, called)
            than = names.arm(claim.control, request) if claim.control == request.control else ""
        metric, words = short(claim.metric), names.VERDICTS[claim.told]
        about = {"cases": claim.cases, "claim": claim, "metric": metric, "words": words, "than": than}
        about["ends"] = (min(claim.by_case), max(claim.by_case)) if claim.by_case else None
        yield {"kind": f"{TITLES[claim.what]} ({metric})", "name": name, **about}


def _of_both(name: str, other: str) -> str:
    """Return what an arm is called in two cases: of a layer that is the last of one base model alone, its number."""
    numbered = (each.replace(names.LAST, "") for each in (name, other))
    return name if name == other else max(numbered, key=len)


def state(study: StudyFile) -> str:
    """Return how a study ended, and what makes it less than a finished one."""
    smoke = "smoke run" if study.runs.smoke else ""
    dirty = "uncommitted changes" if study.environment.git.dirty else ""
    return ", ".join(filter(None, [study.runs.state or "state not stated", smoke, dirty]))


def distances(cases: Iterable[Case], result: Across) -> pd.DataFrame:
    """Return how far the data of the cases that were run alike lies from the reference, and how well it is learned.

    A row per case and measure of a distance, of a backbone and a dataset once: series (the case), backbone, reference,
    measure, its title, x (the distance beyond what there is where there is nothing to find), and mean, low, high, n:
    how much of the way from the trivial model's score to a perfect one its control goes, one scale for all metrics.
    """
    known = ((*case.trained_on, case.name) for case in reversed(result.cases))
    once = {(backbone, data or name): name for backbone, data, name in known}.values()
    rows = []
    for evidence, name in ((case.evidence, case.name) for case in cases if case.name in once):
        request, environment = evidence.request, evidence.environment
        trivial, score = environment.dataset.baseline.get(evidence.split), evidence.row_of(request.control)
        if score is None:
            continue
        reached = [share_of_the_way(score[end], trivial, request.metric) for end in ("mean", "low", "high")]
        about = [name, environment.backbone.name, request.own.get("reference_dataset"), *reached, score["n"]]
        measures = measured(evidence.loaded.folder).values()
        rows += [[*about, own, own.title, own.beyond] for own in measures if own.distance]
    columns = ["series", "backbone", "reference", "mean", "low", "high", "n", "measure", "title", "x"]
    return pd.DataFrame(rows, columns=columns)


def correlations(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Return Kendall's tau of each measure with the share reached, over the cases of one backbone that have both.

    At least `MIN_CASES`: backbone, measure, n, tau, and the p value times the number of those that were tested.

    Args:
        rows: A row per case and measure: backbone, title (of the measure), x (the distance), mean (the share).
    """
    tested = []
    groups = rows.dropna(subset=["x", "mean"]).groupby(["backbone", "title"], sort=False)
    for (backbone, title), own in groups:
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
    groups = rows.assign(title=[f"{own.title}, above its baseline ({own.unit})" for own in rows["measure"]])
    titles = list(dict.fromkeys(groups["title"]))
    figure, shown = panels(titles, 3.0, y="share of the gap closed, 0: a trivial model", share=False)
    for axes, title in zip(shown, titles, strict=True):
        points(groups[groups["title"] == title], axes, scale="linear", joined=False, looks=looks)
    legend(figure, looks, "case: the control", lines=False)
    return figure


@styled
def draw_profiles(cases: Sequence[Case]) -> Figure | None:
    """Mix weights over relative depth, a panel per dataset, a line per case, 1 being the uniform mix."""
    profiles = [
        case.evidence.profile.assign(
            series=case.name, x=case.evidence.profile["depth"], dataset=case.evidence.environment.dataset.name
        )
        for case in cases
        if len(case.evidence.profile)
    ]
    if not profiles:
        return None
    rows = pd.concat(profiles)
    looks = looks_of(rows["series"])
    groups = {str(name): own for name, own in rows.groupby("dataset", sort=False)}
    x, y = "relative depth (0: embeddings, 1: last layer)", "weight x number of states (1: uniform)"
    figure, shown = panels([*groups] if len(groups) > 1 else [""], 3.0, x=x, y=y)
    for axes, own in zip(shown, groups.values(), strict=True):
        points(own, axes, scale="linear", looks=looks)
        axes.axhline(1, color="0.3", linestyle="--", linewidth=1, zorder=1)
        axes.set_ylim(bottom=0)
    legend(figure, looks, "best learned mix of each case")
    return figure
