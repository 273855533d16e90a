"""Cells of tables that several parts write alike: a row's mean, a claim's difference, a trial."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from reports.evidence.claims import Claim
from reports.words.labels import short
from reports.words.text import NONE, code, estimate, number


def summary(row: Mapping[str, Any], prefix: str = "", digits: int = 3) -> str:
    mean, low, high, n = (row[f"{prefix}{name}"] for name in ("mean", "low", "high", "n"))
    return estimate(mean, low, high, n, digits)


def difference(claim: Claim, digits: int = 3) -> str:
    return estimate(claim.difference, claim.low, claim.high, claim.n, digits, signed=True)


def contrast(claim: Claim | None, digits: int = 3) -> list[str]:
    """Return the cells "difference" and "verdict" of an arm that may not have been compared."""
    return [difference(claim, digits), claim.verdict] if claim else [NONE, NONE]


def trial(trials: pd.DataFrame, trial_id: str, metric: str) -> str:
    """Return a trial with its arm, seed and validation score."""
    row = trials[trials["trial_id"] == trial_id].iloc[0]
    whose = f"arm {code(row['arm'])}, seed {whole(row['seed'])}" if row["arm"] else "of the search"
    return f"{code(trial_id)} ({whose}; validation {short(metric)} {number(row[f'val/{metric}'])})"


def whole(value: Any) -> str:
    return NONE if pd.isna(value) else f"{value:.0f}"
