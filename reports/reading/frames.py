"""Reading columns of a results file that may lack them, or hold something odd."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from adalayers.results.files import RATES

LARGEST = 1e100
"""A number from here on is none: its square is no longer a float."""


def numbers(frame: pd.DataFrame, column: str) -> pd.Series:
    """Return a column as floats, NaN where it is missing or holds no finite number."""
    if column not in frame.columns:
        return pd.Series(np.nan, index=frame.index, dtype=float)
    values = pd.to_numeric(frame[column], errors="coerce").astype(float)
    return values.where(values.abs() < LARGEST)


def texts(frame: pd.DataFrame, column: str) -> list[str]:
    """Return a column as text, "" where it is missing or empty."""
    if column not in frame.columns:
        return [""] * len(frame)
    return ["" if pd.isna(value) else str(value) for value in frame[column]]


def searched(trials: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of searches: those of `--rates` are of the search's stage, and no search."""
    return trials[(trials["stage"] == "search") & (trials["search"] != RATES)]


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows as dictionaries, to be read one by one."""
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]
