"""Heartbeats: a worker writes now and then that its trial goes on; the driver kills one that has stopped doing so.

The driver does it and not the worker itself, with `faulthandler.dump_traceback_later(exit=True)`, which would be less
code: a process that is stopped from outside cannot end itself, nor does one that is deaf to its own timers on another
machine. Ray then runs the trial again from its checkpoint, as after any death of a worker.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import ray
from ray.actor import ActorHandle
from ray.tune import Callback

from adalayers.console.progress import duration
from adalayers.errors import BadInput
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


class Watch(Callback):
    """Reads the running trials' heartbeats, and kills the workers of those that have stopped, or never began.

    Tune tells it of each trial's start.

    Args:
        running: returns trial id -> its work folder, of the trials that run now.
        hang_minutes: without a new heartbeat, after which a worker is killed.

    Attributes:
        killed: trial id -> how often its worker was killed.
    """

    def __init__(self, running: Callable[[], Mapping[str, Folder]], hang_minutes: float):
        self._running, self._hang_minutes = running, hang_minutes
        self._workers: dict[str, ActorHandle] = {}
        self._last: dict[str, tuple[Any, float]] = {}
        self.killed: dict[str, int] = {}

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Check again and again, in a thread, until the block has ended."""
        ended = threading.Event()

        def watch() -> None:
            while not ended.wait(heartbeat_seconds(self._hang_minutes)):
                try:
                    self.check()
                except Exception as error:  # one failed check shall not end the watch over a study of days
                    logger.warning(
                        f"could not read the heartbeats this time ({type(error).__name__}: {error})"
                    )

        threading.Thread(target=watch, name="adalayers-heartbeats", daemon=True).start()
        try:
            yield
        finally:
            ended.set()

    def on_trial_start(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """Note the worker of a trial that begins, or goes on in another one."""
        job: TrialJob = trial.config["jobs"][0]  # the first of a group stands for it
        worker = ray_private.worker_of(trial)
        if worker is None:
            logger.warning(
                f"this release of Ray does not say who runs trial {job.trial_id}: --hang-minutes is not kept"
            )
            return
        self._workers[job.trial_id] = worker
        self._last[job.trial_id] = None, time.monotonic()

    def __getstate__(self) -> dict[str, str]:
        return {}  # pickled by Tune for a restore that is never made from it

    def check(self) -> None:
        """Kill the workers without a new heartbeat for too long, by this machine's clock: others may differ."""
        now, running = time.monotonic(), self._running()
        for trial_id in {*self._workers} - running.keys():
            del self._workers[trial_id], self._last[trial_id]
        for trial_id, worker in list(self._workers.items()):
            try:
                heartbeat = running[trial_id].read_json(HEARTBEAT)
            except (OSError, ValueError):  # none yet, or being written
                heartbeat = None
            last, since = self._last[trial_id]
            if heartbeat not in (None, last):
                self._last[trial_id] = heartbeat, now
            elif now - since > 60 * self._hang_minutes:
                self.killed[trial_id] = self.killed.get(trial_id, 0) + 1
                minutes = duration(60 * self._hang_minutes)
                logger.warning(f"trial {trial_id} has made no progress for {minutes}: its worker is killed")
                ray.kill(worker)
                self._last[trial_id] = heartbeat, now  # it gets as long again to be dead
