"""Where predicted numbers are wrong: by how much over the range of the labels."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from reports.cells import INTERVAL, named, summary, table_of
from reports.evidence.evidence import Evidence
from reports.section import Section, Table
from reports.tables import errors

ERRORS = {"bias": "mean error", "mae": "mean absolute error", "rmse": "root mean squared error"}


def frames(evidence: Evidence) -> pd.DataFrame | None:
    """Return `errors.residuals` of the control and the best arm; None where labels are classes."""
    if not evidence.numeric:
        return None
    by_range = errors.residuals(evidence.predictions, evidence.shown_arms)
    return None if by_range.empty else by_range


def tables(by_range: pd.DataFrame) -> Sequence[Table]:
    heads = {"labels": "range", "arm": lambda row: named(row["arm"]), "": lambda row: ERRORS[row["part"]]}
    heads |= {f"error, {INTERVAL}": lambda row: summary(row, signed=row["part"] == "bias")}
    return [table_of(by_range, heads, "Prediction minus label, by quarter of the labels.")]


SECTION = Section("Errors", frames, tables)
