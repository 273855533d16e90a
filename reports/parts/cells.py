"""Cells of tables that several parts write alike: a row's mean, a claim's difference, a comparison's name, a trial."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from adalayers.comparisons import Comparison
from adalayers.results.intervals import LEVEL, MIN_N, Interval
from adalayers.results.study_file import Factor
from reports.evidence.claims import Claim
from reports.reading.factors import levels
from reports.reading.load import Plan
from reports.words.labels import short
from reports.words.text import NONE, code, escape, estimate, number


def summary(row: Mapping[str, Any], prefix: str = "", digits: int = 3, *, signed: bool = False) -> str:
    """Return a mean with its interval and n, of columns that begin with `prefix`; n may have none."""
    mean, low, high = (row[f"{prefix}{name}"] for name in ("mean", "low", "high"))
    n = row[f"{prefix}n" if f"{prefix}n" in row else "n"]
    return estimate(mean, low, high, n, digits, signed=signed)


def relative(row: Mapping[str, Any]) -> str:
    """Return a mean share with its interval in per cent."""
    mean, low, high = (100 * row[name] for name in ("mean", "low", "high"))
    return estimate(mean, low, high, row["n"], 1, signed=True)


def interval_cell(interval: Interval | None) -> str:
    """Return a mean with its interval; a dash for none."""
    return NONE if interval is None else estimate(interval.mean, interval.low, interval.high, interval.n)


def interval_text(counts: pd.Series, what: str = "interval") -> str:
    """Return what a legend calls points over so many seeds: "mean and 95% interval", "mean" where none has one."""
    return f"mean and {LEVEL:.0%} {what}" if counts.max() >= MIN_N else "mean"


def difference(claim: Claim, digits: int = 3) -> str:
    return estimate(claim.difference, claim.low, claim.high, claim.n, digits, signed=True)


def setting(factor: str, value: Any, plan: Plan) -> str:
    """Return a level with its factor in symbols: "α = 64"."""
    return f"{plan.symbol(factor)} = {level(value)}"


def level(value: Any) -> str:
    """Return a level as text: "64", "yes"."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def where(claim: Comparison, plan: Plan) -> str:
    """Return at which level of another factor a comparison is: "λ = 0.01"; "" where it is at none."""
    return setting(claim.at.factor, claim.at.level, plan) if claim.at else ""


def compared(claim: Comparison, plan: Plan) -> str:
    """Return what a comparison is called in a figure: "α = 64 instead of 1, at λ = 0.01"; an arm by its name."""
    if not claim.changes:
        return claim.arm if claim.control == plan.control else f"{claim.arm} instead of {claim.control}"
    changed = ", ".join(setting(change.factor, change.level, plan) for change in claim.changes)
    if claim.kind == "interaction":
        return f"{changed} together"
    condition = f", at {where(claim, plan)}" if claim.at else ""
    return f"{changed} instead of {level(claim.changes[0].reference)}{condition}"


def named(claim: Comparison, plan: Plan) -> str:
    """Return `compared` as Markdown."""
    if claim.changes:
        return escape(compared(claim, plan))
    return code(claim.arm) + ("" if claim.control == plan.control else f" instead of {code(claim.control)}")


def averaged_over(claim: Comparison, plan: Plan) -> tuple[Factor, ...]:
    """Return the factors that a comparison is averaged over: those its arms differ in beyond what it compares."""
    compared_factors = {change.factor for change in claim.changes} | (
        {claim.at.factor} if claim.at else set()
    )
    arms = [arm.levels for arm in plan.arms if arm.name in claim.weights]
    return tuple(
        factor
        for factor in plan.factors
        if factor.name not in compared_factors and len(levels(arm.get(factor.name) for arm in arms)) > 1
    )


def trial(trials: pd.DataFrame, trial_id: str, metric: str) -> str:
    """Return a trial with its arm, seed and validation score."""
    row = trials[trials["trial_id"] == trial_id].iloc[0]
    whose = f"arm {code(row['arm'])}, seed {whole(row['seed'])}" if row["arm"] else "of the search"
    return f"{code(trial_id)} ({whose}; validation {short(metric)} {number(row[f'val/{metric}'])})"


def whole(value: Any) -> str:
    return NONE if pd.isna(value) else f"{value:.0f}"
