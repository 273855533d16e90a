"""A case under way: its agenda, its record, and the log of its runs."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from adalayers.console.progress import TrialProgress
from adalayers.results.files import STUDY
from adalayers.results.record import StudyRecord
from adalayers.results.study_file import StudyFile
from adalayers.results.trial_row import TAKEN_FROM, TrialRow
from adalayers.storage.folder import Folder
from adalayers.study import Study
from adalayers.tuning.agenda import Agenda
from adalayers.tuning.case import ReadyCase
from adalayers.tuning.document import environment, request_record
from adalayers.tuning.job import TrialJob
from adalayers.tuning.journal import write_journal
from adalayers.tuning.run_log import RunLog, counts

logger = logging.getLogger(__name__)

FAILED = {"failed", "diverged"}


@dataclass(frozen=True)
class StudyOutcome:
    """How a study ended: `state` is finished, interrupted or "time is up"; `counts` by stage and status.

    why: what the first of the trials that failed or diverged says, nothing where none did
    """

    state: str
    counts: dict[str, dict[str, int]]
    why: str = ""


class Reports(Protocol):
    """What a study needs of the package `reports`, which the library does not import: whether pages can be made,
    pages, and what is undecided.
    """

    def check(self) -> None: ...
    def write_report(self, folder: Folder, /) -> str: ...
    def write_cover(self, study_root: Folder, folders: list[Folder], /) -> str: ...
    def undecided_arms(self, folder: Folder, running: Collection[str], /) -> Collection[str]: ...


class RunningCase:
    """A case under way: its agenda, its record, and the log of its runs.

    Attributes:
        live: Whether the base model is passed again for every batch.
        on_epoch: Says now and then how far the trials of a program are that runs, as `TrialProgress.at`.
    """

    def __init__(self, study: Study, ready: ReadyCase, reports: Reports):
        self._study, self._case, self._reports = study, ready.case, reports
        case, request, data, self._mirror = ready.case, ready.case.request, ready.data, ready.mirror
        self.live = ready.features.mode == "live"
        self.record = StudyRecord(case.folder, data.metric)
        self._environment = environment(case.prepared, ready.features, case.plan)
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
        # Before the first row: rows that nothing tells of are refused by the next run.
        whole = case.before.runs.state == "finished" and not self.agenda.remaining()
        self._write("finished" if whole else "running")
        self.record.write()
        self._mirror.changed()
        best = self.record.best()
        best_score = None if best is None else self.record.score(best)
        epochs, agenda = case.plan.base.epochs, self.agenda
        self._progress = TrialProgress(data.metric, epochs, agenda.remaining, agenda.total, best_score)
        self.on_epoch = self._progress.at

    def _take(self, job: TrialJob) -> bool:
        """Take a trial from another study that has trained it; return whether there is one."""
        if not self._elsewhere.take(job.trial_id, self.record.work(job.trial_id)):
            return False
        self.record.begin(self.agenda.row(job))
        row = self.record.end(job.trial_id)
        self._keep()
        logger.info(f"{row.trial_id} {row.arm} seed {row.seed}: taken from {row.found[TAKEN_FROM]}")
        return True

    def _undecided_arms(self) -> Collection[str]:
        arms = self._reports.undecided_arms(self.flushed(), {arm.name for arm in self.agenda.arms})
        if analyses := self.agenda.analyses():
            left = f"{len(arms)} arms go on" if arms else "all is decided"
            logger.info(f"{self._case.folder.name}: analysis after {analyses[-1].after} seeds: {left}")
        return arms

    def flushed(self) -> Folder:
        """Return the case's folder, its files as whole as they can be while it runs."""
        self.record.write()
        self._write("running")
        return self._case.folder

    def on_end(self, row: TrialRow) -> None:
        """Count, mirror and log that a trial ended."""
        self._keep()
        self._progress.ended(row)

    def _keep(self) -> None:
        if self.record.written:
            self._write("running")  # so that a run that is killed is counted by the next
        self._mirror.changed()

    def close(self, state: str) -> StudyOutcome:
        """Write the case's files whole."""
        for row in self.record.rows.values():
            if row.status == "unfinished":
                self.record.end(row.trial_id)
        self.record.write()
        write_journal(self.record.folder, [search for search in self.agenda.searches if search.trials])
        if not self.agenda.remaining():
            state = "finished"  # an interruption left other cases unfinished
        self._write(state, closing=True)
        errors = (row.error for row in self.record.rows.values() if row.status in FAILED)
        return StudyOutcome(state, counts(self.record), next(filter(None, errors), ""))

    def _write(self, state: str, *, closing: bool = False) -> None:
        analyses = self.agenda.analyses(closing=closing)
        study = StudyFile(
            id=self._case.before.id,
            study=self._study.name,
            name=self._case.folder.name,
            request=request_record(self._study, self._case, self.agenda),
            environment=self._environment,
            runs=self.log.runs(state, [arm.name for arm in self.agenda.arms], analyses),
        )
        self._case.folder.write_json(STUDY, study.as_json())
