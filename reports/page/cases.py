"""Figures of a cover: distance against score, and where in depth the learned mix of each case puts its weight."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure

from adalayers.results.intervals import Interval
from adalayers.results.measures import Measured, measured
from reports.evidence.evidence import Evidence
from reports.plots import legend, looks_of, panels, points, single, styled
from reports.tables.distances import Correlation, Placed, correlations, reached

Named = Sequence[tuple[str, Evidence]]
"""Name of a case -> what is known of it."""


@dataclass(frozen=True)
class Distances:
    """How far each case's data lies from the reference, and how well it is learned.

    measures: as a case with a value describes each, by name; reference: what data was measured against
    """

    cases: tuple[Placed, ...]
    reference: str
    measures: dict[str, Measured]
    correlations: tuple[Correlation, ...]

    @property
    def rows(self) -> list[tuple[str, Placed, Measured]]:
        """A row per case and measure: what it is called, and what it is there."""
        return [
            (f"{self.measures[name].title} ({self.measures[name].unit})", case, measure)
            for case in self.cases
            for name, measure in case.measured.items()
        ]


def distances(cases: Named) -> Distances | None:
    """Return what was measured of the data of cases; None where nothing was."""
    placed, reference = [], ""
    for name, evidence in cases:
        found = measured(evidence.loaded.results.folder)
        measures = {title: measure for title, measure in found.items() if measure.distance}
        if measures:
            placed.append(_placed(name, evidence, measures))
            reference = reference or evidence.loaded.study.request.own.get("reference_dataset", "")
    every = [item for case in placed for item in case.measured.items()]
    told = dict(every) | {name: measure for name, measure in every if measure.value is not None}
    return Distances(tuple(placed), reference, told, tuple(correlations(placed))) if placed else None


def _placed(name: str, evidence: Evidence, measures: dict[str, Measured]) -> Placed:
    row = evidence.row_of(evidence.plan.control) or {"n": 0}
    mean, low, high = (
        None if math.isnan(row.get(key, math.nan)) else row[key] for key in ("mean", "low", "high")
    )
    score = Interval(mean, low, high, int(row["n"]))
    environment, metric = evidence.loaded.study.environment, evidence.plan.metric
    trivial = environment.dataset.baseline.get(evidence.split)
    share = reached(score, trivial, metric)
    return Placed(name, environment.backbone.name, measures, metric, evidence.split, score, trivial, share)


@styled
def draw_distances(found: Distances) -> Figure | None:
    """The share of the gap closed over each distance, a point per case."""
    rows = pd.DataFrame(
        [
            (name, measure.beyond, case.reached.mean, case.reached.low, case.reached.high, case.name)
            for case in found.cases
            for name, measure in case.measured.items()
        ],
        columns=["measure", "x", "mean", "low", "high", "series"],
    ).dropna(subset=["x", "mean"])
    if rows.empty:
        return None
    looks = looks_of(rows["series"])
    names = list(dict.fromkeys(rows["measure"]))
    titles = [
        f"{found.measures[name].title}, above its baseline ({found.measures[name].unit})" for name in names
    ]
    figure, shown = panels(titles, 3.0, y="share of the gap closed, 0: a trivial model", share=False)
    for axes, name in zip(shown, names, strict=True):
        points(rows[rows["measure"] == name], axes, scale="linear", joined=False, looks=looks)
    legend(figure, looks, "case: the control", lines=False)
    return figure


@styled
def draw_profiles(cases: Named) -> Figure | None:
    """Mix weights over relative depth, a line per case, 1 being the uniform mix."""
    profiles = [
        evidence.profile.assign(series=name, x=evidence.profile["depth"], mean=evidence.profile["relative"])
        for name, evidence in cases
        if len(evidence.profile)
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
