"""Heartbeats: a worker writes now and then that its trial goes on; the driver kills one that has stopped doing so.

The driver does it and not the worker itself, with `faulthandler.dump_traceback_later(exit=True)`, which would be less
code: a process that is stopped from outside cannot end itself, nor does one that is deaf to its own timers on another
machine. Ray then runs the trial again from its checkpoint, as after any death of a worker.
"""

from __future__ import annotations

import logging
import os
import time
from collections import Counter
from contextlib import suppress
from typing import Any

import ray
from ray.tune import Callback

from adalayers.console.progress import duration
from adalayers.errors import BadInput, Unreachable
from adalayers.storage.folder import Folder
from adalayers.tuning import ray_private
from adalayers.tuning.job import TrialJob

logger = logging.getLogger(__name__)

HEARTBEAT = "heartbeat.json"
PER_HANG = 10
"""Heartbeats in the time without one after which a worker counts as hanging."""
MAX_SECONDS = 60.0
"""Longest time between two of them."""


def heartbeat_seconds(hang_minutes: float) -> float:
    """Return the time between heartbeats where `hang_minutes` without one count as hanging."""
    return min(MAX_SECONDS, 60 * hang_minutes / PER_HANG)


class Heartbeat:
    """A worker's heartbeat for one trial: called after every batch, written once in `seconds`.

    Args:
        work: the trial's folder.
        hang_minutes: without one, after which the worker counts as hanging.
    """

    def __init__(self, work: Folder, hang_minutes: float):
        self._work, self._seconds, self._count = work, heartbeat_seconds(hang_minutes), 0
        self._written = -float("inf")

    def __call__(self) -> None:
        now = time.monotonic()
        if now - self._written < self._seconds:
            return
        self._written, self._count = now, self._count + 1
        with suppress(BadInput):  # the trial's own writes say what is wrong with the folder
            self._work.write_json(HEARTBEAT, {"pid": os.getpid(), "count": self._count})


class Watch(ray_private.NeverRestored, Callback):
    """Reads the running trials' heartbeats, and kills the workers of those that have stopped, or never began.

    Tune tells it of each of its steps, ten times a second and more.

    Args:
        hang_minutes: without a new heartbeat, after which a worker is killed.

    Attributes:
        killed: trial id -> how often its worker was killed.
    """

    def __init__(self, hang_minutes: float):
        self._hang_minutes, self._checked = hang_minutes, -float("inf")
        self._last: dict[str, tuple[Any, Any, float]] = {}  # trial -> worker, heartbeat, since when
        self._said = False
        self.killed: Counter[str] = Counter()

    def on_step_end(self, iteration: int, trials: list[Any], **info: Any) -> None:
        """Look at the trials that run, now and then, by this machine's clock: others may differ."""
        now = time.monotonic()
        if now - self._checked < heartbeat_seconds(self._hang_minutes):
            return
        self._checked = now
        # The first of a group stands for it.
        running = {trial.config["jobs"][0].trial_id: trial for trial in trials if trial.status == "RUNNING"}
        self._last = {trial_id: known for trial_id, known in self._last.items() if trial_id in running}
        try:
            for trial_id, trial in running.items():
                self._last[trial_id] = self._check(trial, trial.config["jobs"][0], now)
        except Exception as error:  # one failed look shall not end a study of days
            logger.warning(f"could not read the heartbeats this time ({type(error).__name__}: {error})")

    def _check(self, trial: Any, job: TrialJob, now: float) -> tuple[Any, Any, float]:
        """Kill the worker of a trial without a new heartbeat for too long; return what is known of it now."""
        worker = ray_private.worker_of(trial)
        if worker is None and not self._said:
            self._said = True
            logger.warning("this release of Ray does not say who runs a trial: --hang-minutes is not kept")
        try:
            heartbeat = Folder(job.work).read_json(HEARTBEAT)
        except Unreachable:
            raise
        except (OSError, ValueError):  # none yet, or being written
            heartbeat = None
        before, last, since = self._last.get(job.trial_id, (None, None, now))
        if worker is None or worker != before or heartbeat not in (None, last):
            since = now
        elif now - since > 60 * self._hang_minutes:
            self.killed[job.trial_id] += 1
            minutes = duration(60 * self._hang_minutes)
            logger.warning(f"trial {job.trial_id} has made no progress for {minutes}: its worker is killed")
            ray.kill(worker)
            since = now  # it gets as long again to be dead
        return worker, heartbeat or last, since
