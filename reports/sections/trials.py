"""Trials without a result, and how the test split was used."""

from __future__ import annotations

from reports.evidence.evidence import Evidence
from reports.section import Section, Table, named, table_of
from reports.tables import arms
from reports.words import NONE, number

MOST = 20
"""Rows of trials; all are in `trials.csv`."""


def section(evidence: Evidence) -> Section:
    runs = evidence.loaded.study.runs
    opened = [
        [run.ended, run.test_scored, named((run.commit or "")[:10]), run.machine]
        for run in runs.history
        if run.test_scored
    ]
    times = "an unknown number of runs" if runs.test_opened is None else f"{runs.test_opened} runs"
    caption = (
        f"The test split was opened in {times}: each confirmed trial scores it once, as best on validation."
    )
    failed = arms.failures(evidence.trials)
    cells = {
        "trial": "trial_id",
        "stage": "stage",
        "arm": lambda row: named(row["arm"]),
        "seed": lambda row: number(row["seed"], 0) or NONE,
        "status": "status",
        "error": "error",
    }
    without = f"{min(MOST, len(failed))} of {len(failed)} trials without a result."
    return Section(
        "Trials and the test split",
        [
            Table(["run ended", "trials that scored test", "commit", "machine"], opened, caption),
            table_of(failed.head(MOST), cells, without),
        ],
    )
