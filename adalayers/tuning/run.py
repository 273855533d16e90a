"""One study on one backbone and dataset: data, agenda, Ray's loop, and the record of it all."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ray
from ray import tune
from ray.tune.schedulers import FIFOScheduler

from adalayers.config import TrialConfig
from adalayers.console.progress import TrialProgress
from adalayers.data.prepare import Prepared
from adalayers.data.trial_data import TrialData
from adalayers.errors import BadInput
from adalayers.request import Resources, StudyRequest
from adalayers.results.record import StudyRecord
from adalayers.results.study_file import machine, parse
from adalayers.storage.folder import Folder
from adalayers.study import Plan, Setting, Space, Study, plan
from adalayers.tracking.mirror import Mirror
from adalayers.tuning.account import Account, analyses_of, counts
from adalayers.tuning.agenda import Agenda
from adalayers.tuning.cluster import share
from adalayers.tuning.document import asked, case_on, study_document
from adalayers.tuning.scratch import scratch_folder
from adalayers.tuning.searcher import Abandoned, StudySearcher, scheduler
from adalayers.tuning.session import Interrupt, ray_session
from adalayers.tuning.trainable import trainable

logger = logging.getLogger(__name__)

FAILED = {"failed", "diverged"}


@dataclass(frozen=True)
class Outcome:
    """How a study ended: `state` is finished, interrupted or "time is up"; `counts` by stage and status.

    why: what the first of the trials that failed or diverged says, nothing where none did
    """

    state: str
    counts: dict[str, dict[str, int]]
    why: str = ""

    @property
    def all_failed(self) -> bool:
        statuses = {status for stage in self.counts.values() for status, n in stage.items() if n}
        return bool(statuses) and statuses <= FAILED


def study_plan(
    study: Study,
    space: Space,
    prepared: Prepared,
    base: TrialConfig,
    fixed: dict[str, Any],
    own: Mapping[str, str],
) -> Plan:
    """Return what the study will run on this data. Raises `BadInput` where that is impossible.

    base: the study's own settings, from `study.base_config`; fixed: those of --set among them
    own:  the flags that the study alone has, as they identify it
    """
    base.check(prepared.shape)
    setting = Setting(
        dataset=prepared.task.name,
        shape=prepared.shape,
        fixed=fixed,
        base=base,
        train_examples=len(prepared.task.splits["train"]),
        own=own,
    )
    return plan(study, space, setting)


@dataclass(frozen=True, kw_only=True)
class CaseToRun:
    """A study on one backbone and dataset, with all that running it takes.

    smallest_effect: the smallest difference of interest on its selection metric
    identity: the flags that make it, as they stand in `study.json`
    about:    the `on` part of `study.json` as far as it is known of backbone and dataset
    before:   the study as the folder holds it, from `opened`
    """

    plan: Plan
    data: TrialData
    folder: Folder
    mirror: Mirror
    smallest_effect: float
    identity: Mapping[str, Any]
    about: Mapping[str, Any]
    before: Mapping[str, Any]


Undecided = Callable[[Folder], Collection[str]]
"""Reads a results folder; returns the arms that a primary comparison which is not decided yet compares."""


def run_study(
    study: Study, cases: Sequence[CaseToRun], *, ask: StudyRequest, resources: Resources, undecided: Undecided
) -> list[Outcome]:
    """Run what the folders lack of a study, all cases in one Ray session, and leave their files whole."""
    running = [_Running(study, case, ask, undecided) for case in cases]
    interrupt = Interrupt(resources.max_hours)
    if left := sum(case.agenda.remaining() for case in running):
        searcher = StudySearcher(
            running,
            threads=max(1, int(resources.cpus_per_trial)),
            retries=resources.retries,
            hang_seconds=60 * resources.hang_minutes,
        )
        stopping = scheduler(ask.scheduler, searcher, epochs=cases[0].plan.base.epochs)
        try:
            with ray_session(resources.address):
                per_trial, concurrency = _per_trial(resources)
                share([case.folder for case in cases], [case.data for case in cases])
                for case in running:
                    case.account.concurrency = concurrency
                total = sum(case.agenda.total() for case in running)
                logger.info(f"{total - left} trials done, {left} to run, {concurrency} at a time")
                data = [case.data for case in cases]
                _fit(searcher, stopping, data, per_trial, concurrency, interrupt, resources.retries)
        except KeyboardInterrupt:
            interrupt.reason = "interrupted"
        except Abandoned as abandoned:
            raise abandoned.__cause__ or abandoned from None
    else:
        logger.info("all trials are done, nothing to run")
    return [case.close(interrupt.reason or "finished") for case in running]


class _Running:
    """A case under way: its agenda, its record, and the account of what happened."""

    def __init__(self, study: Study, case: CaseToRun, ask: StudyRequest, undecided: Undecided):
        self._study, self._case, self._ask, self._read = study, case, ask, undecided
        self.record = StudyRecord(case.folder, case.data.metric)
        self.agenda = Agenda(
            case.plan,
            self.record,
            case.data,
            search=ask.search,
            trials=ask.trials,
            seeds=ask.seeds,
            seed=ask.seed,
            undecided=self._undecided if ask.until_decided else None,
            analyses=analyses_of(case.before),
        )
        self.account = Account(case.before, self.record)
        self._earlier = parse(case.before)[0].request
        self._on = case_on(case.plan, case.data, case.about)
        # Before the first row: rows that nothing tells of are refused by the next run.
        case.mirror.start(self._write("running"))
        self.record.write()
        best = self.record.best()
        self._progress = TrialProgress(
            case.data.metric, best=None if best is None else self.record.score(best)
        )

    def _undecided(self) -> Collection[str]:
        self.record.write()
        self._write("running")
        arms = self._read(self._case.folder)
        if made := self.agenda.analyses():
            name = self._case.folder.name
            left = f"{len(arms)} arms go on" if arms else "all is decided"
            logger.info(f"{name}: analysis after {made[-1].after} seeds: {left}")
        return arms

    def on_end(self, row: dict[str, Any]) -> None:
        """Count, mirror and say that a trial ended."""
        self._write("running")  # so that a run that is killed is counted by the next
        self._case.mirror.trial(row, self.record.history(row["trial_id"]))
        self._progress.ended(row, self.agenda.remaining(), self.agenda.total())

    def close(self, state: str) -> Outcome:
        """Write the case's files whole."""
        for identity, row in self.record.rows.items():
            if row["status"] == "unfinished":
                self.record.end(identity)
        self.record.write()
        if state != "finished" and not self.agenda.remaining():
            state = "finished"  # the interruption left other cases unfinished
        self._write(state)
        failed = (row.get("error") for row in self.record.rows.values() if row["status"] in FAILED)
        return Outcome(state, counts(self.record), next((str(error) for error in failed if error), ""))

    def _write(self, state: str) -> dict[str, Any]:
        case, arms = self._case, [arm.name for arm in self.agenda.arms]
        runs = self.account.runs(
            state,
            self.record,
            self._on["git"] | {"machine": machine(self._on["device"], self._on["packages"])},
            arms,
            planned=self._ask.seeds,
            until_decided=self._ask.until_decided,
            analyses=self.agenda.analyses(closing=state != "running"),
            smoke=self._ask.smoke,
        )
        document = study_document(
            name=case.folder.name,
            identity=str(case.before["id"]),
            asked=asked(
                self._study,
                case.plan,
                self.agenda,
                self._ask,
                identity=case.identity,
                smallest_effect=case.smallest_effect,
                earlier=self._earlier,
            ),
            on=self._on,
            runs=runs,
            study=self._study.name,
        )
        self.record.write_study(document)
        return document


def _fit(
    searcher: StudySearcher,
    stopping: FIFOScheduler,
    data: Sequence[TrialData],
    per_trial: dict[str, float],
    concurrency: int,
    interrupt: Interrupt,
    retries: int,
) -> None:
    """Run Ray's loop until the searcher has no more trials, or the study is interrupted."""
    held = [ray.put(of_case) for of_case in data]  # a trial fetches that of its own case alone
    with scratch_folder() as scratch, searcher.watch.watching():
        tune.Tuner(
            tune.with_resources(tune.with_parameters(trainable, data=held), per_trial),
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
                failure_config=tune.FailureConfig(max_failures=retries),
            ),
        ).fit()


def _per_trial(resources: Resources) -> tuple[dict[str, float], int]:
    """Return what one trial takes, and how many fit at once. Raises `BadInput` where none fits."""
    have = ray.cluster_resources()
    gpus = resources.gpus_per_trial
    if gpus is None:
        gpus = 1.0 if have.get("GPU", 0) else 0.0
    want = {"cpu": resources.cpus_per_trial, **({"gpu": gpus} if gpus else {})}
    fits = [int(have.get(name.upper(), 0) / amount) for name, amount in want.items()]
    if min(fits) < 1:
        raise BadInput(
            f"wanted {want} for a trial, the machines have {have.get('CPU', 0):g} CPUs "
            f"and {have.get('GPU', 0):g} GPUs; "
            "lower --cpus-per-trial or --gpus-per-trial"
        )
    return want, min([*fits, *([resources.max_concurrent] if resources.max_concurrent else [])])
