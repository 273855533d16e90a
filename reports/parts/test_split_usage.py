"""How often the test split was opened, and validation minus test by arm."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from adalayers.results.study_file import Run
from reports.evidence import tables
from reports.evidence.evidence import Evidence
from reports.evidence.statistics import LEVEL
from reports.parts.part import Part
from reports.reading.frames import records
from reports.words.labels import short
from reports.words.text import code, escape, estimate, folded, table


@dataclass(frozen=True)
class Info:
    """opened: runs that scored the test split, None where nothing says; optimism: as from `tables.optimism`."""

    opened: int | None
    runs: tuple[Run, ...]
    metric: str
    optimism: pd.DataFrame


def info(evidence: Evidence) -> Info:
    runs = evidence.loaded.study.runs
    optimism = tables.optimism(evidence.trials, evidence.plan)
    return Info(runs.test_opened, runs.history, evidence.plan.metric, optimism)


def section(info: Info) -> list[str]:
    opened = info.opened
    runs = [
        [escape(run.ended), str(run.test_scored), code((run.commit or "")[:10])]
        for run in info.runs
        if run.test_scored
    ]
    times = "an unknown number of" if opened is None else str(opened)
    paragraphs = [
        f"The test split was opened in {times} {'run' if opened == 1 else 'runs'} of the study: each confirmed "
        "trial scores it once, when it ends, with the model that was best on validation. No epoch and no "
        "hyperparameter is chosen on it; claims, the settings that may be best and the end of `--until-decided` are "
        "of it."
    ]
    if runs:
        paragraphs.append(table(["run ended", "confirmed trials that scored test", "commit"], runs))
    if info.optimism.empty:
        return [*paragraphs, "No confirmed trial has both a validation and a test score."]
    rows = [
        [code(row["arm"]), estimate(row["mean"], row["low"], row["high"], row["n"], signed=True)]
        for row in records(info.optimism)
    ]
    return [
        *paragraphs,
        "*Optimism* is the validation score minus the test score of the same trial. Stopping and the choice "
        "of the best epoch use validation, which flatters it; the two splits also differ in their examples, so a "
        "gap that all arms share says nothing about any of them.",
        folded(
            "The optimism of each arm",
            len(rows),
            table(
                [
                    "arm",
                    f"{short(info.metric)}, validation − test, mean [{LEVEL:.0%} interval over seeds]",
                ],
                rows,
            ),
        ),
    ]


PART = Part("Use of the test split", info, section)
