"""The learning rates that each arm tried, and which it kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from reports.evidence.evidence import Evidence
from reports.parts.part import Part
from reports.reading.frames import records
from reports.words.labels import short
from reports.words.text import code, escape, number, several, table


@dataclass(frozen=True)
class Info:
    """rates: as `evidence.rates` gives them; metric: of the scores; seed: that all were tried with."""

    rates: pd.DataFrame
    metric: str
    seed: int


def info(evidence: Evidence) -> Info | None:
    rates = evidence.rates
    return Info(rates, evidence.plan.metric, evidence.plan.seed) if len(rates) else None


def section(info: Info) -> list[str]:
    tried = sorted(info.rates["lr"].dropna().unique())
    by_arm = {str(arm): records(rows) for arm, rows in info.rates.groupby("arm", sort=False)}
    rows = [
        [code(arm), *({row["lr"]: _cell(row) for row in own}.get(rate, "") for rate in tried)]
        for arm, own in by_arm.items()
    ]
    ends = [f"{code(row['arm'])} ({row['edge']})" for row in records(info.rates) if row["edge"]]
    at_end = (
        f"At an end of what was tried lies the rate of {len(ends)} of {len(by_arm)} arms: {several(ends, 6)}. Better "
        "ones may lie beyond: widen `--rates`, under another `--label`."
    )
    return [
        f"Each arm tried these values of lr on seed {info.seed}, and is confirmed with the one best on validation "
        f"({escape(short(info.metric))}), in bold. One seed each: no interval.",
        table(["arm", *(f"{rate:g}" for rate in tried)], rows),
        at_end if ends else "",
    ]


def _cell(row: dict[str, Any]) -> str:
    score = number(row["score"]) if row["status"] == "completed" else str(row["status"])
    return f"**{score}**" if row["kept"] else score


PART = Part("Learning rates", info, section)
