"""Signs of life: a worker says now and then that its trial goes on; one that has been silent for long is ended.

What hangs may hang in C, hold the interpreter, or be stopped from outside, so the driver ends it, not the worker. Ray
then runs the trial again from its checkpoint, as after any death of a worker.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from adalayers.console.progress import duration
from adalayers.errors import BadInput
from adalayers.storage.folder import Folder
from adalayers.tuning import nodes

logger = logging.getLogger(__name__)

HEARTBEAT = "heartbeat.json"
BEATS = 10
"""Signs of life in the time after which silence counts as hanging."""
MOST_SECONDS = 60.0
"""Longest time between two of them."""


class Beat:
    """A worker's sign of life for one trial, to be called as often as one likes; it is written now and then.

    seconds: between two that are written; 0 writes none
    """

    def __init__(self, work: Folder, seconds: float):
        self._work, self._seconds, self._count = work, seconds, 0
        self._written = -float("inf")

    def __call__(self) -> None:
        now = time.monotonic()
        if not self._seconds or now - self._written < self._seconds:
            return
        import ray

        node = ray.get_runtime_context().get_node_id() if ray.is_initialized() else ""
        self._written, self._count = now, self._count + 1
        try:
            self._work.write_json(HEARTBEAT, {"pid": os.getpid(), "node": node, "count": self._count})
        except BadInput:  # the trial's own writes say what is wrong with the folder
            return


def beat_seconds(hang_seconds: float | None) -> float:
    """Return the time between signs of life, 0 for none, where silence of `hang_seconds` counts as hanging."""
    return 0.0 if hang_seconds is None else min(MOST_SECONDS, hang_seconds / BEATS)


@dataclass
class _Heard:
    said: Mapping[str, Any]
    since: float


class Watch:
    """Looks at the running trials' signs of life, and ends the workers of those that are silent.

    running: returns trial id -> its work folder, of the trials that run now
    hung:    trial ids whose workers were ended, and how often
    """

    def __init__(self, running: Callable[[], Mapping[str, Folder]], hang_seconds: float):
        self._running, self._seconds = running, hang_seconds
        self._heard: dict[str, _Heard] = {}
        self.hung: dict[str, int] = {}

    @contextmanager
    def watching(self) -> Iterator[None]:
        """InterimAnalysis again and again, in a thread of its own, until the block has ended."""
        over = threading.Event()

        def watch() -> None:
            while not over.wait(beat_seconds(self._seconds)):
                try:
                    self.look()
                except Exception as error:  # one bad look shall not end the watch over a study of days
                    logger.warning(
                        f"could not look for signs of life this time ({type(error).__name__}: {error})"
                    )

        threading.Thread(target=watch, name="adalayers-heartbeats", daemon=True).start()
        try:
            yield
        finally:
            over.set()

    def look(self) -> None:
        """End the workers that have been silent for too long. By this machine's clock alone: others may differ."""
        now, running = time.monotonic(), self._running()
        self._heard = {trial_id: heard for trial_id, heard in self._heard.items() if trial_id in running}
        for trial_id, work in running.items():
            try:
                said = work.read_json(HEARTBEAT) if work.exists(HEARTBEAT) else {}
                pid, node = int(said.get("pid", 0)), str(said.get("node", ""))
            except (OSError, ValueError, AttributeError, TypeError):  # being written, or deleted
                continue
            heard = self._heard.get(trial_id)
            if heard is None or heard.said != said:
                self._heard[trial_id] = _Heard(said, now)
            elif pid and now - heard.since > self._seconds:
                self.hung[trial_id] = self.hung.get(trial_id, 0) + 1
                logger.warning(
                    f"trial {trial_id} has given no sign of life for {duration(self._seconds)}: its worker is ended"
                )
                _end(pid, node)
                self._heard[trial_id] = _Heard(said, now)  # it gets as long again to be dead


def _end(pid: int, node: str) -> None:
    """Kill a worker of this study, on this machine or by a task on its own."""
    import ray

    if node in ("", ray.get_runtime_context().get_node_id()):
        _kill(pid)
        return
    nodes.on(node, _kill).remote(pid)


def _kill(pid: int) -> None:
    """Kill a process if it is a Ray worker: the number may be another process's by now."""
    import psutil

    try:
        process = psutil.Process(pid)
        if process.cmdline()[:1] and process.cmdline()[0].startswith("ray::"):
            process.send_signal(signal.SIGKILL)
    except psutil.Error:
        return
