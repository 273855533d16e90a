"""How far each case's data lies from the reference, and how well it is learned: a part of the cover."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from adalayers.results.intervals import Interval
from adalayers.results.measures import Measured, measured
from reports.drawing.pieces import legend_right, point
from reports.drawing.style import COLOURS, MARKERS, new_figure, pick, plain_text
from reports.evidence.evidence import Evidence
from reports.parts.cells import interval_cell
from reports.parts.part import figure_link
from reports.tables.distances import MIN_CASES, Correlation, Placed, correlations, reached
from reports.words.labels import SPLITS, short
from reports.words.text import NONE, code, count, escape, interval, listed, number, table


@dataclass(frozen=True)
class Info:
    """cases: those with measures; links: to their pages; reference: what their data was measured against."""

    cases: tuple[Placed, ...]
    links: tuple[str, ...]
    reference: str
    correlations: tuple[Correlation, ...]

    @property
    def measures(self) -> dict[str, Measured]:
        """The measures that some case has, by name: as a case with a value describes it, where there is one."""
        measures = [item for case in self.cases for item in case.measured.items()]
        return dict(measures) | {name: measure for name, measure in measures if measure.value is not None}

    @property
    def drawn(self) -> list[str]:
        """The measures that have a value in some case whose score is known."""
        scored = [case for case in self.cases if case.reached.mean is not None]
        return [name for name in self.measures if any(_distance(case, name) is not None for case in scored)]


def info(cases: Sequence[tuple[str, str, Evidence]]) -> Info | None:
    """Return what is shown of cases (name, link, evidence); None where nothing was measured."""
    placed, links, references = [], [], []
    for name, link, evidence in cases:
        all_measures = measured(evidence.loaded.results.folder)
        measures = {title: measure for title, measure in all_measures.items() if measure.distance}
        if measures:
            placed.append(_placed(name, evidence, measures))
            links.append(link)
            references.append(str(evidence.loaded.study.request.flags.get("reference_dataset") or ""))
    if not placed:
        return None
    reference = next(filter(None, references), "")
    return Info(tuple(placed), tuple(links), reference, tuple(correlations(placed)))


def section(info: Info) -> list[str]:
    paragraphs = [listed(_answer(info)), _scores(info), _measures(info)]
    if info.drawn:
        paragraphs.append(
            figure_link("distances", "Share of the gap closed against distance, a point per case")
        )
    methods = [
        f"*{escape(measure.title)}*: {escape(measure.how, 1000)}."
        for measure in info.measures.values()
        if measure.value is not None
    ]
    return [
        *paragraphs,
        f"Measured on training texts, before any training, against `{info.reference}`, which stands for the data that "
        f"the base model knows; that dataset itself is measured between two halves of its own. {' '.join(methods)} "
        "*Baseline*: what two samples of one dataset of this size give (for the masked-LM loss: the loss on the "
        "reference). *Gap closed*: (score - trivial) / (1 - trivial), one scale for all metrics. Datasets differ in "
        "more than their distance: a hard task close by can score below an easy one far away.",
    ]


def _answer(info: Info) -> list[str]:
    if not info.drawn:
        return ["**Nothing to compare**: no case has both a distance and a score."]
    lines = [_correlated(info, correlation) for correlation in info.correlations]
    if not lines:
        backbones = {case.backbone for case in info.cases}
        most = max(
            sum(_distance(case, name) is not None for case in info.cases if case.backbone == backbone)
            for name in info.drawn
            for backbone in backbones
        )
        lines = [
            f"**Does quality drop with distance?** {count(most, 'dataset')} cannot say: a claim takes at least "
            f"{MIN_CASES} with one backbone."
        ]
    return lines


def _correlated(info: Info, correlation: Correlation) -> str:
    by = f"by {escape(info.measures[correlation.measure].title)}, with {code(correlation.backbone)}"
    tau = f"Kendall's tau {number(correlation.tau, 2, signed=True)}"
    told = f"{tau}, n = {correlation.n} datasets, corrected p {correlation.p_adjusted:.3f}"
    if not correlation.significant:
        return f"**Not enough evidence** that quality depends on distance, {by} ({told})."
    return f"Quality **{'drops' if correlation.tau < 0 else 'rises'} with distance**, {by} ({told})."


def _scores(info: Info) -> str:
    rows = [
        [
            link,
            f"{SPLITS[case.split]} {escape(short(case.metric))}",
            number(case.trivial),
            interval_cell(case.score),
            interval_cell(case.reached),
        ]
        for case, link in zip(info.cases, info.links, strict=True)
    ]
    return table(["report", "score", "trivial model", "control, mean [95% interval]", "gap closed"], rows)


def _measures(info: Info) -> str:
    rows = []
    for case, link in zip(info.cases, info.links, strict=True):
        for name, measure in case.measured.items():
            title = f"{escape(info.measures[name].title)} ({escape(measure.unit)})"
            values = [f"none: {escape(measure.why)}", NONE, NONE, NONE]
            if measure.value is not None:
                examples = f"{measure.n:,} {escape(measure.counted)}"
                has_interval = measure.low is not None and measure.high is not None
                ends = f" {interval(measure.low or 0.0, measure.high or 0.0)}" if has_interval else ""
                values = [f"{number(measure.value)}{ends}", number(measure.nothing)]
                values += [number(measure.beyond), examples]
            rows.append([link, title, *values])
    return table(["report", "measure", "value [95% of draws]", "baseline", "above baseline", "n"], rows)


def draw(info: Info) -> Figure:
    """The share of the gap closed over each distance, a point per case."""
    names = info.drawn
    figure = new_figure(3.6)
    panels = figure.subplots(1, max(1, len(names)), sharey=True, squeeze=False)[0]
    handles = []
    for position, case in enumerate(info.cases):
        colour, marker = pick(COLOURS, position), pick(MARKERS, position + position // len(COLOURS))
        handles.append(Line2D([], [], color=colour, linestyle="", marker=marker, label=plain_text(case.name)))
        for axes, name in zip(panels, names, strict=False):
            distance, share = _distance(case, name), case.reached
            if distance is not None and share.mean is not None:
                low, high = (math.nan if end is None else end for end in (share.low, share.high))
                point(axes, distance, share.mean, low, high, colour, marker, along="y")
    for axes, name in zip(panels, names, strict=False):
        measure = info.measures[name]
        axes.set_xlabel(plain_text(f"{measure.title}\nabove its baseline\n({measure.unit})"))
        axes.axhline(0, color="0.3", linestyle="--", linewidth=1, zorder=1)
    panels[0].set_ylabel(
        "control: share of the gap closed between\na trivial model (0) and a perfect score (1)"
    )
    legend_right(figure, handles, "case")
    return figure


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


def _distance(case: Placed, name: str) -> float | None:
    return case.measured[name].beyond if name in case.measured else None
