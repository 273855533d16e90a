"""What happened to a study over all its runs: what they added, and how often the test split was opened."""

from __future__ import annotations

import dataclasses
import datetime
import time
from collections.abc import Collection, Iterable

from adalayers.request import StudyRequest
from adalayers.results import files as results
from adalayers.results.interim_analyses import InterimAnalysis
from adalayers.results.record import StudyRecord
from adalayers.results.study_file import EnvironmentRecord, Run, RunsRecord
from adalayers.results.trial_row import TrialRow


class RunLog:
    """The runs of a study: those before, and this one.

    Args:
        before: What `study.json` says of the earlier runs.
        record: The study's folder as this run found it.
        environment: On what this run runs.
        request: What this run is asked for.
    """

    def __init__(
        self, before: RunsRecord, record: StudyRecord, environment: EnvironmentRecord, request: StudyRequest
    ):
        self._earlier = list(before.history)
        self._record, self._confirmed_before = record, _confirmed(record)
        self._began = time.monotonic()
        self._request = request
        self._run = Run(
            started=_now(),
            planned=request.seeds,
            until_decided=request.until_decided,
            commit=environment.git.commit,
            dirty=environment.git.dirty,
            machine=environment.machine,
            software=environment.software,
        )
        self.concurrency = before.concurrency
        # A run killed between writing a trial's row and counting it: the row could be read all the same.
        counted = {(arm, seed) for run in self._earlier for arm, seeds in run.seeds.items() for seed in seeds}
        if self._earlier and len(self._confirmed_before) > sum(run.confirmed for run in self._earlier):
            missed = [trial for trial in self._confirmed_before if trial not in counted]
            self._earlier[-1] = _with_trials(self._earlier[-1], record, missed)

    def runs(self, state: str, arms: Iterable[str], analyses: Iterable[InterimAnalysis]) -> RunsRecord:
        """Return all runs, this one as it is now.

        Args:
            state: How the study stands: running, or how it ended.
            arms: Names of the arms there are.
            analyses: Those that this run has made.
        """
        run = dataclasses.replace(
            self._run,
            ended=_now(),
            seconds=round(time.monotonic() - self._began, 1),
            seeds={arm: [] for arm in arms},
            analyses=tuple(analyses),
        )
        added = [trial for trial in _confirmed(self._record) if trial not in self._confirmed_before]
        history = (*self._earlier, _with_trials(run, self._record, added))
        seconds = sum(float(row.found.get("seconds") or 0) for row in self._record.rows.values())
        return RunsRecord(
            started=history[0].started,
            ended=run.ended,
            state=state,
            counts=counts(self._record),
            wall_seconds=round(sum(run.seconds for run in history), 1),
            training_seconds=round(seconds, 1),
            concurrency=self.concurrency,
            analyses=max(1, sum(len(run.analyses) for run in history)),
            test_opened=sum(run.test_scored > 0 for run in history),
            smoke=self._request.smoke,
            history=history,
        )


def _confirmed(record: StudyRecord) -> dict[tuple[str, int], TrialRow]:
    """Return (arm, seed) -> row of the completed confirmed trials."""
    return {(row.arm, row.seed): row for row in record.rows.values() if row.confirmed}


def _with_trials(run: Run, record: StudyRecord, added: Collection[tuple[str, int]]) -> Run:
    """Return a run that has also added these confirmed trials, (arm, seed) each."""
    rows = _confirmed(record)
    seeds = {arm: list(run.seeds.get(arm, [])) for arm in [*run.seeds, *(arm for arm, _ in added)]}
    for arm, seed in added:
        seeds[arm] = sorted({*seeds[arm], seed})
    scored = sum(any(name.startswith("test/") for name in rows[trial].scores) for trial in added)
    return dataclasses.replace(
        run, confirmed=run.confirmed + len(added), test_scored=run.test_scored + scored, seeds=seeds
    )


def counts(record: StudyRecord) -> dict[str, dict[str, int]]:
    """Return stage -> status -> number of trials."""
    rows = record.rows.values()
    return results.counts({"stage": [row.stage for row in rows], "status": [row.status for row in rows]})


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
