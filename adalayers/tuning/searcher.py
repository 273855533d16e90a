"""The agendas and records of a study's cases, seen by Ray Tune as one searcher and one scheduler."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from ray.tune.schedulers import FIFOScheduler, TrialScheduler
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
        concurrency: how many groups run at a time.
        on_gpu: whether trials run on one.

    Attributes:
        errors: Tune's id of a trial -> why it failed, filled by the scheduler.
        stopped: (case, id) of trials that the scheduler stopped, filled by it: Ray itself calls them complete.
    """

    def __init__(self, cases: Sequence[RunningCase], resources: Resources, *, concurrency: int, on_gpu: bool):
        super().__init__(metric="best", mode="max")
        self.cases, self._resources = cases, resources
        self._concurrency, self._on_gpu = concurrency, on_gpu
        self.watch = Watch(resources.hang_minutes)
        self.errors: dict[str, Exception | None] = {}
        self.stopped: set[tuple[int, str]] = set()
        self._trials: dict[str, tuple[int, list[TrialJob]]] = {}
        self._halves: list[tuple[int, list[TrialJob]]] = []

    @_ours()
    def suggest(self, trial_id: str) -> Any:
        """Return the next trial's configuration, None while others must end first, or `FINISHED`."""
        if self._halves:
            return self._begin(trial_id, *self._halves.pop(0))
        # A group that runs may come back in halves.
        waiting = any(len(jobs) > 1 for _, jobs in self._trials.values())
        for number, case in enumerate(self.cases):
            most = self._resources.group_size(
                live=case.live,
                on_gpu=self._on_gpu,
                waiting=case.agenda.waiting,
                concurrency=self._concurrency,
            )
            # On a CPU two seeds in a group cost more than one after the other: their batches are padded to one size.
            jobs = case.agenda.next_group(most, across_seeds=self._on_gpu)
            if not isinstance(jobs, str):
                return self._begin(trial_id, number, jobs)
            waiting = waiting or jobs == "wait"
        return None if waiting else Searcher.FINISHED

    def _begin(self, trial_id: str, number: int, jobs: list[TrialJob]) -> dict[str, list[TrialJob]]:
        """Note that a group of trials begins, and return what its worker is told."""
        case = self.cases[number]
        self._trials[trial_id] = number, jobs
        group = f"{jobs[0].trial_id}/{len(jobs)}" if len(jobs) > 1 else ""
        case.record.begin(*(case.agenda.row(job, group) for job in jobs))
        work = case.record.work
        return {"jobs": [replace(job, case=number, work=work(job.trial_id).address) for job in jobs]}

    @_ours()
    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        if trial_id in self._trials and "epoch" in result:
            number, jobs = self._trials[trial_id]
            seconds = float(result.get("time_total_s") or 0.0)
            epochs = max(job.config.epochs for job in jobs)
            self.cases[number].on_epoch(trial_id, len(jobs), float(result["epoch"]), epochs, seconds)

    @_ours()
    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
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
        shared = "epoch" not in (result or {}) or any(
            case.record.work(identity).exists(PROGRESS) for identity in identities
        )
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
        if killed := self.watch.killed[identity]:
            said = f"killed {killed} times, because it made no progress"
        else:
            said = "Ray gives no reason" if reported is None else clean(ray_private.cause(reported))
        return f"the worker process died {1 + self._resources.retries} times ({said})"

    def save(self, checkpoint_path: str) -> None:
        """Nothing: the results folders are the only state of a study."""


class Rungs:
    """The rungs of one search and bracket, as asynchronous successive halving has them (Li et al. 2018).

    A trial meets the highest rung that it has reached and not met, and goes on where its score is among the best
    `1 / REDUCTION` of those that met it before.
    """

    def __init__(self, rungs: Sequence[int]):
        self._scores: dict[int, dict[str, float]] = {rung: {} for rung in sorted(rungs, reverse=True)}

    def goes_on(self, trial_id: str, epoch: float, score: float) -> bool:
        """Note a trial's best score so far, and return whether it goes on."""
        for rung, scores in self._scores.items():
            if epoch >= rung and trial_id not in scores:
                before, scores[trial_id] = [*scores.values()], score
                return not before or not score < np.nanpercentile(before, 100 * (1 - 1 / REDUCTION))
        return True


class SearchScheduler(ray_private.NeverRestored, FIFOScheduler):
    """Stops poor trials of each search of each case; confirmations, and a trial's last evaluation, always go on.

    Trials are only ever ranked against trials of the same search and bracket. A trial that reaches its last epoch is
    finished, not stopped, whatever its rung says; so is one that a fusion trains again, whose scores begin again. Tells
    the searcher why a trial failed, before Tune tells it that it did.

    Args:
        name: Of `SCHEDULERS`.
        searcher: Of the study; its finished trials fill the rungs.
        epochs: Most epochs of a trial.
    """

    def __init__(self, name: str, searcher: StudySearcher, *, epochs: int):
        super().__init__()
        self._kind, self._epochs, self._searcher = SCHEDULERS[name], epochs, searcher
        self._brackets: dict[tuple[int, str], list[Rungs]] = {}
        for number, case in enumerate(searcher.cases):
            for search in case.agenda.searches:
                self._brackets[number, search.name] = [Rungs(rungs) for _, rungs in self._kind.of(epochs)]
                for identity, evaluations in search.evaluated():
                    rungs = self._rungs(number, search.name, identity)
                    for epoch, score in evaluations:
                        if epoch <= epochs:
                            rungs.goes_on(identity, epoch, score)

    def on_trial_error(self, tune_controller: Any, trial: Any) -> None:
        self._searcher.errors[trial.trial_id] = trial.get_pickled_error()

    def on_trial_result(self, tune_controller: Any, trial: Any, result: dict[str, Any]) -> str:
        job: TrialJob = trial.config["jobs"][0]  # a search's are alone
        judged = job.stage == "search" and (job.case, job.search) in self._brackets  # one of --rates is not
        again = result.get("round", 1) > 1
        if not judged or again or result.get("last", True) or result["epoch"] > self._epochs:
            return TrialScheduler.CONTINUE
        rungs = self._rungs(job.case, job.search, job.trial_id)
        if rungs.goes_on(job.trial_id, result["epoch"], result["best"]):
            return TrialScheduler.CONTINUE
        self._searcher.stopped.add((job.case, job.trial_id))
        return TrialScheduler.STOP

    def _rungs(self, case: int, search: str, identity: str) -> Rungs:
        return self._brackets[case, search][self._kind.bracket(identity, self._epochs)]
