"""Ray itself: started quietly, once per process, and stopped in good order."""

from __future__ import annotations

import logging
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from urllib.parse import urlsplit

from ray.tune import Stopper

from adalayers.errors import BadInput
from adalayers.hub import PROBE_SECONDS

QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_CHDIR_TO_TRIAL_DIR": "0",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_DISABLE_SIGINT_HANDLER": "1",
    "TUNE_DISABLE_STRICT_METRIC_CHECKING": "1",
    "TUNE_WARN_SLOW_EXPERIMENT_CHECKPOINT_SYNC_THRESHOLD_S": "1000000",
    "TUNE_WARN_EXCESSIVE_EXPERIMENT_CHECKPOINT_SYNC_THRESHOLD_S": "0",
    "TOKENIZERS_PARALLELISM": "false",
}

MALLOC = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": "33554432",
    "MALLOC_TRIM_THRESHOLD_": "134217728",
}
"""Environment of workers: one arena of memory for all threads of a process (glibc's mallopt(3)).

By itself glibc keeps an arena for every thread, and Tune runs each trial of a worker in a new one, so that a reused
worker grows. Lower thresholds save a third more memory and cost up to half of the time: every tensor's pages are then
asked of the system again. Another C library ignores these."""


def check_address(address: str | None) -> None:
    """Raise `BadInput` where nothing answers at a cluster's address; Ray itself would try for minutes."""
    if address is None or address in {"auto", "local"}:
        return
    parts = urlsplit(address if "://" in address else f"ray-cluster://{address}")
    try:
        port = parts.port
    except ValueError:
        port = None
    if not parts.hostname or not port:
        raise BadInput(
            f"wanted --address as host:port or ray://host:port, got {address!r}; `ray start --head` prints it"
        )
    try:
        socket.create_connection((parts.hostname, port), timeout=PROBE_SECONDS).close()
    except OSError as error:
        raise BadInput(
            f"wanted a Ray cluster at {address}, nothing answers there ({error}); "
            "check that it runs, or leave --address out for a local one"
        ) from error


@contextmanager
def ray_session(address: str | None) -> Iterator[None]:
    """Connect to a Ray cluster, or start a local one without a dashboard; one that already runs here is reused."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    import ray

    if ray.is_initialized():
        yield
        return
    ray.init(
        address=address,
        include_dashboard=None if address else False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        # Read as a process starts, so a worker cannot set them; what the user's own environment says goes before.
        runtime_env={"env_vars": {name: os.environ.get(name, value) for name, value in MALLOC.items()}},
    )
    try:
        yield
    finally:
        ray.shutdown()


class Interrupt(Stopper):
    """Ends a study early, in good order: on SIGINT or SIGTERM, or when its time is up. Its trials can continue.

    reason: None, "interrupted" or "time is up"
    """

    def __init__(self, max_hours: float | None = None):
        self._deadline = None if max_hours is None else time.monotonic() + 3600 * max_hours
        self.reason: str | None = None

    def __call__(self, trial_id: str, result: object) -> bool:
        return False

    def stop_all(self) -> bool:
        if self.reason is None and self._deadline is not None and time.monotonic() > self._deadline:
            self.reason = "time is up"
        return self.reason is not None

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Take over SIGINT and SIGTERM; a second signal acts as it did before."""
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

        def restore() -> None:
            for number, handler in before.items():
                signal.signal(number, handler)

        def heard(number: int, frame: FrameType | None) -> None:
            self.reason = "interrupted"
            restore()

        for number in before:
            signal.signal(number, heard)
        try:
            yield
        finally:
            restore()

    def __getstate__(self) -> dict[str, object]:
        return {}  # pickled by Tune for a restore that is never made from it
