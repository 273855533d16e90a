"""What is used of Ray beside its public interface, all of it here, each with what is done where a release lacks it.

Run as a program, with an address and seconds, it prints whether a Ray cluster answers there: "ray", or "token" where it
asks for another one. In a process of its own, because Ray's calls wait for minutes in C, and some end the process.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any


class NeverRestored:
    """What Tune pickles for a restore that is never made from it: a study goes on from its results folder."""

    def __getstate__(self) -> dict[str, str]:
        return {}


def address_of_this_machine() -> str | None:
    """Return host:port of the cluster that `ray start` made this machine a part of, None where there is none."""
    try:
        from ray._private.services import find_bootstrap_address
    except ImportError:
        return None
    address: str | None = find_bootstrap_address(None)
    return address


def cpus_here() -> int:
    """Return how many CPUs a Ray of this machine has to give: of a container as many as it may use."""
    try:
        from ray._private.utils import get_num_cpus
    except ImportError:
        return os.cpu_count() or 1
    return int(get_num_cpus(override_docker_cpu_warning=True))


def worker_of(trial: Any) -> Any:
    """Return the actor that runs a trial of Tune, None where Tune does not say."""
    return getattr(getattr(trial, "temporary_state", None), "ray_actor", None)


def withhold_credentials() -> None:
    """Keep the driver's AWS keys out of the runtime environment of trials, which Ray writes to its logs.

    Workers of a local Ray inherit them all the same; those of a cluster have what `ray start` was given.
    """
    from ray.tune.execution import class_cache

    names = getattr(class_cache, "ENV_VARS_TO_PROPAGATE", ())
    class_cache.ENV_VARS_TO_PROPAGATE = {name for name in names if not name.startswith("AWS_")}


@contextmanager
def without_environment() -> Iterator[None]:
    """Let Tune give trials no runtime environment: before each worker that has one Ray starts a process that loads Ray.

    For a Ray that this process has started: its workers inherit all variables.
    """
    from ray.tune.execution import class_cache

    names = ("DEFAULT_ENV_VARS", "ENV_VARS_TO_PROPAGATE")
    before = {name: getattr(class_cache, name) for name in names if hasattr(class_cache, name)}
    vars(class_cache).update({name: {} for name in before})
    try:
        yield
    finally:
        vars(class_cache).update(before)


def cause(error: Exception) -> str:
    """Return the line of a worker's failure that says why; Ray's own list of what may have been is left out."""
    if detail := re.search(r"Worker exit detail: (.*?)\.?\s+There are some potential", str(error), re.DOTALL):
        return detail[1]
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    # What Python raised stands last; what Ray says of a machine's memory stands first.
    return lines[0 if type(error).__name__ == "OutOfMemoryError" else -1][:300]


class _Settled(list[str]):
    """What `ray.init` adds nothing to: it would put the current folder, then the script's, in front of all others."""

    def extend(self, more: Any, /) -> None: ...


def job_config(path: Sequence[str]) -> Any:
    """Return the configuration of a job whose workers look for modules in these folders first, in that order."""
    from ray.job_config import JobConfig

    config = JobConfig()
    if hasattr(config, "_py_driver_sys_path"):
        config._py_driver_sys_path = _Settled(reversed(path))  # a worker puts one after the other in front
    return config


def answer(address: str, seconds: int) -> str:
    """Return what is at an address: "ray", or "token" where it wants one.

    Args:
        address: Its host:port.
        seconds: After which SIGALRM ends the process where nothing answers.
    """
    try:
        from ray._private.services import canonicalize_bootstrap_address
        from ray._raylet import GcsClient  # type: ignore[attr-defined]  # compiled
    except ImportError:
        return "ray"
    signal.alarm(seconds)
    try:
        GcsClient(address=canonicalize_bootstrap_address(address))
    except Exception as error:
        if type(error).__name__ != "AuthenticationError":  # which not all releases have
            raise
        return "token"
    return "ray"


if __name__ == "__main__":
    print(answer(sys.argv[1], int(sys.argv[2])))
