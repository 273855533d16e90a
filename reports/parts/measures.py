"""What was measured of the backbone and the data without training."""

from __future__ import annotations

from dataclasses import dataclass

from adalayers.results.measures import Measured, measured
from reports.evidence.evidence import Evidence
from reports.parts.part import Part
from reports.words.text import NONE, escape, number, table


@dataclass(frozen=True)
class Info:
    measures: tuple[Measured, ...]


def info(evidence: Evidence) -> Info | None:
    found = measured(evidence.loaded.results.folder)
    return Info(tuple(found.values())) if found else None


def section(info: Info) -> list[str]:
    rows = [
        [
            escape(of.title),
            number(of.value) if of.value is not None else f"none: {escape(of.why)}",
            number(of.nothing),
            escape(of.unit),
            f"{of.n:,} {escape(of.of)}" if of.n else NONE,
        ]
        for of in info.measures
    ]
    heads = ["measure", "value", "where there is nothing to find", "unit", "n"]
    return [
        table(heads, rows),
        *(f"*{escape(of.title)}*: {escape(of.how, 1000)}." for of in info.measures if of.how),
    ]


PART = Part("Measured without training", info, section)
