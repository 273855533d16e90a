"""The search's trials one by one, stopped ones apart, and all at the last epoch that all of them reached."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from reports.drawing.axes import FactorAxis
from reports.drawing.pieces import legend_right, unit_below
from reports.drawing.style import COLOURS, MARKERS, new_figure, pick, plain_text, say_empty, styled
from reports.evidence import rungs, tables
from reports.evidence.evidence import Evidence
from reports.parts.part import SHOWN, Part, figure_link
from reports.reading.factors import column, in_order, level, short
from reports.reading.frames import records
from reports.reading.load import Plan
from reports.words.text import NONE, code, count, escape, folded, number, table

NO_SEARCH = "Nothing to draw: no completed or stopped trials in the search stage."


@dataclass(frozen=True)
class Info:
    """trials, counts: as from `tables.search`, `tables.search_counts`; lost: trials without a result.

    bands, agreement: as from `rungs.by_band`, `rungs.agreement`
    """

    trials: pd.DataFrame
    counts: pd.DataFrame
    lost: int
    rung: rungs.Rung
    bands: pd.DataFrame
    agreement: tuple[float | None, int]
    plan: Plan
    score: str


def info(evidence: Evidence) -> Info:
    trials, every, rung, plan = evidence.search, evidence.trials, evidence.rung, evidence.plan
    counts = tables.search_counts(every, plan)
    return Info(
        trials=trials,
        counts=counts,
        lost=int((every["stage"] == "search").sum()) - len(trials),
        rung=rung,
        bands=rungs.by_band(trials, rung, plan, counts["band"]),
        agreement=rungs.agreement(trials, rung),
        plan=plan,
        score=evidence.chosen,
    )


def section(info: Info) -> list[str]:
    trials, plan = info.trials, info.plan
    counts = trials["status"].value_counts()
    paragraphs = [
        f"{count(counts.get('completed', 0), 'trial')} completed, {counts.get('stopped', 0)} stopped early "
        f"by the scheduler, {info.lost} without a result. Each is one configuration with one seed: n = 1, no "
        "interval. A stopped trial's score is what it had reached by then; it is never averaged or ranked "
        "with those of completed ones.",
        "Nuisance hyperparameters vary from point to point: this is a map of where the search went, not a "
        "comparison.",
        *_picture(plan),
    ]
    if trials.empty:
        return paragraphs
    by_band = [
        [escape(row["band"]), str(row["completed"]), str(row["stopped"]), number(row["best"])]
        for row in records(info.counts)
    ]
    reached = info.rung.scores
    at_rung = NONE if info.rung.epoch is None else f"at epoch {info.rung.epoch:g}"
    names = _names(plan)
    one_by_one = [
        [code(row["trial_id"]), "stopped early" if row["status"] == "stopped" else row["status"]]
        + [_brief(row[column(name)]) for name in names]
        + [number(reached.get(row["trial_id"]))]
        + [number(row["score"]) + (" so far" if row["status"] == "stopped" else ""), number(row["epochs"], 0)]
        for row in records(trials.head(SHOWN))
    ]
    rest = len(trials) - len(one_by_one)
    return [
        *paragraphs,
        table([_band(plan), "completed", "stopped early", "best validation score among completed"], by_band),
        *_at_rung(info),
        folded(
            f"Trials one by one, the best {len(one_by_one)} of {len(trials)}"
            if rest
            else "Trials one by one",
            len(one_by_one),
            table(
                [
                    *("trial", "status"),
                    *(escape(plan.symbol(name)) if name in _factors(plan) else name for name in names),
                    *(at_rung, "validation score", "epochs"),
                ],
                one_by_one,
            ),
            f"{count(rest, 'more trial')} in `trials.csv`." if rest else "",
        ),
    ]


def _at_rung(info: Info) -> list[str]:
    """All search trials at the last epoch that all of them reached: the only place where they can be compared."""
    rung, bands = info.rung, info.bands
    if rung.epoch is None:
        return [
            "No trial of the search has a history of scores, so they cannot be compared at an equal epoch."
        ]
    correlation, n = info.agreement
    rows = [
        [
            escape(row["band"]),
            str(row["completed"]),
            str(row["stopped"]),
            number(row["median"]),
            number(row["best"]),
        ]
        for row in records(bands)
    ]
    ended, stopped = int(bands["completed"].sum()), int(bands["stopped"].sum())
    lost = f", {rung.without} without history" if rung.without else ""
    paragraphs = [
        f"**All at epoch {rung.epoch:g}**, the last that every one of these trials evaluated: best validation score up "
        f"to then, of {count(ended + stopped, 'trial')} ({ended} completed, {stopped} stopped later{lost}). Stopped "
        "trials count here with what they had shown, and with nothing that they were not given time to show.",
        table(
            [_band(info.plan), "completed", "stopped later", "median at that epoch", "best at that epoch"],
            rows,
        ),
    ]
    if correlation is not None:
        paragraphs.append(
            f"Among the {n} completed trials the order at that epoch and the order at the end have a rank correlation "
            f"of {number(correlation, 2)}: 1 would mean that stopping there loses nothing."
        )
    return paragraphs


def _picture(plan: Plan) -> list[str]:
    """Return the figure's link, where there is a factor to draw against."""
    if not plan.factors:
        return []
    text = f"Validation score of every search trial against {short(plan.factors[0])}"
    return [figure_link("search_trials", text)]


def _factors(plan: Plan) -> list[str]:
    return [factor.name for factor in plan.factors]


def _names(plan: Plan) -> list[str]:
    return list(dict.fromkeys((*_factors(plan), *plan.nuisance)))


def _band(plan: Plan) -> str:
    """Return what the bands of `tables.search` are bands of."""
    factors = plan.factors[1:] or plan.factors
    return escape(short(factors[0])) if factors else "trials"


def _brief(value: Any) -> str:
    known = level(value)
    return NONE if known is None else f"{known:.3g}" if isinstance(known, float) else escape(known)


@styled
def draw(info: Info) -> Figure | None:
    """Every trial of the search along the first factor, marked by its band of the second; stopped ones hollow, small.

    None without a factor.
    """
    if not info.plan.factors:
        return None
    figure = new_figure(3.9)
    axes = figure.add_subplot()
    first = info.plan.factors[0]
    shown = info.trials.dropna(subset=[column(first.name), "score"])
    axis = FactorAxis(first, shown[column(first.name)])
    if first.scale == "log" and axis.scale != "choice":
        shown = shown[shown[column(first.name)].astype(float) > 0]
        axis = FactorAxis(first, shown[column(first.name)])
    if shown.empty:
        say_empty(axes, NO_SEARCH)
        return figure
    marked = info.plan.factors[1:] or info.plan.factors
    names = list(dict.fromkeys(in_order(shown, marked[:1])["band"]))
    for place, name in enumerate(names):
        colour, marker = pick(COLOURS, place), pick(MARKERS, place)
        of_band = shown[shown["band"] == name]
        for status, face, size in (("completed", colour, 52), ("stopped", "none", 26)):
            rows = of_band[of_band["status"] == status]
            axes.scatter(
                [axis.at(value) for value in rows[column(first.name)]],
                rows["score"],
                marker=marker,
                s=size,
                facecolors=face,
                edgecolors=colour,
                linewidths=1.2,
            )
    handles = [
        Line2D(
            [],
            [],
            linestyle="none",
            marker=pick(MARKERS, i),
            color=pick(COLOURS, i),
            label=plain_text(f"{short(marked[0])} = {name}"),
        )
        for i, name in enumerate(names)
    ]
    grey: dict[str, Any] = {"linestyle": "none", "marker": "o", "color": "0.3"}
    handles += [Line2D([], [], **grey, label="filled: completed")]
    handles += [
        Line2D(
            [],
            [],
            **grey,
            markerfacecolor="none",
            markersize=4.5,
            label="hollow: stopped early\n(score so far)",
        )
    ]
    legend_right(figure, handles, "search trials, one seed each")
    axis.finish(axes, tick_levels=False)
    axes.set_ylabel(unit_below(info.score))
    return figure


PART = Part("Search (exploratory)", info, section, {"search_trials": draw})
