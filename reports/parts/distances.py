"""How far each case's data lies from the reference, and how well it is learned all the same: a part of the cover."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from adalayers.results.measures import Measured, measured
from reports.drawing.pieces import legend_right, point
from reports.drawing.style import COLOURS, MARKERS, new_figure, pick, plain_text, styled
from reports.evidence.distances import LEAST, Correlation, Placed, correlations, reached
from reports.evidence.evidence import Evidence
from reports.evidence.statistics import Interval
from reports.parts.part import figure_link
from reports.words.labels import SPLITS, short
from reports.words.text import NONE, code, count, escape, estimate, listed, number, several, table


@dataclass(frozen=True)
class Info:
    """cases: those with measures; links: to their pages; reference: what their data was measured against."""

    cases: tuple[Placed, ...]
    links: tuple[str, ...]
    reference: str
    correlations: tuple[Correlation, ...]

    @property
    def titles(self) -> dict[str, Measured]:
        """The measures that some case has, by name, each as one of the cases describes it."""
        every = {name: of for case in self.cases for name, of in case.measured.items()}
        known = {
            name: of for case in self.cases for name, of in case.measured.items() if of.value is not None
        }
        return {**every, **known}

    @property
    def drawn(self) -> list[str]:
        """The measures that have a value in some case whose score is known."""
        return [
            name
            for name in self.titles
            if any(_at(case, name) is not None and case.reached.mean is not None for case in self.cases)
        ]


def info(cases: Sequence[tuple[str, str, Evidence]]) -> Info | None:
    """Return what is shown of cases (name, link, evidence); None where nothing was measured."""
    placed, links, reference = [], [], ""
    for name, link, evidence in cases:
        every = measured(evidence.loaded.results.folder)
        found = {measure: of for measure, of in every.items() if of.distance}
        if found:
            placed.append(_placed(name, evidence, found))
            links.append(link)
            reference = reference or str(evidence.loaded.study.request.flags.get("reference_dataset") or "")
    return Info(tuple(placed), tuple(links), reference, tuple(correlations(placed))) if placed else None


def section(info: Info) -> list[str]:
    paragraphs = [listed(_answer(info)), _scores(info), _measures(info)]
    if info.drawn:
        paragraphs.append(
            figure_link("distances", "Share of the way to a perfect score over distance, a point per case")
        )
    return [*paragraphs, _how(info)]


def _answer(info: Info) -> list[str]:
    if not info.drawn:
        return ["**Nothing to compare**: no case has both a distance and a score."]
    most = max(
        sum(_at(case, name) is not None for case in info.cases if case.backbone == backbone)
        for name in info.drawn
        for backbone in {case.backbone for case in info.cases}
    )
    lines = (
        [_correlated(info, found) for found in info.correlations]
        if info.correlations
        else [
            f"**Does quality drop with distance?** {count(most, 'dataset')} cannot say: a claim takes at least "
            f"{LEAST} with one backbone."
        ]
    )
    reached = several([f"{code(case.name)} {_percent(case.reached.mean)}" for case in info.cases], 12)
    lines.append(f"Of the way from a trivial model to a perfect one, the control goes: {reached}.")
    for name in info.drawn:
        known = [case for case in info.cases if _at(case, name) is not None]
        ordered = sorted(known, key=lambda case: _at(case, name) or 0.0)
        told = several([f"{code(case.name)} {number(_at(case, name), 2)}" for case in ordered], 12)
        of = info.titles[name]
        lines.append(
            f"Distance from {code(info.reference)} by **{escape(of.title)}** ({escape(of.unit)}), nearest first: "
            f"{told}."
        )
    return lines


def _correlated(info: Info, found: Correlation) -> str:
    by = f"by {escape(info.titles[found.measure].title)}, with {code(found.backbone)}"
    tau = f"Kendall's tau {number(found.tau, 2, signed=True)}"
    told = f"{tau}, n = {found.n} datasets, corrected p {found.p_adjusted:.3f}"
    if not found.found:
        return f"**Not enough evidence** that quality goes with distance, {by} ({told})."
    return f"Quality **{'drops' if found.tau < 0 else 'rises'} with distance**, {by} ({told})."


def _scores(info: Info) -> str:
    rows = [
        [
            link,
            f"{SPLITS[case.split]} {escape(short(case.metric))}",
            number(case.trivial),
            _interval(case.score),
            _interval(case.reached),
        ]
        for case, link in zip(info.cases, info.links, strict=True)
    ]
    heads = ["report", "score", "trivial model", "control, mean [95% interval]", "share of the way to 1"]
    return table(heads, rows)


def _measures(info: Info) -> str:
    rows = []
    for case, link in zip(info.cases, info.links, strict=True):
        for name, of in case.measured.items():
            values = [_value(of), number(of.nothing, 3), number(of.beyond, 3), f"{of.n:,} {escape(of.of)}"]
            rows.append(
                [link, f"{escape(info.titles[name].title)} ({escape(of.unit)})"]
                + (values if of.value is not None else [f"none: {escape(of.why)}", NONE, NONE, NONE])
            )
    heads = [
        "report",
        "measure",
        "value [95% of draws]",
        "where there is nothing to find",
        "beyond that",
        "n",
    ]
    return table(heads, rows)


def _how(info: Info) -> str:
    told = " ".join(
        f"*{escape(of.title)}*: {escape(of.how, 1000)}."
        for of in info.titles.values()
        if of.value is not None
    )
    return (
        f"Measured on training texts, before anything was trained, against `{info.reference}`, which stands for the "
        "data that the base model knows; that dataset itself is measured between two halves of its own. "
        f"{told} *Where there is nothing to find*: what data of this size gives between two samples of one dataset "
        "(for the masked-LM loss: the loss on the reference). *Share of the way*: (score - trivial) / (1 - trivial), "
        "which puts metrics of different datasets on one scale. Datasets differ in more than their distance: a hard "
        "task close by can score below an easy one far away."
    )


@styled
def draw(info: Info) -> Figure:
    """The share reached over each distance, a point per case."""
    names = info.drawn
    figure = new_figure(3.6)
    panels = figure.subplots(1, max(1, len(names)), sharey=True, squeeze=False)[0]
    handles = []
    for place, case in enumerate(info.cases):
        colour, marker = pick(COLOURS, place), pick(MARKERS, place + place // len(COLOURS))
        handles.append(Line2D([], [], color=colour, linestyle="", marker=marker, label=plain_text(case.name)))
        for axes, name in zip(panels, names, strict=False):
            distance, of = _at(case, name), case.reached
            if distance is not None and of.mean is not None:
                low, high = (math.nan if end is None else end for end in (of.low, of.high))
                point(axes, distance, of.mean, low, high, colour, marker, along="y")
    for axes, name in zip(panels, names, strict=False):
        titled = info.titles[name]
        axes.set_xlabel(plain_text(f"{titled.title}\nbeyond where there is nothing to find\n({titled.unit})"))
        axes.axhline(0, color="0.3", linestyle="--", linewidth=1, zorder=1)
    panels[0].set_ylabel("control: share of the way from\na trivial model (0) to a perfect one (1)")
    legend_right(figure, handles, "case")
    return figure


def _placed(name: str, evidence: Evidence, found: dict[str, Measured]) -> Placed:
    row = evidence.row_of(evidence.plan.control) or {"mean": None, "low": None, "high": None, "n": 0}
    mean, low, high = (
        None if row[key] is None or row[key] != row[key] else row[key] for key in ("mean", "low", "high")
    )
    score = Interval(mean, low, high, int(row["n"]))
    trivial = evidence.loaded.study.environment.dataset.baseline.get(evidence.split)
    metric = evidence.plan.metric
    backbone = evidence.loaded.study.environment.backbone.name
    return Placed(
        name, backbone, found, metric, evidence.split, score, trivial, reached(score, trivial, metric)
    )


def _at(case: Placed, name: str) -> float | None:
    of = case.measured.get(name)
    return None if of is None else of.beyond


def _percent(share: float | None) -> str:
    return "score not known" if share is None else f"{share:.0%}"


def _interval(of: Interval) -> str:
    return estimate(of.mean, of.low, of.high, of.n)


def _value(of: Measured) -> str:
    ends = "" if of.low is None or of.high is None else f" [{number(of.low)}, {number(of.high)}]"
    return f"{number(of.value)}{ends}"
