"""The search's trials one by one, stopped ones apart, and all at the last epoch that all of them reached."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from reports.drawing.axes import FactorAxis
from reports.drawing.pieces import legend_right, unit_below
from reports.drawing.style import COLOURS, MARKERS, new_figure, pick, plain_text, styled
from reports.evidence import rungs, tables
from reports.evidence.evidence import Evidence
from reports.parts.part import SHOWN, Part, figure_link
from reports.reading.factors import column, in_order, level, short
from reports.reading.frames import records
from reports.reading.load import Plan
from reports.words.text import NONE, code, count, escape, folded, number, table

HOLLOW: dict[str, Any] = {"markerfacecolor": "none", "markersize": 4.5}
"""How trials that were stopped are drawn."""


@dataclass(frozen=True)
class Info:
    """What the section says.

    Attributes:
        trials: As from `tables.search`.
        counts: As from `tables.search_counts`.
        lost: How many trials have no result.
        bands: As from `rungs.by_band`.
        agreement: As from `rungs.agreement`.
        score: Label of the selection score.
    """

    trials: pd.DataFrame
    counts: pd.DataFrame
    lost: int
    rung: rungs.Rung
    bands: pd.DataFrame
    agreement: tuple[float | None, int]
    plan: Plan
    score: str


def info(evidence: Evidence) -> Info | None:
    """None without trials of a search."""
    trials, rung, plan = evidence.search, evidence.rung, evidence.plan
    searched = int((evidence.trials["stage"] == "search").sum())
    counts = tables.search_counts(evidence.trials, plan)
    bands = rungs.by_band(trials, rung, plan, counts["band"])
    agreement = rungs.agreement(trials, rung)
    lost = searched - len(trials)
    return Info(trials, counts, lost, rung, bands, agreement, plan, evidence.chosen) if searched else None


def section(info: Info) -> list[str]:
    trials, rung = info.trials, info.rung
    statuses = trials["status"].value_counts()
    paragraphs = [
        f"{count(statuses.get('completed', 0), 'trial')} completed, {statuses.get('stopped', 0)} stopped early "
        f"by the scheduler, {info.lost} without a result; one seed each, no intervals. Other hyperparameters vary from "
        "point to point. A stopped trial's score is what it had reached by then: it is never averaged or ranked with "
        "those of completed trials.",
    ]
    if _drawn(info) is not None:
        text = f"Validation score of every search trial against {short(info.plan.factors[0])}"
        paragraphs.append(figure_link("search_trials", text))
    if trials.empty:
        return paragraphs
    return [
        *paragraphs,
        *_by_band(info),
        _one_by_one(info, f"at epoch {rung.epoch:g}" if rung.epoch else NONE),
    ]


def _by_band(info: Info) -> list[str]:
    """Return the trials by band, at the last epoch that all of them evaluated too: where they can be compared."""
    factors, rung = info.plan.factors[1:] or info.plan.factors, info.rung
    at_rung = {row["band"]: [number(row["median"]), number(row["best"])] for row in records(info.bands)}
    heads = [escape(short(factors[0])) if factors else "trials", "completed", "stopped early"]
    heads += ["best score of the completed"]
    rows = [
        [escape(row["band"]), str(row["completed"]), str(row["stopped"]), number(row["best"])]
        + (at_rung.get(row["band"], [NONE, NONE]) if rung.epoch is not None else [])
        for row in records(info.counts)
    ]
    if rung.epoch is None:
        why = "No trial has a history of scores, so trials cannot be compared at an equal epoch."
        return [table(heads, rows), why]
    heads += [f"median at epoch {rung.epoch:g}", f"best at epoch {rung.epoch:g}"]
    lost = f" {count(rung.without, 'trial')} without history left out." if rung.without else ""
    correlation, n = info.agreement
    agreement = (
        ""
        if correlation is None
        else f" The {n} completed trials have a rank correlation of {number(correlation, 2)} between that epoch and "
        "the end; 1 would mean that stopping there loses nothing."
    )
    return [
        f"**Epoch {rung.epoch:g}** is the last that every trial evaluated: scores up to then compare all trials, "
        f"stopped or not, after equal training.{lost}{agreement}",
        table(heads, rows),
    ]


def _one_by_one(info: Info, at_rung: str) -> str:
    plan, trials, reached = info.plan, info.trials, info.rung.scores
    names = list(dict.fromkeys([*(factor.name for factor in plan.factors), *plan.nuisance]))
    rows = [
        [code(row["trial_id"]), "stopped early" if row["status"] == "stopped" else row["status"]]
        + [_brief(row[column(name)]) for name in names]
        + [number(reached.get(row["trial_id"]))]
        + [number(row["score"]) + (" so far" if row["status"] == "stopped" else ""), number(row["epochs"], 0)]
        for row in records(trials.head(SHOWN))
    ]
    heads = [
        "trial",
        "status",
        *(escape(plan.symbol(name)) for name in names),
        at_rung,
        "validation score",
        "epochs",
    ]
    if len(rows) == len(trials):
        return folded("Trials one by one", len(rows), table(heads, rows))
    rest = f"{count(len(trials) - len(rows), 'more trial')} in `trials.csv`."
    return folded(f"The best {len(rows)} of {len(trials)} trials", len(rows), table(heads, rows), rest)


def _brief(value: Any) -> str:
    parsed = level(value)
    return NONE if parsed is None else f"{parsed:.3g}" if isinstance(parsed, float) else escape(parsed)


def _drawn(info: Info) -> tuple[pd.DataFrame, FactorAxis] | None:
    """Return the trials that the first factor's axis holds, and that axis; None where there is nothing to draw."""
    if not info.plan.factors:
        return None
    first = info.plan.factors[0]
    shown = info.trials.dropna(subset=[column(first.name), "score"])
    axis = FactorAxis(first, shown[column(first.name)])
    if first.scale == "log" and axis.scale != "choice":
        shown = shown[shown[column(first.name)].astype(float) > 0]
        axis = FactorAxis(first, shown[column(first.name)])
    return None if shown.empty else (shown, axis)


@styled
def draw(info: Info) -> Figure | None:
    """Every trial along the first factor, marked by its band of the second; stopped ones hollow and small."""
    drawn = _drawn(info)
    if drawn is None:
        return None
    shown, axis = drawn
    figure = new_figure(3.9)
    axes = figure.add_subplot()
    marked = info.plan.factors[1:] or info.plan.factors
    handles = []
    for position, name in enumerate(dict.fromkeys(in_order(shown, marked[:1])["band"])):
        look: dict[str, Any] = {
            "marker": pick(MARKERS, position),
            "color": pick(COLOURS, position),
            "linestyle": "none",
        }
        of_band = shown[shown["band"] == name]
        for status, hollow in (("completed", {}), ("stopped", HOLLOW)):
            rows = of_band[of_band["status"] == status]
            places = [axis.at(value) for value in rows[column(info.plan.factors[0].name)]]
            axes.plot(places, rows["score"], **{**look, "markersize": 7, **hollow})
        handles.append(Line2D([], [], **look, label=plain_text(f"{short(marked[0])} = {name}")))
    grey: dict[str, Any] = {"linestyle": "none", "marker": "o", "color": "0.3"}
    handles.append(Line2D([], [], **grey, label="filled: completed"))
    handles.append(Line2D([], [], **grey, **HOLLOW, label="hollow: stopped early\n(score so far)"))
    legend_right(figure, handles, "search trials, one seed each")
    axis.finish(axes, tick_levels=False)
    axes.set_ylabel(unit_below(info.score))
    return figure


PART = Part("Search (exploratory)", info, section, {"search_trials": draw})
