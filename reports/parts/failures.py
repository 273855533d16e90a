"""Trials that gave no result, with their errors."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from reports.evidence import tables
from reports.evidence.evidence import Evidence
from reports.parts.cells import whole
from reports.parts.part import SHOWN, Part
from reports.reading.frames import records
from reports.words.text import code, count, escape, table


@dataclass(frozen=True)
class Info:
    """failed: as from `tables.failures`."""

    failed: pd.DataFrame


def info(evidence: Evidence) -> Info:
    return Info(tables.failures(evidence.trials))


def section(info: Info) -> list[str]:
    failed = info.failed
    if failed.empty:
        return ["None: every trial was completed, or stopped by the scheduler."]
    rows = [
        [
            code(row["trial_id"]),
            row["stage"],
            code(row["arm"]),
            whole(row["seed"]),
            row["status"],
            escape(row["error"]),
        ]
        for row in records(failed.head(SHOWN))
    ]
    rest = len(failed) - len(rows)
    return [
        f"{count(len(failed), 'trial')} without a result. An arm that lost seeds has a smaller n, and its "
        "remaining seeds may be the easy ones.",
        table(["trial", "stage", "arm", "seed", "status", "error"], rows),
        f"{count(rest, 'more trial')} in `trials.csv`." if rest else "",
    ]


PART = Part("Failures", info, section)
