"""Figures of a cover: distance against score, and where in depth the learned mix of each case puts its weight."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from adalayers.results.measures import measured
from reports.evidence.across import Case
from reports.page.finding import share_of_the_way
from reports.plots import legend, looks_of, panels, points, single, styled

MIN_CASES = 5
"""Fewest cases of a rank correlation: four in a perfect order still have a p value of 0.08."""


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
