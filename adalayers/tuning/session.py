"""Ray itself: started quietly, once per process, and stopped in good order."""

from __future__ import annotations

import _thread
import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import psutil
import ray
from ray.tune import Stopper

from adalayers import environ
from adalayers.console import interrupts
from adalayers.errors import BadInput
from adalayers.installed import worker_path
from adalayers.storage.redaction import reason
from adalayers.tuning import ray_private
from adalayers.tuning.cluster import cluster_address
from adalayers.tuning.scratch import MARK, end_processes, scratch_folder

logger = logging.getLogger(__name__)

MALLOC = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": "33554432",
    "MALLOC_TRIM_THRESHOLD_": "134217728",
}
"""Environment of workers, read as they start: one arena of memory for all threads of a process (glibc's mallopt(3)).

By itself glibc keeps an arena for every thread, and Tune runs each trial of a worker in a new one, so that a reused
worker grows. Lower thresholds save a third more memory and cost up to half of the time: every tensor's pages are then
asked of the system again. Another C library ignores these."""


RAY_PROCESSES = ("raylet", "gcs_server")
"""Processes of a local Ray without which it does nothing any more."""
WATCH_SECONDS, LEAVE_SECONDS = 0.1, 10.0
"""How often they are looked at, and how long the main thread then has to leave Ray.

Often: Ray's C++ ends this process, with exit 1 and without a word, when it next asks a dead raylet for an object.
"""
STARTS = 2
"""How often a local Ray is started before that counts as failed."""


@contextmanager
def ray_session(asked: str | None) -> Iterator[Path]:
    """Connect to a Ray cluster, or start a local one without a dashboard; one that already runs here is reused.

    Yields a scratch folder, which is removed in the end; what a local Ray leaves on the disk lies in it too.

    Args:
        asked: Of --address, as `cluster_address` takes it.

    Raises:
        BadInput: For a cluster that cannot be joined, or a local one that does not start.
    """
    address = cluster_address(asked)
    with environ.prepared(), scratch_folder() as scratch:
        if ray.is_initialized():
            yield scratch
            return
        try:
            if address is None:
                _start(scratch)
            else:
                _join(address)
            of_workers = ray_private.without_environment() if address is None else nullcontext()
            with watched(), of_workers:
                yield scratch
        finally:
            _end(scratch)


def _start(scratch: Path) -> None:
    """Start a local Ray, again where it did not come up: on a machine that is very busy, half a minute may not do."""
    # Inherited, not asked of Ray: to give a worker an environment, Ray starts a process that loads Ray, and from there
    # the worker. Ray's own processes inherit it too.
    inherited = {MARK: scratch.name, "RAY_TMPDIR": str(scratch), **_malloc()}
    for left in reversed(range(STARTS)):
        try:
            with environ.inherited(inherited):
                _init("local", include_dashboard=False)
            return
        except Exception as error:  # of many kinds, the bare `Exception` among them
            _end(scratch)
            if not left:
                raise BadInput(
                    f"wanted a local Ray, it did not start in {STARTS} attempts ({reason(error, '')}); try again"
                ) from error
            logger.warning(f"Ray did not start ({reason(error, '')}); once more")


def _end(scratch: Path) -> None:
    """End Ray, and what its own shutdown knows nothing of: a worker that is left would make its folder again."""
    with interrupts.deferred(), interrupts.insisting():
        ray.shutdown()
        end_processes(scratch)


def _join(address: str) -> None:
    try:
        _init(address, runtime_env={"env_vars": _malloc()})
    except Exception as error:  # of many kinds: of other releases, of no machine of the cluster, of no token
        raise BadInput(
            f"wanted to join the Ray cluster at {address}, which failed ({reason(error, address)}); start the "
            "study on one of its machines, with its releases of Ray and Python, or send it with `ray job submit`"
        ) from error


def _malloc() -> dict[str, str]:
    """Return the settings that workers start with; what the user's own environment says goes before."""
    return {name: os.environ.get(name, value) for name, value in MALLOC.items()}


def _init(address: str, **more: Any) -> None:
    own = {"job_config": ray_private.job_config(worker_path()), "logging_level": logging.ERROR}
    try:
        with interrupts.insisting():
            ray.init(address=address, log_to_driver=False, **own, **more)
    except SystemExit:  # Ray's own answer to SIGTERM while it starts
        raise KeyboardInterrupt from None


@contextmanager
def watched() -> Iterator[None]:
    """Interrupt the main thread when one of the processes that Ray started for this one dies.

    Ray itself waits: for ever without a raylet; without a GCS for a minute, in a call that nothing interrupts, and
    then ends the process.
    """
    listening = interrupts.listening()
    # Those of a first start that failed may still be there, dead.
    children = filter(_lives, psutil.Process().children())
    ours = {child: name for child in children if (name := child.name()) in RAY_PROCESSES}
    if listening is None or not ours:
        yield
        return
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(WATCH_SECONDS):
            if dead := [process for process in ours if not _lives(process)]:
                if not listening.heard:
                    logger.error(f"Ray's own process {ours[dead[0]]} has died; the same command goes on")
                    _thread.interrupt_main()
                if not ended.wait(LEAVE_SECONDS):
                    listening.quit()
                return

    threading.Thread(target=watch, name="adalayers-ray", daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


class Interrupt(ray_private.NeverRestored, Stopper):
    """Ends a study early, in good order: on SIGINT or SIGTERM, or when its time is up. Its trials can continue.

    reason: None, "interrupted" or "time is up"
    """

    def __init__(self, deadline: float):
        self._deadline = deadline
        self.reason: str | None = None

    def __call__(self, trial_id: str, result: object) -> bool:
        return False

    def stop_all(self) -> bool:
        """Tune asks between any two steps. A signal does not wait for it: nothing that Ray holds is needed."""
        interrupts.raise_heard()
        if self.reason is None and time.monotonic() > self._deadline:
            self.reason = "time is up"
        return self.reason is not None
