"""What can go wrong with a study that runs: each kind of fault, and how it is made."""

from __future__ import annotations

import contextlib
import math
import os
import random
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.helpers.long_form import Wrong
from tests.helpers.mlflow_server import Server
from tests.helpers.small_study import PATIENCE, Study, children, waited

BEGUN = re.compile(r"at a time|nothing to run")
"""What a run says once it has read its folder."""
OVER = re.compile(r"\[(\d+)/\1\]")
"""What it says when the last trial has ended."""
CLOCK = """
import time
real, began = time.time, time.monotonic()
time.time = lambda: real() + {jump} * (time.monotonic() - began > {after})
"""
"""A `sitecustomize` whose clock jumps, in the driver and in all of Ray that is Python."""
DISK = "48m"
"""Size of the disk that holds a study's results and cache."""
FULL = "until mount -o remount,size=$(df --output=used -B1 {0} | tail -1) {0}; do :; done"
READ_ONLY = "mount --bind {0}/results {0}/results && mount -o remount,bind,ro {0}/results"


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
    def place(self) -> Path:
        return self.study.output.parent

    @property
    def copy(self) -> Path:
        return self.study.output.parent / "copy"

    def goes_on(self, seconds: float) -> bool:
        """Let it run for up to so many seconds; return whether it has not ended."""
        end = time.monotonic() + self.rng.uniform(0, seconds)
        return waited(self.process, lambda: time.monotonic() > end)

    def says(self, words: re.Pattern[str]) -> bool:
        return waited(self.process, lambda: words.search(self.study.said()))


Chance = Callable[[Run], bool]
"""Waits for a moment, or makes something happen; returns whether there was a chance to."""


@dataclass(frozen=True)
class Fault:
    """A kind of fault.

    Attributes:
        make: Makes it happen.
        codes: What the run may end with for it, but for 0.
        noisy: Whether tracebacks are Ray's own.
        early: Whether it is made before the run's trials have begun.
    """

    make: Chance
    codes: tuple[int, ...] = ()
    noisy: bool = False
    early: bool = False


def _flipped(files: str) -> Chance:
    """Flip a bit of one of these files below the study's place."""

    def make(run: Run) -> bool:
        paths = sorted(path for path in run.place.glob(files) if path.stat().st_size)
        if not paths:
            return False
        path, folder = run.rng.choice(paths), run.study.folder.path()
        if path.is_relative_to(folder):
            shutil.rmtree(run.copy, ignore_errors=True)
            shutil.copytree(folder, run.copy)
            run.damaged = path.name
        content = bytearray(path.read_bytes())
        content[run.rng.randrange(len(content))] ^= 1 << run.rng.randrange(8)
        path.write_bytes(content)
        return True

    return make


def _clock(run: Run) -> bool:
    folder = run.place / "clock"
    folder.mkdir(exist_ok=True)
    jump = run.rng.choice([-1, 1]) * 10 ** run.rng.uniform(1, 6)
    (folder / "sitecustomize.py").write_text(CLOCK.format(jump=jump, after=run.rng.uniform(2, 20)))
    run.environment["PYTHONPATH"] = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    return True


def _sent(
    kind: str, *numbers: signal.Signals, within: float = 1.5, when: Chance | None = None, stopped: float = 2.0
) -> Chance:
    """Send one of these signals to processes of a kind; what it stops goes on, if it lives, after that many seconds."""

    def make(run: Run) -> bool:
        if not (when(run) if when else run.goes_on(within)) or not (processes := _processes(run, kind)):
            return False
        number = run.rng.choice(numbers)
        _send(processes, number)
        if number == signal.SIGSTOP:
            end = time.monotonic() + run.rng.uniform(0.5, stopped)
            waited(run.process, lambda: time.monotonic() > end or not any(p.is_running() for p in processes))
            _send(processes, signal.SIGCONT)
        return True

    return make


def _processes(run: Run, kind: str) -> list[psutil.Process]:
    with contextlib.suppress(psutil.Error):  # it has ended
        driver = psutil.Process(run.process.pid)
        if kind == "driver":
            return [driver]
        return [driver, *children(run.process)] if kind == "all" else children(run.process, kind)[:1]
    return []


def _send(processes: list[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(psutil.Error):  # it was quicker
            process.send_signal(number)


def _at_the_start(run: Run) -> bool:
    """While Ray starts, or before, or just after."""
    time.sleep(run.rng.uniform(0, 12))
    return True


def _at_the_end(run: Run) -> bool:
    """While the last files are written, and Ray and Python end."""
    return run.says(OVER) and run.goes_on(5)


def _in_a_write(run: Run) -> bool:
    skip = run.rng.randrange(6)

    def writes() -> bool:
        nonlocal skip
        seen = any(path.name.endswith(".partial") for path in run.study.folder.path().glob(".*"))
        skip -= seen
        return skip < 0 and seen

    return waited(run.process, writes, every=0.0)


def _in_extraction(run: Run) -> bool:
    """While hidden states are computed, where they are stored."""
    started: list[Path] = []
    if BEGUN.search(run.study.said()):
        return False

    def reached() -> bool:
        started.extend(run.study.cache.glob("*/encoder_00.npy"))
        return bool(started or BEGUN.search(run.study.said()))

    shutil.rmtree(run.study.cache, ignore_errors=True)
    return waited(run.process, reached, every=0.002) and bool(started) and run.goes_on(0.1)


def _tracker(run: Run) -> bool:
    if run.server is None or not run.server.lives() or not run.goes_on(1.5):
        return False
    run.server.kill()
    return True


def _disk(do: str, undo: str) -> Chance:
    """Let a study's small disk be otherwise until the run has ended, where there is one."""

    def make(run: Run) -> bool:
        if not os.path.ismount(run.place) or not run.goes_on(3):
            return False
        subprocess.run(do.format(run.place), shell=True, check=True)
        try:
            run.process.wait(PATIENCE)
        finally:
            subprocess.run(undo.format(run.place), shell=True, check=True)
        return True

    return make


@contextlib.contextmanager
def small_disk(place: Path) -> Iterator[None]:
    """Put a small disk of its own at this place, where the system lets us; what it held is kept if it was wrong."""
    place.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "soak", str(place)]
    made = subprocess.run(mount, check=False, capture_output=True).returncode == 0
    try:
        yield
    except Wrong:
        shutil.copytree(place, place.with_name(f"{place.name}.kept"), dirs_exist_ok=True)
        raise
    finally:
        if made:
            subprocess.run(["umount", "--lazy", str(place)], check=True)


FOLDER = "results/alpha_lambda/tiny-echo"
KILL, STOP = signal.SIGKILL, signal.SIGSTOP
POLITE = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
KILLED, RAYS_OWN = -signal.SIGKILL, (130, 1)
"""Exit codes: of SIGKILL, and of a death of Ray's own processes: Ray may end the driver before that has noticed."""
VITAL = ("raylet", "gcs_server", "agent", "environment agent")
"""Processes of Ray without which it ends."""

BEFORE: Mapping[str, Fault] = {
    "a byte of a shard": Fault(_flipped("cache/*/*.npy")),
    "a byte of meta.json": Fault(_flipped("cache/*/meta.json")),
    "a byte of a checkpoint": Fault(_flipped(f"{FOLDER}/work/*/checkpoint*")),
    "a byte of a trial's files": Fault(_flipped(f"{FOLDER}/work/*/[!c]*.*"), (2,)),
    "a byte of a results file": Fault(_flipped(f"{FOLDER}/*.parquet"), (2,)),
    "clock jumps": Fault(_clock),
}
"""Kinds of faults that a run starts with."""
WHILE: Mapping[str, Fault] = {
    "SIGKILL worker": Fault(_sent("worker", KILL), noisy=True),
    "SIGSTOP worker": Fault(_sent("worker", STOP)),
    "SIGSTOP driver": Fault(_sent("driver", STOP)),
    "SIGSTOP all": Fault(_sent("all", STOP), RAYS_OWN, noisy=True),
    "hanging worker": Fault(_sent("worker", STOP, stopped=math.inf), noisy=True),
    **{
        f"{number.name} {kind}": Fault(_sent(kind, number), RAYS_OWN, noisy=True)
        for kind in ("idle worker", "monitor", "dashboard", "log monitor")
        for number in (KILL, STOP)
    },
    **{f"SIGSTOP {kind}": Fault(_sent(kind, STOP), RAYS_OWN, noisy=True) for kind in VITAL},
    "tracker dies": Fault(_tracker),
}
"""Kinds of faults after which a run is to go on."""
ENDS: Mapping[str, Fault] = {
    "SIGKILL driver": Fault(_sent("driver", KILL), (KILLED,)),
    "SIGKILL all": Fault(_sent("all", KILL), (KILLED,), noisy=True),
    "SIGKILL in a write": Fault(_sent("driver", KILL, when=_in_a_write), (KILLED,)),
    "SIGKILL in extraction": Fault(_sent("driver", KILL, when=_in_extraction), (KILLED,), early=True),
    **{number.name: Fault(_sent("driver", number, within=5), (130,)) for number in POLITE},
    "a signal at the start": Fault(
        _sent("driver", KILL, *POLITE, when=_at_the_start),
        (KILLED, 130, *(-number for number in POLITE)),  # Python's own, before the command is read
        early=True,
    ),
    "a signal at the end": Fault(_sent("driver", KILL, *POLITE, when=_at_the_end), (KILLED, 130)),
    **{f"SIGKILL {kind}": Fault(_sent(kind, KILL), RAYS_OWN, noisy=True) for kind in VITAL},
    "full disk": Fault(_disk(FULL, f"mount -o remount,size={DISK} {{0}}"), (2,), noisy=True),
    "read-only disk": Fault(_disk(READ_ONLY, "umount --lazy {0}/results"), (2,), noisy=True),
}
"""Kinds of faults that end a run, or may."""
FAULTS: Mapping[str, Fault] = {**BEFORE, **WHILE, **ENDS}
