"""A study: its cases, their agendas, Ray's loop, and the record of it all."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import ray
from ray import tune
from ray.tune.schedulers import FIFOScheduler

from adalayers.console.progress import TrialProgress
from adalayers.data.trial_data import TrialData
from adalayers.errors import BadInput
from adalayers.request import Resources, StudyRequest
from adalayers.results.other_studies import TAKEN_FROM
from adalayers.results.provenance import software
from adalayers.results.record import StudyRecord
from adalayers.results.study_file import StudyFile
from adalayers.storage.folder import Folder
from adalayers.study import Study
from adalayers.tuning.agenda import Agenda
from adalayers.tuning.case import ReadyCase
from adalayers.tuning.cluster import share
from adalayers.tuning.document import environment, request_record
from adalayers.tuning.job import TrialJob
from adalayers.tuning.journal import write_journal
from adalayers.tuning.ray_private import withhold_credentials
from adalayers.tuning.run_log import RunLog, counts
from adalayers.tuning.scratch import scratch_folder
from adalayers.tuning.searcher import Abandoned, StudySearcher, scheduler
from adalayers.tuning.session import Interrupt, ray_session
from adalayers.tuning.trainable import trainable

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

    def number(self, *statuses: str) -> int:
        """Return how many of its trials have one of these statuses; of any, where none is named."""
        return sum(
            n
            for stage in self.counts.values()
            for name, n in stage.items()
            if not statuses or name in statuses
        )


def most_failed(outcomes: Sequence[StudyOutcome]) -> bool:
    """Return whether more than half of the trials of all cases failed, or each one failed or diverged."""
    total = sum(outcome.number() for outcome in outcomes)
    failed, no_scores = (
        sum(outcome.number(*names) for outcome in outcomes) for names in (("failed",), FAILED)
    )
    return total > 0 and (2 * failed > total or no_scores == total)


class Reports(Protocol):
    """What a study needs of the package `reports`, which the library does not import: whether pages can be made,
    pages, and what is undecided.
    """

    def check(self) -> None: ...
    def write_report(self, folder: Folder, /) -> str: ...
    def write_cover(self, study_root: Folder, folders: list[Folder], /) -> str: ...
    def undecided_arms(self, folder: Folder, running: Collection[str], /) -> Collection[str]: ...


def run_study(
    study: Study,
    cases: Sequence[ReadyCase],
    *,
    request: StudyRequest,
    resources: Resources,
    deadline: float | None,
    reports: Reports,
) -> list[StudyOutcome]:
    """Run what the folders lack of a study, all cases in one Ray session, and leave their files whole.

    Args:
        study: The question.
        cases: A backbone and a dataset each, prepared.
        request: What was asked for; part of it is the study's identity.
        resources: What trials may use.
        deadline: By `time.monotonic`, in seconds, at which it ends in good order; None for none.
        reports: Says which arms of a case need more seeds.

    Raises:
        BadInput: For a cluster that cannot be joined, or whose machines cannot run trials.
    """
    running = [RunningCase(study, case, request, reports) for case in cases]
    interrupt = Interrupt(deadline)

    if left := sum(case.agenda.remaining() for case in running):
        searcher = StudySearcher(running, resources)
        data = [case.data for case in cases]
        stopping = scheduler(request.scheduler, searcher, epochs=cases[0].case.plan.base.epochs)
        try:
            with ray_session(resources.address):
                per_trial, concurrency = _per_trial(resources)
                share([ready.case.folder for ready in cases], data)
                searcher.concurrency, searcher.on_gpu = concurrency, "gpu" in per_trial
                for case in running:
                    case.log.concurrency = concurrency
                total = sum(case.agenda.total() for case in running)
                logger.info(f"{total - left} trials done, {left} to run, {concurrency} at a time")
                _fit(searcher, stopping, data, per_trial, concurrency, interrupt, resources)
        except KeyboardInterrupt:
            interrupt.reason = "interrupted"
        except Abandoned as abandoned:
            raise abandoned.__cause__ or abandoned from None
    else:
        logger.info("all trials are done, nothing to run")
    return [case.close(interrupt.reason or "finished") for case in running]


class RunningCase:
    """A case under way: its agenda, its record, and the log of its runs.

    live: whether the base model is passed again for every batch
    """

    def __init__(self, study: Study, ready: ReadyCase, request: StudyRequest, reports: Reports):
        self._study, self._case, self._request, self._reports = study, ready.case, request, reports
        case, data, self._mirror = ready.case, ready.data, ready.mirror
        self.live = ready.features.mode == "live"
        self.record = StudyRecord(case.folder, data.metric)
        self._environment = environment(case.prepared, ready.features, case.plan)
        self._elsewhere = case.trained_elsewhere(self._environment.software, request)
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
        self._progress = TrialProgress(data.metric, case.plan.base.epochs, best=best_score)

    def _take(self, job: TrialJob) -> bool:
        """Take a trial from another study that has trained it; return whether there is one."""
        if not self._elsewhere.take(job.trial_id, self.record.work(job.trial_id)):
            return False
        self.record.begin(job.trial_id, self.agenda.row(job))
        row = self.record.end(job.trial_id)
        self._keep(row)
        logger.info(f"{row['trial_id']} {row['arm']} seed {row['seed']}: taken from {row[TAKEN_FROM]}")
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

    def on_epoch(self, program: str, trials: int, epoch: float = 0.0, seconds: float = 0.0) -> None:
        """Log now and then how far the trials of a program are that runs; without trials it has ended."""
        self._progress.at(program, trials, epoch, seconds, self.agenda.remaining, self.agenda.total)

    def on_end(self, row: dict[str, Any]) -> None:
        """Count, mirror and log that a trial ended."""
        self._keep(row)
        self._progress.ended(row, self.agenda.remaining(), self.agenda.total())

    def _keep(self, row: dict[str, Any]) -> None:
        if self.record.written:
            self._write("running")  # so that a run that is killed is counted by the next
        self._mirror.changed()

    def close(self, state: str) -> StudyOutcome:
        """Write the case's files whole."""
        for trial_id, row in self.record.rows.items():
            if row["status"] == "unfinished":
                self.record.end(trial_id)
        self.record.write()
        write_journal(self.record.folder, [search for search in self.agenda.searches if search.trials])
        if not self.agenda.remaining():
            state = "finished"  # an interruption left other cases unfinished
        self._write(state, closing=True)
        errors = (row.get("error") for row in self.record.rows.values() if row["status"] in FAILED)
        return StudyOutcome(state, counts(self.record), next((str(error) for error in errors if error), ""))

    def _write(self, state: str, *, closing: bool = False) -> dict[str, Any]:
        analyses = self.agenda.analyses(closing=closing)
        document = StudyFile(
            id=self._case.before.id,
            study=self._study.name,
            name=self._case.folder.name,
            request=request_record(self._study, self._case, self.agenda, self._request),
            environment=self._environment,
            runs=self.log.runs(state, [arm.name for arm in self.agenda.arms], analyses),
        ).as_json()
        self.record.write_study(document)
        return document


def _fit(
    searcher: StudySearcher,
    stopping: FIFOScheduler,
    data: Sequence[TrialData],
    per_trial: dict[str, float],
    concurrency: int,
    interrupt: Interrupt,
    resources: Resources,
) -> None:
    """Run Ray's loop until the searcher has no more trials, or the study is interrupted."""
    withhold_credentials()
    stored = [ray.put(case_data) for case_data in data]  # a trial fetches that of its own case alone
    # What a trial failed of is in its row; Tune would log it with its traceback, each time.
    logging.getLogger("ray.tune").setLevel(logging.CRITICAL)
    with scratch_folder() as scratch, searcher.watch.watching():
        tune.Tuner(
            tune.with_resources(
                tune.with_parameters(trainable, data=stored, software=software(), resources=resources),
                per_trial,
            ),
            tune_config=tune.TuneConfig(
                search_alg=searcher,
                scheduler=stopping,
                num_samples=-1,
                reuse_actors=True,
                max_concurrent_trials=concurrency,
            ),
            run_config=tune.RunConfig(
                # Ray's own state is never read back: the results folder is what a study continues from.
                storage_path=str(scratch),
                name="study",
                stop=interrupt,
                verbose=0,
                callbacks=[searcher.watch],
                failure_config=tune.FailureConfig(max_failures=resources.retries),
            ),
        ).fit()


def _per_trial(resources: Resources) -> tuple[dict[str, float], int]:
    """Return what one trial takes, and how many fit at once. Raises `BadInput` where none fits."""
    have = ray.cluster_resources()
    cpus, gpus = have.get("CPU", 0), have.get("GPU", 0)
    each = resources.gpus(gpus)
    want = {"cpu": resources.cpus_per_trial, **({"gpu": each} if each else {})}
    if not (fits := resources.at_a_time(cpus=cpus, gpus=gpus)):
        raise BadInput(
            f"wanted {want} for a trial, the machines have {cpus:g} CPUs and {gpus:g} GPUs; lower --cpus-per-trial or "
            "--gpus-per-trial"
        )
    return want, fits
