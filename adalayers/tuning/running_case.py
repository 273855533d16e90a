"""A case under way: its agenda, its record, and the log of its runs."""

from __future__ import annotations

import dataclasses
import datetime
import logging
import time
from collections.abc import Collection, Iterable

from adalayers.console.progress import TrialProgress
from adalayers.data.trial_data import TrialData
from adalayers.features.features import Mode
from adalayers.installed import own_module
from adalayers.request import StudyRequest
from adalayers.results.files import STUDY, counts
from adalayers.results.interim_analyses import InterimAnalysis
from adalayers.results.record import StudyRecord
from adalayers.results.study_file import EnvironmentRecord, Run, RunsRecord, StudyFile
from adalayers.results.trial_row import TAKEN_FROM, TrialRow
from adalayers.study import Study
from adalayers.tracking.mirror import Mirror
from adalayers.tuning.agenda import Agenda
from adalayers.tuning.case import Case
from adalayers.tuning.document import environment, request_record
from adalayers.tuning.job import TrialJob
from adalayers.tuning.search import write_journal

logger = logging.getLogger(__name__)


class RunningCase:
    """A case under way: its agenda, its record, and the log of its runs.

    Args:
        study: The question.
        case: What was planned.
        mode: Where its hidden states come from.
        data: With them.
        mirror: Of its folder, in MLflow.

    Attributes:
        state: How it stands: running, finished, interrupted or "time is up".
        live: Whether the base model is passed again for every batch.
        on_epoch: Says now and then how far the trials of a program are that runs, as `TrialProgress.at`.
    """

    def __init__(self, study: Study, case: Case, mode: Mode, data: TrialData, mirror: Mirror):
        self._study, self.case, self.data, self.mirror = study, case, data, mirror
        request, self.live = case.request, mode == "live"
        self.record = StudyRecord(case.folder, data.metric)
        self._environment = environment(case, mode)
        self._elsewhere = case.trained_elsewhere(self._environment)
        self.agenda = Agenda(
            case.plan,
            self.record,
            data,
            request,
            undecided=self._undecided_arms if request.until_decided else None,
            factors=[factor.name for factor in study.design.factors],
            before=case.before,
            take=self._take,
        )
        self.log = RunLog(case.before.runs, self.record, self._environment, request)
        self._write("running")  # before the first row: rows that nothing tells of are refused by the next run
        self.record.write()
        self.mirror.changed()
        counts = self.agenda.remaining, self.agenda.total
        self._progress = TrialProgress(data.metric, *counts, self.record.best_score())
        self.on_epoch = self._progress.at

    def _take(self, job: TrialJob) -> bool:
        """Take a trial from another study that has trained it; return whether there is one."""
        work = self.record.work(job.trial_id)
        if not self._elsewhere.take(job.trial_id, work, self.record.best_score()):
            return False
        self.record.begin(self.agenda.row(job))
        row = self.record.end(job.trial_id)
        self._keep()
        logger.info(f"{row.trial_id} {row.arm} seed {row.seed}: taken from {row.found[TAKEN_FROM]}")
        return True

    def _undecided_arms(self) -> Collection[str]:
        self.record.write()
        self._write("running")
        names = {arm.name for arm in self.agenda.arms}
        arms: Collection[str] = own_module("reports").undecided_arms(self.case.folder, names)
        if analyses := self.agenda.analyses():
            left = f"{len(arms)} arms go on" if arms else "all is decided"
            logger.info(f"{self.case.folder.name}: analysis after {analyses[-1].after} seeds: {left}")
        return arms

    def on_end(self, row: TrialRow) -> None:
        """Count, mirror and log that a trial ended."""
        self._keep()
        self._progress.ended(row)

    def _keep(self) -> None:
        if self.record.written:
            self._write("running")  # so that a run that is killed is counted by the next
        self.mirror.changed()

    def close(self, state: str) -> None:
        """Write the case's files whole; of one that has no trials left, `state` is of other cases."""
        for row in self.record.rows.values():
            if row.status == "unfinished":
                self.record.end(row.trial_id)
        self.record.write()
        write_journal(self.record.folder, [search for search in self.agenda.searches if search.trials])
        self._write(state if self.agenda.remaining() else "finished", closing=True)

    def _write(self, state: str, *, closing: bool = False) -> None:
        self.state = state
        analyses = self.agenda.analyses(closing=closing)
        study = StudyFile(
            id=self.case.before.id,
            study=self._study.name,
            name=self.case.folder.name,
            request=request_record(self._study, self.case, self.agenda),
            environment=self._environment,
            runs=self.log.runs(state, [arm.name for arm in self.agenda.arms], analyses),
        )
        self.case.folder.write_json(STUDY, study.as_json())


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
            **dataclasses.asdict(environment.git),
            machine=environment.machine,
            software=environment.software,
        )
        self.concurrency = before.concurrency
        # A run killed between writing a trial's row and counting it: the row could be read all the same.
        counted = {(arm, seed) for run in self._earlier for arm, seeds in run.seeds.items() for seed in seeds}
        missed = [row for trial, row in self._confirmed_before.items() if trial not in counted]
        if self._earlier and missed:
            self._earlier[-1] = _with_trials(self._earlier[-1], missed)

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
        rows = self._record.rows.values()
        confirmed = _confirmed(self._record)
        added = [row for trial, row in confirmed.items() if trial not in self._confirmed_before]
        history = (*self._earlier, _with_trials(run, added))
        seconds = sum(float(row.found.get("seconds") or 0) for row in rows)
        return RunsRecord(
            started=history[0].started,
            ended=run.ended,
            state=state,
            counts=counts({"stage": [row.stage for row in rows], "status": [row.status for row in rows]}),
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


def _with_trials(run: Run, added: Collection[TrialRow]) -> Run:
    """Return a run that has also added these confirmed trials."""
    seeds = {arm: set(of_arm) for arm, of_arm in run.seeds.items()}
    for row in added:
        seeds.setdefault(row.arm, set()).add(row.seed)
    return dataclasses.replace(
        run,
        confirmed=run.confirmed + len(added),
        test_scored=run.test_scored
        + sum(any(name.startswith("test/") for name in row.scores) for row in added),
        seeds={arm: sorted(of_arm) for arm, of_arm in seeds.items()},
    )


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
