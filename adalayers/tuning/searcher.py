"""The agendas and records of a study's cases, seen by Ray Tune as one searcher and one scheduler."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from ray.tune.schedulers import ASHAScheduler, FIFOScheduler, TrialScheduler
from ray.tune.search import Searcher

from adalayers.console import interrupts
from adalayers.errors import CannotWrite
from adalayers.request import Resources
from adalayers.results.record import PROGRESS
from adalayers.schedulers import REDUCTION, SCHEDULERS
from adalayers.storage.redaction import clean
from adalayers.tuning import ray_private
from adalayers.tuning.heartbeat import Watch
from adalayers.tuning.job import TrialJob
from adalayers.tuning.running_case import RunningCase

logger = logging.getLogger(__name__)

NOT_SHARED = "what it left on its machine did not reach the results folder: share it with all machines"


class Abandoned(BaseException):
    """Leaves Tune's loop, which passes over the exceptions of its parts; the cause says why."""


@contextlib.contextmanager
def _ours() -> Iterator[None]:
    """Do what the loop asks of us: no signal comes between, and what goes wrong ends the loop."""
    with interrupts.deferred():
        try:
            yield
        except Exception as error:
            raise Abandoned from error


class StudySearcher(ray_private.NeverRestored, Searcher):
    """Hands Tune the trials of all cases, and merges each into its case's record as it ends.

    The first case that has a trial to run is served first: a study that is cut short has whole cases.

    Args:
        cases: in the order in which they are served.
        resources: how often a trial is run again whose worker died, and when one counts as hanging.

    Attributes:
        concurrency: how many groups run at a time.
        on_gpu: whether trials run on one.
        errors: Tune's id of a trial -> why it failed, filled by the scheduler.
        stopped: (case, id) of trials that the scheduler stopped, filled by it: Ray itself calls them complete.
    """

    def __init__(self, cases: Sequence[RunningCase], resources: Resources):
        super().__init__(metric="best", mode="max")
        self.cases, self._resources = cases, resources
        self.concurrency, self.on_gpu = 1, False
        self.watch = Watch(resources.hang_minutes)
        self.errors: dict[str, Exception | None] = {}
        self.stopped: set[tuple[int, str]] = set()
        self._trials: dict[str, tuple[int, list[TrialJob]]] = {}
        self._halves: list[tuple[int, list[TrialJob]]] = []

    def suggest(self, trial_id: str) -> Any:
        """Return the next trial's configuration, None while others must end first, or `FINISHED`."""
        with _ours():
            return self._next(trial_id)

    def _next(self, trial_id: str) -> Any:
        if self._halves:
            return self._begin(trial_id, *self._halves.pop(0))
        # A group that runs may come back in halves.
        waiting = any(len(jobs) > 1 for _, jobs in self._trials.values())
        for number, case in enumerate(self.cases):
            most = self._resources.group_size(
                live=case.live, on_gpu=self.on_gpu, waiting=case.agenda.waiting, concurrency=self.concurrency
            )
            # On a CPU two seeds in a group cost more than one after the other: their batches are padded to one size.
            jobs = case.agenda.next_group(most, across_seeds=self.on_gpu)
            if not isinstance(jobs, str):
                return self._begin(trial_id, number, jobs)
            waiting = waiting or jobs == "wait"
        return None if waiting else Searcher.FINISHED

    def _begin(self, trial_id: str, number: int, jobs: list[TrialJob]) -> dict[str, list[TrialJob]]:
        """Note that a group of trials begins, and return what its worker is told."""
        case = self.cases[number]
        self._trials[trial_id] = number, jobs
        group = f"{jobs[0].trial_id}/{len(jobs)}" if len(jobs) > 1 else ""
        for job in jobs:
            case.record.begin(case.agenda.row(job, group))
        works = [case.record.work(job.trial_id).address for job in jobs]
        return {"jobs": [replace(job, case=number, work=work) for job, work in zip(jobs, works, strict=True)]}

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        with _ours():
            if trial_id in self._trials and "epoch" in result:
                number, jobs = self._trials[trial_id]
                seconds = float(result.get("time_total_s") or 0.0)
                self.cases[number].on_epoch(trial_id, len(jobs), float(result["epoch"]), seconds)

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        with _ours():
            self._ended(trial_id, error=error, evaluated="epoch" in (result or {}))

    def _ended(self, trial_id: str, *, error: bool, evaluated: bool) -> None:
        number, jobs = self._trials.pop(trial_id)
        reported = self.errors.pop(trial_id, None)
        if isinstance(cause := getattr(reported, "cause", None), CannotWrite):  # nor could the row be
            raise cause
        case, identities = self.cases[number], [job.trial_id for job in jobs]
        case.on_epoch(trial_id, 0)
        if error and len(jobs) > 1:
            logger.warning(f"{len(jobs)} trials in one program failed together; they go on in two halves")
            half = len(jobs) // 2
            self._halves += [(number, jobs[:half]), (number, jobs[half:])]
            return
        shared = not evaluated or any(case.record.work(identity).exists(PROGRESS) for identity in identities)
        for identity in identities:
            if (number, identity) in self.stopped:
                row = case.record.end(identity, "stopped")
            elif error:
                row = case.record.end(identity, "failed", self._why(identity, reported))
            else:
                row = case.record.end(identity)
                if row.status == "unfinished" and not shared:
                    row = case.record.end(identity, "failed", NOT_SHARED)
            case.agenda.ended(identity, row.status)
            case.on_end(row)

    def _why(self, identity: str, reported: Exception | None) -> str:
        """Return why a trial failed whose worker died as often as it may, with what Ray says of it."""
        retries = self._resources.retries
        times = {0: "", 1: ", twice"}.get(retries, f", {retries + 1} times")
        if killed := self.watch.killed.get(identity, 0):
            how_often = f", {killed} of these times" if times else ""
            return f"the worker process died{times}: killed{how_often}, because it made no progress"
        said = "" if reported is None else f" ({clean(ray_private.cause(reported))})"
        return f"the worker process died{times}{said}"

    def save(self, checkpoint_path: str) -> None:
        """Nothing: the results folders are the only state of a study."""


class SearchScheduler(ray_private.NeverRestored, FIFOScheduler):
    """Stops poor trials of each search of each case; confirmations, and a trial's last evaluation, always go on.

    Trials are only ever ranked against trials of the same search and bracket, by Tune's ASHA; where a bracket has no
    rungs, nothing is judged. A trial that reaches its last epoch is finished, not stopped, whatever its rung says; so
    is one that a fusion trains again, whose scores begin again. Tells the searcher why a trial failed, before Tune
    tells it that it did.

    Args:
        name: Of `SCHEDULERS`.
        searcher: Of the study; its finished trials fill the rungs.
        epochs: Most epochs of a trial.
    """

    def __init__(self, name: str, searcher: StudySearcher, *, epochs: int):
        super().__init__()
        self._kind, self._epochs, self._searcher = SCHEDULERS[name], epochs, searcher
        searches = [(case, search) for case, at in enumerate(searcher.cases) for search in at.agenda.searches]
        self._searches = {(case, search.name): search for case, search in searches}
        self._brackets = {
            key: [_judge(rungs, epochs) for _, rungs in self._kind.of(epochs)] for key in self._searches
        }
        for key, search in self._searches.items():
            for identity, evaluations in search.finished():
                replayed = SimpleNamespace(trial_id=f"replayed-{identity}")
                self._replay(self._bracket(key, identity), replayed, evaluations)

    def on_trial_add(self, tune_controller: Any, trial: Any) -> None:
        """Take a trial in; one that goes on has met rungs before, with the scores that it had there."""
        job, bracket = self._judged(trial)
        if bracket is not None:
            evaluations = self._searches[job.case, job.search].evaluations(job.trial_id)
            self._replay(bracket, trial, evaluations)

    def on_trial_error(self, tune_controller: Any, trial: Any) -> None:
        self._searcher.errors[trial.trial_id] = trial.get_pickled_error()

    def on_trial_result(self, tune_controller: Any, trial: Any, result: dict[str, Any]) -> str:
        job, bracket = self._judged(trial)
        again = result.get("round", 1) > 1
        if bracket is None or again or result.get("last", True) or result["epoch"] > self._epochs:
            return TrialScheduler.CONTINUE
        decision = bracket.on_trial_result(tune_controller, trial, result)
        if decision == TrialScheduler.STOP:
            self._searcher.stopped.add((job.case, job.trial_id))
        return decision

    def on_trial_complete(self, tune_controller: Any, trial: Any, result: dict[str, Any]) -> None:
        """Nothing more to record: every rung was met on the way."""
        _, bracket = self._judged(trial)
        if bracket is not None:
            bracket.on_trial_remove(tune_controller, trial)

    def _judged(self, trial: Any) -> tuple[TrialJob, FIFOScheduler | None]:
        """Return a trial's job and what judges it: nothing one that confirms, or tries a rate."""
        job: TrialJob = trial.config["jobs"][0]  # a search's are alone
        key = job.case, job.search
        judged = job.stage == "search" and key in self._searches
        return job, self._bracket(key, job.trial_id) if judged else None

    def _bracket(self, key: tuple[int, str], identity: str) -> FIFOScheduler:
        return self._brackets[key][self._kind.bracket(identity, self._epochs)]

    def _replay(self, bracket: Any, trial: Any, evaluations: Sequence[Mapping[str, float]]) -> None:
        bracket.on_trial_add(None, trial)
        for evaluation in evaluations:
            if evaluation["epoch"] <= self._epochs:
                told = {"epoch": evaluation["epoch"], "best": evaluation["score"]}
                bracket.on_trial_result(None, trial, told)


def _judge(rungs: Sequence[int], epochs: int) -> FIFOScheduler:
    if not rungs:
        return FIFOScheduler()
    return ASHAScheduler(
        time_attr="epoch",
        metric="best",
        mode="max",
        max_t=epochs + 1,  # an evaluation at `epochs` is a trial's last and never comes here
        grace_period=rungs[0],
        reduction_factor=REDUCTION,
    )
