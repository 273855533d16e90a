"""The learning rates that each arm tried, and which it kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reports.cells import named, wide
from reports.evidence.evidence import Evidence
from reports.render import markdown
from reports.section import Section, Table
from reports.words.text import number


def frames(evidence: Evidence) -> Evidence | None:
    return evidence if len(evidence.rates) else None


def tables(evidence: Evidence) -> Sequence[Table]:
    heads, rows = wide(evidence.rates.sort_values("lr", kind="stable"), "arm", "lr", _cell, "{:g}".format)
    kept = {row.arm: row.edge for row in evidence.rates.itertuples() if row.edge}
    order = {arm: place for place, arm in enumerate(dict.fromkeys(evidence.rates["arm"]))}
    cells = [
        [named(row[0]), *row[1:], kept.get(row[0], "")] for row in sorted(rows, key=lambda row: order[row[0]])
    ]
    caption = f"Validation score by learning rate, seed {evidence.plan.seed}, one each; bold: confirmed with."
    return [Table(["arm", *heads, "kept rate is the"], cells, caption)]


def _cell(row: dict[str, Any]) -> str:
    score = number(row["score"]) if row["status"] == "completed" else str(row["status"])
    return markdown(f"**{score}**") if row["kept"] else score


SECTION = Section("Learning rates", frames, tables)
