"""Where predicted numbers are wrong: by how much over the range of the labels, and the largest errors by index."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from adalayers.results.intervals import LEVEL
from reports.drawing.pieces import point
from reports.drawing.style import look, new_figure, plain_text
from reports.evidence.evidence import Evidence
from reports.parts.cells import summary
from reports.parts.part import BEST_TRIAL, MAX_ROWS, Part, figure_link
from reports.reading.frames import records
from reports.tables import arms as tables
from reports.tables import errors as predicted
from reports.words.labels import SPLITS
from reports.words.text import code, count, escape, folded, number, table


@dataclass(frozen=True)
class Info:
    """by_range: as from `predicted.residuals`, of the control and of the arm that is best on validation.

    of_trial: label, prediction and residual of the confirmed trial that is best on validation, by index
    """

    by_range: pd.DataFrame
    of_trial: pd.DataFrame
    arm: str | None
    trial: str | None
    split: str


def info(evidence: Evidence) -> Info | None:
    """None where labels are classes, and without predictions."""
    if not evidence.numeric:
        return None
    trial = tables.best_trial(tables.confirmed(evidence.trials), evidence.plan)
    rows = predicted.rows_of(evidence.loaded.results.predictions, [trial] if trial else [], evidence.split)
    by_range = predicted.residuals(evidence.predictions, evidence.shown_arms)
    of_trial = predicted.as_numbers(rows).set_index("index").sort_index()
    if by_range.empty or of_trial.empty:
        return None
    return Info(by_range, of_trial, evidence.best_arm, trial, evidence.split)


def section(info: Info) -> list[str]:
    rows = [
        [
            escape(row["range"]),
            code(row["arm"]),
            f"{row['examples']:,}",
            *(summary(row, f"{part}_", signed=part == "bias") for part in predicted.ERRORS),
        ]
        for row in records(info.by_range)
    ]
    return [
        f"Errors (prediction minus label) on {SPLITS[info.split]} by quarter of the labels and over all of them, in "
        f"the labels' own unit, mean [{LEVEL:.0%} t interval] over n seeds. Above 0, answers there are too high "
        "on average; an unsure model predicts near the mean label. These were not compared. The figure's points are "
        f"trial {code(info.trial)}.",
        figure_link("residuals", "Predicted numbers against labels, and mean errors over the labels' range"),
        table(
            ["labels", "arm", "examples", "mean error", "mean absolute error", "root mean squared error"],
            rows,
        ),
        *_largest(info),
    ]


def _largest(info: Info) -> list[str]:
    worst = info.of_trial.sort_values("residual", key=lambda errors: -errors.abs(), kind="stable").head(
        MAX_ROWS
    )
    rows = [
        [f"{index}", number(row["label"]), number(row["prediction"]), number(row["residual"], signed=True)]
        for index, row in zip(worst.index, records(worst), strict=True)
    ]
    heads = ["index", "label", "prediction", "error"]
    return [
        f"The largest errors of trial {code(info.trial)} (n = 1), {BEST_TRIAL}",
        folded(
            f"The {len(rows)} largest of {count(len(info.of_trial), 'example')}",
            len(rows),
            table(heads, rows),
        ),
    ]


def draw(info: Info) -> Figure:
    """Predictions of one trial over labels, with the line of perfect ones; mean errors by quarter of the labels."""
    figure = new_figure(3.8)
    left, right = figure.subplots(1, 2)
    labels, predictions = info.of_trial["label"], info.of_trial["prediction"]
    ends = [float(min(labels.min(), predictions.min())), float(max(labels.max(), predictions.max()))]
    left.plot(ends, ends, color="0.5", linestyle="--", linewidth=1, label="prediction = label")
    left.plot(labels, predictions, linestyle="none", marker="o", markersize=2.5, alpha=0.5, color=look(0)[0])
    left.set_xlabel(f"label ({SPLITS[info.split]}, {len(labels):,} examples)")
    left.set_ylabel("prediction (one trial)")
    left.legend(loc="upper left")
    quarters = info.by_range[info.by_range["range"] != predicted.ALL]
    names = list(dict.fromkeys(quarters["range"]))
    for position, (arm, errors) in enumerate(quarters.groupby("arm", sort=False)):
        colour, marker, _ = look(position)
        for row in records(errors):
            x = names.index(row["range"]) + 0.15 * position
            point(right, x, row["bias_mean"], row["bias_low"], row["bias_high"], colour, marker, along="y")
        n = int(errors["n"].iloc[0])
        right.plot([], [], marker=marker, color=colour, linestyle="none", label=f"{plain_text(arm)}, n = {n}")
    right.axhline(0.0, color="0.5", linestyle="--", linewidth=1)
    right.set_xticks(np.arange(len(names)), [plain_text(name) for name in names], rotation=15)
    right.set_xlabel("labels")
    right.set_ylabel("mean error (unit of the labels)")
    right.legend(loc="best")
    return figure


PART = Part("Errors", info, section, {"residuals": draw})
