"""How much of the core's score each factor moves, and how much only several together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from reports.evidence.decomposition import decompose
from reports.evidence.evidence import Evidence
from reports.evidence.statistics import LEVEL
from reports.parts.part import Part
from reports.reading.frames import records
from reports.reading.load import Plan
from reports.words.text import count, escape, interval, number, table


@dataclass(frozen=True)
class Info:
    """parts: as from `decomposition.decompose`; alike: how many cells predict what another one does, on every seed."""

    parts: pd.DataFrame
    plan: Plan
    alike: int


def info(evidence: Evidence) -> Info | None:
    if evidence.core.empty:
        return None
    alike = len(evidence.alike(evidence.core["arm"]))
    parts = decompose(evidence.core, evidence.scores, evidence.plan.factors, alike=bool(alike))
    return Info(parts, evidence.plan, alike)


def section(info: Info) -> list[str]:
    if info.parts.empty:
        return [
            "The factors' shares of the score cannot be told apart: that takes a whole grid and at least two seeds on "
            "which every cell has a score."
        ]
    rows = [
        [escape(_name(row["part"], info.plan)), number(row["size"], 4), _range(row), str(row["df"])]
        for row in records(info.parts)
    ]
    first = info.parts.iloc[0]
    identical = (
        f" Here there is none at all: {count(info.alike, 'cell')} predict exactly what another one does, so cells are "
        "not independent."
        if info.alike
        else ""
    )
    return [
        "Standard deviation of the true effects over the levels of each factor and of their interaction, in units of "
        "the score; 0 is no more than chance over seeds. From an analysis of variance with seeds as blocks "
        f"(n = {first['seeds']} seeds × {first['cells']} cells); intervals from the noncentral F distribution, not "
        f"corrected, and no claim rests on them; none for a part smaller than seeds alone would make it.{identical}",
        table(["part", "size", f"{LEVEL:.0%} interval", "degrees of freedom"], rows),
    ]


def _name(part: tuple[str, ...], plan: Plan) -> str:
    if len(part) == 1:
        return plan.short(part[0])
    return f"{' with '.join(map(plan.symbol, part))} (interaction)"


def _range(row: Mapping[str, Any]) -> str:
    n = f"n = {row['seeds']}"
    if pd.isna(row["low"]):
        return f"no interval, {n}"
    return f"{interval(row['low'], row['high'], 4)}, {n}"


PART = Part("The factorial core", info, section)
