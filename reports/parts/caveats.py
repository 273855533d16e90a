"""The main caveats on report.md; all of them, the use of the test split and failed trials in the details."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from adalayers.results.study_file import Run
from reports.evidence.caveats import NOTE, Caveat, caveats
from reports.evidence.evidence import Evidence
from reports.parts.cells import whole
from reports.parts.part import DETAILS, MAX_ROWS, Part
from reports.reading.frames import records
from reports.tables import arms as tables
from reports.words.labels import short
from reports.words.text import code, count, escape, estimate, listed, several, table

MAX_ON_PAGE = 3
"""Most caveats on report.md."""


@dataclass(frozen=True)
class Info:
    """What is shown.

    caveats:  the most serious first
    opened:   runs that scored the test split, None where nothing says; runs: all of them
    optimism: as from `tables.optimism`; failed: as from `tables.failures`
    """

    caveats: tuple[Caveat, ...]
    opened: int | None
    runs: tuple[Run, ...]
    metric: str
    optimism: pd.DataFrame
    failed: pd.DataFrame

    @property
    def main(self) -> tuple[Caveat, ...]:
        """Those above a note, but for those that stand on top of the page."""
        return tuple(caveat for caveat in self.caveats if caveat.severity != NOTE and not caveat.on_top)


def info(evidence: Evidence) -> Info:
    runs = evidence.loaded.study.runs
    return Info(
        caveats=tuple(evidence.once("checks", caveats)),
        opened=runs.test_opened,
        runs=runs.history,
        metric=evidence.plan.metric,
        optimism=tables.optimism(evidence.trials, evidence.plan),
        failed=tables.failures(evidence.trials),
    )


def short_section(info: Info) -> list[str]:
    if not info.main:
        return ["The report's own checks found nothing else that should overturn this."]
    shown = [f"*{caveat.severity}*: {caveat.finding} {caveat.advice}" for caveat in info.main[:MAX_ON_PAGE]]
    rest = len(info.main) - len(shown)
    more = [f"{count(rest, 'further caveat')}: `{DETAILS}`."] if rest else []
    return [listed([*shown, *more])]


def section(info: Info) -> list[str]:
    rows = [[caveat.severity, caveat.finding, caveat.advice] for caveat in info.caveats]
    table_of_all = [
        "*Serious*: do not rely on the numbers before it is put right; *caution*: it may change a verdict; *note*: "
        "good to know.",
        table(["severity", "finding", "what to do"], rows),
    ]
    return [
        *(table_of_all if rows else ["None of the checks found anything."]),
        _test_split(info),
        *_failures(info),
    ]


def _test_split(info: Info) -> str:
    runs = [
        f"{escape(run.ended)}: {count(run.test_scored, 'trial')}, commit {code((run.commit or '')[:10]) or 'unknown'}"
        for run in info.runs
        if run.test_scored
    ]
    opened = "an unknown number of runs" if info.opened is None else count(info.opened, "run")
    return (
        f"**The test split** was opened in {opened}{f' ({several(runs)})' if runs else ''}: each confirmed trial "
        "scores it once, at its end, with the model best on validation. No epoch and no hyperparameter is chosen on "
        f"it; claims, the best set and the end of `--until-decided` rest on it.{_optimism(info)}"
    )


def _optimism(info: Info) -> str:
    """Return the least and the largest validation minus test score of an arm."""
    rows = sorted(records(info.optimism.dropna(subset=["mean"])), key=lambda row: row["mean"])
    if not rows:
        return ""
    ends = [
        f"{estimate(row['mean'], row['low'], row['high'], row['n'], signed=True)} ({code(row['arm'])})"
        for row in rows[:: max(1, len(rows) - 1)]
    ]
    return f" Validation minus test {short(info.metric)} by arm: {' to '.join(ends)}."


def _failures(info: Info) -> list[str]:
    failed = info.failed
    if failed.empty:
        return []
    rows = [
        [
            code(row["trial_id"]),
            row["stage"],
            code(row["arm"]),
            whole(row["seed"]),
            row["status"],
            escape(row["error"]),
        ]
        for row in records(failed.head(MAX_ROWS))
    ]
    rest = len(failed) - len(rows)
    more = f" {count(rest, 'more trial')} in `trials.csv`." if rest else ""
    return [
        f"**{count(len(failed), 'trial')} without a result.** A confirmed one that diverged counts with the score of "
        "the trivial model, for the seeds that are left may be the easy ones; comparisons with one that failed have "
        f"no verdict until it is run again; the same command goes on with what is unfinished.{more}",
        table(["trial", "stage", "arm", "seed", "status", "error"], rows),
    ]


PART = Part("Caveats", info, section)
SHORT_PART = Part("Main caveats", info, short_section)
