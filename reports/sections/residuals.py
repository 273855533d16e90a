"""Where predicted numbers are wrong: by how much over the range of the labels, and the largest errors by index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure

from reports.cells import named, summary, table_of
from reports.evidence.evidence import Evidence
from reports.plots import COLOURS, GREY, legend, looks_of, panels, points
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
    heads = {
        "labels": "range",
        "arm": lambda row: named(row["arm"]),
        "examples": "examples",
        **{
            name: lambda row, part=part: summary(row, f"{part}_", signed=part == "bias")
            for part, name in ERRORS.items()
        },
    }
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
    """Predictions of one trial over labels, with the line of perfect ones; mean errors by quarter of the labels."""
    figure, (left, right) = panels(
        [f"trial {frames.trial}", "mean error (prediction − label)"], 3.0, share=False
    )
    labels, predictions = frames.of_trial["label"], frames.of_trial["prediction"]
    ends = [float(min(labels.min(), predictions.min())), float(max(labels.max(), predictions.max()))]
    left.plot(ends, ends, color=GREY, linestyle="--", linewidth=1)
    left.plot(labels, predictions, linestyle="none", marker="o", markersize=2.5, alpha=0.5, color=COLOURS[0])
    left.set(xlabel=f"label ({len(labels):,} examples)", ylabel="prediction")
    quarters = frames.by_range[frames.by_range["range"] != errors.ALL]
    bias = {name: quarters[f"bias_{name}"] for name in ("mean", "low", "high")}
    looks = looks_of(quarters["arm"])
    points(
        quarters.assign(x=quarters["range"], series=quarters["arm"], **bias), right, joined=False, looks=looks
    )
    right.axhline(0.0, color=GREY, linestyle="--", linewidth=1)
    right.set_xlabel("labels")
    legend(figure, looks, lines=False)
    return figure


SECTION = Section(
    "Errors",
    frames,
    tables,
    {"residuals": draw},
    "Predicted numbers against labels, and mean errors over their range",
)
