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

import psutil

from adalayers.console.progress import duration
from adalayers.errors import BadInput
from adalayers.storage.folder import Folder
from adalayers.tuning import nodes

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
        import ray

        node = ray.get_runtime_context().get_node_id() if ray.is_initialized() else ""
        self._written, self._count = now, self._count + 1
        with suppress(BadInput):  # the trial's own writes say what is wrong with the folder
            self._work.write_json(HEARTBEAT, {"pid": os.getpid(), "node": node, "count": self._count})


class Watch:
    """Reads the running trials' heartbeats, and kills the workers of those that have stopped.

    Args:
        running: returns trial id -> its work folder, of the trials that run now.
        hang_minutes: without a new heartbeat, after which a worker is killed.

    Attributes:
        killed: trial id -> how often its worker was killed.
    """

    def __init__(self, running: Callable[[], Mapping[str, Folder]], hang_minutes: float):
        self._running, self._hang_minutes = running, hang_minutes
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

    def check(self) -> None:
        """Kill the workers without a new heartbeat for too long, by this machine's clock: others may differ."""
        now, running = time.monotonic(), self._running()
        self._last = {trial_id: last for trial_id, last in self._last.items() if trial_id in running}
        for trial_id, work in running.items():
            try:
                heartbeat = work.read_json(HEARTBEAT)
                pid, node = int(heartbeat["pid"]), str(heartbeat["node"])
            except (OSError, ValueError, KeyError, TypeError):  # none yet, or being written
                continue
            last, since = self._last.get(trial_id, (None, now))
            if heartbeat != last:
                self._last[trial_id] = heartbeat, now
            elif now - since > 60 * self._hang_minutes:
                self.killed[trial_id] = self.killed.get(trial_id, 0) + 1
                logger.warning(
                    f"trial {trial_id} has made no progress for {duration(60 * self._hang_minutes)}: its worker is "
                    "killed"
                )
                nodes.on(node, kill_worker).remote(pid)
                self._last[trial_id] = heartbeat, now  # it gets as long again to be dead


def kill_worker(pid: int) -> None:
    """Kill a process if it is a Ray worker: the number may be another process's by now."""
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        if process.cmdline()[:1] and process.cmdline()[0].startswith("ray::"):
            process.kill()
