"""Where predicted numbers are wrong: by how much over the range of the labels, and the largest errors by index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure

from reports.cells import INTERVAL, named, summary, table_of
from reports.evidence.evidence import Evidence
from reports.plots import COLOURS, GREY, single
from reports.section import Section, Table
from reports.sections.errors import MOST
from reports.tables import arms as tables_of_arms
from reports.tables import errors
from reports.words.text import number

ERRORS = {"bias": "mean error", "mae": "mean absolute error", "rmse": "root mean squared error"}


@dataclass(frozen=True)
class Frames:
    """by_range: as from `errors.residuals`, of the control and of the arm best on validation.

    of_trial: index, label, prediction, residual of `trial`, the confirmed one best on validation
    """

    by_range: pd.DataFrame
    of_trial: pd.DataFrame
    trial: str


def frames(evidence: Evidence) -> Frames | None:
    """None where labels are classes, and without predictions."""
    if not evidence.numeric:
        return None
    trial = tables_of_arms.best_trial(tables_of_arms.confirmed(evidence.trials), evidence.plan) or ""
    rows = errors.rows_of(evidence.loaded.results.predictions, [trial], evidence.split)
    by_range = errors.residuals(evidence.predictions, evidence.shown_arms)
    of_trial = errors.as_numbers(rows)
    return None if by_range.empty or of_trial.empty else Frames(by_range, of_trial, trial)


def tables(frames: Frames) -> Sequence[Table]:
    heads = {"labels": "range", "arm": lambda row: named(row["arm"]), "": lambda row: ERRORS[row["part"]]}
    heads |= {f"error, {INTERVAL}": lambda row: summary(row, signed=row["part"] == "bias")}
    by_size = frames.of_trial.sort_values("residual", key=lambda errors: -errors.abs(), kind="stable")
    largest = {
        "index": lambda row: str(row["index"]),
        "label": "label",
        "prediction": "prediction",
        "error": lambda row: number(row["residual"], signed=True),
    }
    caption = f"The largest errors of trial {frames.trial}, the best confirmed one on validation."
    return [
        table_of(frames.by_range, heads, "Prediction minus label, by quarter of the labels."),
        table_of(by_size.head(MOST), largest, caption),
    ]


def draw(frames: Frames) -> Figure:
    """Predictions of one trial over labels, with the line of perfect ones."""
    labels, predictions = frames.of_trial["label"], frames.of_trial["prediction"]
    figure, axes = single(3.6, f"label ({len(labels):,} examples)", f"prediction (trial {frames.trial})")
    ends = [float(min(labels.min(), predictions.min())), float(max(labels.max(), predictions.max()))]
    axes.plot(ends, ends, color=GREY, linestyle="--", linewidth=1)
    axes.plot(labels, predictions, linestyle="none", marker="o", markersize=2.5, alpha=0.5, color=COLOURS[0])
    return figure


SECTION = Section("Errors", frames, tables, {"residuals": draw}, "Predicted numbers against labels")
