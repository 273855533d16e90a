"""What can go wrong with a study that runs: each kind of fault, and how it is made."""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from adalayers.results.files import EVALUATIONS, HISTORY, PREDICTIONS
from tests.dead_server import Server
from tests.helpers.long_form import Wrong
from tests.helpers.small_study import PATIENCE, Study, children, waited

BEGUN = re.compile(r"at a time|nothing to run")
"""What a run says once it has read its folder."""
OVER = re.compile(r"\[(\d+)/\1\]")
"""What it says when the last trial has ended."""
CLOCK = """
import os, time
after, jump = map(float, os.environ["SOAK_CLOCK"].split())
real, began = time.time, time.monotonic()
time.time = lambda: real() + jump * (time.monotonic() - began > after)
"""
"""A `sitecustomize` whose clock jumps, in the driver and in all of Ray that is Python."""


@dataclass
class Run:
    """One run of a study, as faults see it.

    Attributes:
        process: The user's command, once it has started.
        server: The study's MLflow server, None where it has none.
        environment: Variables to start it with.
        damaged: A results file that was damaged before, None where none was; `copy`: of the folder before that.
    """

    study: Study
    rng: random.Random
    server: Server | None
    environment: dict[str, str] = field(default_factory=dict)
    damaged: str | None = None

    process: subprocess.Popen[bytes] = field(init=False)

    @property
    def copy(self) -> Path:
        return self.study.output.parent / "copy"

    def goes_on(self, seconds: float) -> bool:
        """Let it run for up to so many seconds; return whether it has not ended."""
        end = time.monotonic() + self.rng.uniform(0, seconds)
        return waited(self.process, lambda: time.monotonic() > end)

    def begun(self) -> bool:
        return waited(self.process, lambda: BEGUN.search(self.study.said()))


@dataclass(frozen=True)
class Fault:
    """A kind of fault.

    Attributes:
        make: Makes it happen; returns whether there was a chance to.
        codes: What the run may end with for it, but for 0.
        noisy: Whether tracebacks are Ray's own.
    """

    make: Callable[[Run], bool]
    codes: tuple[int, ...] = ()
    noisy: bool = False


# Before a run


def _flipped(*patterns: str) -> Callable[[Run], bool]:
    """Flip a bit of one of the files below the study's place that match."""

    def make(run: Run) -> bool:
        place = run.study.output.parent
        files = sorted(path for pattern in patterns for path in place.glob(pattern) if path.stat().st_size)
        if not files:
            return False
        path = run.rng.choice(files)
        if path.is_relative_to(run.study.folder.path()):
            shutil.rmtree(run.copy, ignore_errors=True)
            shutil.copytree(run.study.folder.path(), run.copy)
            run.damaged = path.name
        content = bytearray(path.read_bytes())
        content[run.rng.randrange(len(content))] ^= 1 << run.rng.randrange(8)
        path.write_bytes(content)
        return True

    return make


def _clock(run: Run) -> bool:
    folder = run.study.output.parent / "clock"
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(CLOCK)
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    jump = run.rng.choice([-1, 1]) * 10 ** run.rng.uniform(1, 6)
    run.environment |= {
        "PYTHONPATH": os.pathsep.join(paths),
        "SOAK_CLOCK": f"{run.rng.uniform(2, 20):.1f} {jump:.0f}",
    }
    return True


FOLDER = "results/alpha_lambda/tiny-echo"
BEFORE: Mapping[str, Fault] = {
    "a byte of a shard": Fault(_flipped("cache/*/*.npy")),
    "a byte of meta.json": Fault(_flipped("cache/*/meta.json")),
    "a byte of a checkpoint": Fault(_flipped(f"{FOLDER}/work/*/checkpoint*")),
    "a byte of a trial's files": Fault(
        _flipped(f"{FOLDER}/work/*/*.json", f"{FOLDER}/work/*/*.parquet"), (2,)
    ),
    "a byte of a results file": Fault(
        _flipped(*(f"{FOLDER}/{name}" for name in (HISTORY, PREDICTIONS, EVALUATIONS))), (2,)
    ),
    "clock jumps": Fault(_clock),
}
"""Kinds of faults that a run starts with."""


# While it runs


def _processes(run: Run, kind: str) -> list[psutil.Process]:
    driver = psutil.Process(run.process.pid)
    if kind == "driver":
        return [driver]
    return [driver, *children(run.process)] if kind == "all" else children(run.process, kind)[:1]


def _send(processes: list[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(psutil.Error):  # it was quicker
            process.send_signal(number)


def _kill(kind: str) -> Callable[[Run], bool]:
    def make(run: Run) -> bool:
        if not run.goes_on(3) or not (processes := _processes(run, kind)):
            return False
        _send(processes, signal.SIGKILL)
        return True

    return make


def _stop(kind: str) -> Callable[[Run], bool]:
    """Stop processes of a kind for up to four seconds."""

    def make(run: Run) -> bool:
        if not run.goes_on(3) or not (processes := _processes(run, kind)):
            return False
        _send(processes, signal.SIGSTOP)
        time.sleep(run.rng.uniform(0.5, 4))
        _send(processes, signal.SIGCONT)
        return True

    return make


def _hang(run: Run) -> bool:
    """Stop a worker for good."""
    if not run.goes_on(3) or not (processes := _processes(run, "worker")):
        return False
    _send(processes, signal.SIGSTOP)
    waited(run.process, lambda: not any(process.is_running() for process in processes), every=0.2)
    _send(processes, signal.SIGCONT)  # where the study ended first
    return True


def _second_driver(run: Run) -> bool:
    if not run.goes_on(1):
        return False
    log = run.study.log.with_suffix(".second")
    second = run.study.start(log=log)
    # While the first is stopped the second may outlive it: then it is the study's next run, and shall not be.
    waited(second, lambda: run.process.poll() is not None)
    if second.poll() is None:
        second.kill()
    elif second.returncode != 2 or "works on it" not in log.read_text():
        raise Wrong(f"a second driver ended with {second.returncode}:\n{log.read_text()}")
    second.wait()
    return True


def _tracker(run: Run) -> bool:
    if run.server is None or not run.server.lives() or not run.goes_on(3):
        return False
    run.server.kill()
    return True


KILLED, RAYS_OWN = -signal.SIGKILL, (130, 1)
"""Exit codes: of SIGKILL, and of a death of Ray's own processes: Ray may end the driver before that has noticed."""
WHILE: Mapping[str, Fault] = {
    "SIGKILL worker": Fault(_kill("worker"), noisy=True),
    "SIGSTOP worker": Fault(_stop("worker")),
    "SIGSTOP driver": Fault(_stop("driver")),
    "SIGSTOP all": Fault(_stop("all"), RAYS_OWN, noisy=True),
    "hanging worker": Fault(_hang, noisy=True),
    **{
        f"{how} {kind}": Fault(make(kind), RAYS_OWN, noisy=True)
        for kind in ("idle worker", "monitor", "dashboard", "log monitor")
        for how, make in (("SIGKILL", _kill), ("SIGSTOP", _stop))
    },
    **{
        f"SIGSTOP {kind}": Fault(_stop(kind), RAYS_OWN, noisy=True)
        for kind in ("raylet", "gcs_server", "agent", "environment agent")
    },
    "second driver": Fault(_second_driver),
    "tracker dies": Fault(_tracker),
}
"""Kinds of faults after which a run is to go on."""


# That end it


def _signal(number: signal.Signals) -> Callable[[Run], bool]:
    def make(run: Run) -> bool:
        if not run.goes_on(5):
            return False
        run.process.send_signal(number)
        return True

    return make


def _starting(run: Run) -> bool:
    """While Ray starts, or before, or just after; SIGTERM is then Ray's."""
    time.sleep(run.rng.uniform(0, 12))
    run.process.send_signal(run.rng.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT]))
    return True


def _ending(run: Run) -> bool:
    """While the last files are written, and Ray ends."""
    if not waited(run.process, lambda: OVER.search(run.study.said())):
        return False
    time.sleep(run.rng.uniform(0, 3))
    run.process.send_signal(run.rng.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT]))
    return True


def _write(run: Run) -> bool:
    """In the midst of a write."""
    skip = run.rng.randrange(6)

    def writes() -> bool:
        nonlocal skip
        seen = any(path.name.endswith(".partial") for path in run.study.folder.path().glob(".*"))
        skip -= seen
        return skip < 0 and seen

    if not waited(run.process, writes, every=0.0):
        return False
    run.process.kill()
    return True


def _extraction(run: Run) -> bool:
    """While hidden states are computed."""
    started: list[Path] = []

    def reached() -> bool:
        started.extend(run.study.cache.glob("*/encoder_00.npy"))
        return bool(started or BEGUN.search(run.study.said()))  # or its hidden states are not stored

    if not waited(run.process, reached, every=0.002) or not started:
        return False
    time.sleep(run.rng.uniform(0, 0.1))
    run.process.kill()
    return True


def _full(run: Run) -> bool:
    """The disk of the results is full, until the run has ended."""
    place = run.study.output.parent
    if not os.path.ismount(place) or not run.goes_on(3):
        return False
    ballast = place / "ballast"
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as stream:
        for size in (1 << 20, 1 << 12, 1):
            with contextlib.suppress(OSError):
                while stream.write(b"0" * size):
                    pass
    run.process.wait(PATIENCE)
    ballast.unlink()
    return True


def _read_only(run: Run) -> bool:
    """The results can only be read, until the run has ended."""
    place = str(run.study.output)
    if not os.path.ismount(run.study.output.parent) or not run.goes_on(3):
        return False
    subprocess.run(["mount", "--bind", place, place], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", place], check=True)
        run.process.wait(PATIENCE)
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)
    return True


ENDS: Mapping[str, Fault] = {
    "SIGKILL driver": Fault(_kill("driver"), (KILLED,)),
    "SIGKILL all": Fault(_kill("all"), (KILLED,), noisy=True),
    "SIGKILL in a write": Fault(_write, (KILLED,)),
    "SIGKILL in extraction": Fault(_extraction, (KILLED,)),
    "SIGTERM": Fault(_signal(signal.SIGTERM), (130,)),
    "SIGHUP": Fault(_signal(signal.SIGHUP), (130,)),
    "SIGINT": Fault(_signal(signal.SIGINT), (130,)),
    "a signal at the start": Fault(_starting, (KILLED, 130, -signal.SIGTERM, -signal.SIGINT, -signal.SIGHUP)),
    "a signal at the end": Fault(_ending, (KILLED, 130)),
    **{
        f"SIGKILL {kind}": Fault(_kill(kind), RAYS_OWN, noisy=True)
        for kind in ("raylet", "gcs_server", "agent", "environment agent")
    },
    "full disk": Fault(_full, (2,), noisy=True),
    "read-only disk": Fault(_read_only, (2,), noisy=True),
}
"""Kinds of faults that end a run, or may."""


@contextlib.contextmanager
def small_disk(place: Path) -> Iterator[None]:
    """Put a small disk of its own at this place, where the system lets us; what it held is kept if it was wrong."""
    place.mkdir(parents=True, exist_ok=True)
    made = sys.platform.startswith("linux") and not os.path.ismount(place) and os.geteuid() == 0
    made = (
        made
        and not subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=48m", "soak", str(place)], check=False, capture_output=True
        ).returncode
    )
    try:
        yield
    except Wrong:
        shutil.copytree(place, place.with_name(f"{place.name}.kept"), dirs_exist_ok=True)
        raise
    finally:
        if made:
            subprocess.run(["umount", "--lazy", str(place)], check=True)
