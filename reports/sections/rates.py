"""The learning rates that each arm tried, and which it kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reports.cells import named
from reports.evidence.evidence import Evidence
from reports.reading.frames import records
from reports.render import markdown
from reports.section import Section, Table
from reports.words.text import NONE, number


def frames(evidence: Evidence) -> Evidence | None:
    return evidence if len(evidence.rates) else None


def tables(evidence: Evidence) -> Sequence[Table]:
    tried, rows = sorted(evidence.rates["lr"].dropna().unique()), []
    for arm, own in evidence.rates.groupby("arm", sort=False):
        cells = {row["lr"]: _cell(row) for row in records(own)}
        edge = "".join(own["edge"])
        rows.append([named(arm), *(cells.get(rate, NONE) for rate in tried), edge])
    caption = f"Validation score by learning rate, seed {evidence.plan.seed}, one each; bold: confirmed with."
    return [Table(["arm", *(f"{rate:g}" for rate in tried), "kept at an end"], rows, caption)]


def _cell(row: dict[str, Any]) -> str:
    score = number(row["score"]) if row["status"] == "completed" else str(row["status"])
    return markdown(f"**{score}**") if row["kept"] else score


SECTION = Section("Learning rates", frames, tables)
