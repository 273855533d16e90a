"""A small study of a user's own process, as long forms run it and disturb it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pandas as pd
import psutil
from filelock import FileLock, Timeout

from adalayers.results.files import CLAIMS, FINISHED, HISTORY, PREDICTIONS, STUDY, TRIALS, read_trials
from adalayers.storage.folder import Folder
from tests.helpers.long_form import Wrong
from tests.helpers.pages import rebuild_claims
from tests.helpers.studying import SCRIPT, flags

FLAGS = (
    *("--set", "alpha=8", "entropy_weight=0", "--search", "grid", "--scheduler", "fifo", "--trials", "4"),
    *("--seeds", "12", "--epochs", "8", "--tracking-uri", "none"),
)
"""A search whose trials and outcome do not depend on the order in which they end."""
WITHOUT_FIGURES = """
import runpy, sys, reports.write
reports.write.images = lambda *_: {"png": b"", "svg": b""}
runpy.run_path(sys.argv.pop(0) and sys.argv[0], run_name="__main__")
"""
"""Code to run a study by whose figures are empty files: drawing them takes most of the time of a page."""
PATIENCE = 600.0
"""Seconds after which a run that has not ended, or not begun its trials, counts as hanging."""


class Study:
    """The study in one output folder, run by its user's command in a process group of its own."""

    def __init__(self, made: dict[str, Path], root: Path, name: str, more: Sequence[str]):
        self.output = root / name / "results"
        self.folder = Folder(self.output / "alpha_lambda" / "tiny-echo")
        self.cache, self.log = root / name / "cache", root / f"{name}.log"
        self._argv = [str(SCRIPT), *flags(made, self.output, *more)]
        (root / "t").mkdir(exist_ok=True)
        own = {"TMPDIR": str(root / "t"), "OMP_NUM_THREADS": "1", "RAY_worker_niceness": "0"}
        self.environment = {**os.environ, **own}

    def start(self, environment: Mapping[str, str] = {}, at: tuple[str, ...] = ()) -> subprocess.Popen[bytes]:
        """Start the user's command.

        Args:
            environment: Its variables; none: the study's own.
            at: Code to run it by, and that code's arguments.
        """
        argv = [sys.executable, *(["-c", *at] if at else []), *self._argv]
        variables = {**(environment or self.environment), "TMPDIR": self.environment["TMPDIR"]}
        with self.log.open("a") as file:
            print("--- run", file=file, flush=True)
            return subprocess.Popen(argv, stdout=file, stderr=file, env=variables, start_new_session=True)

    def said(self) -> str:
        """Return what the last run has said so far."""
        return self.log.read_text(errors="replace").rpartition("--- run\n")[2]

    def ended(self) -> int:
        """Return how many trials have a row that is not to run again."""
        statuses = read_trials(self.folder)["status"] if self.folder.exists(TRIALS) else ()
        return sum(status in FINISHED for status in statuses)


def waited(process: subprocess.Popen[bytes], until: Callable[[], object], every: float = 0.05) -> bool:
    """Return whether `until` came true before the process ended. Raises `Wrong` where neither happens in time."""
    end = time.monotonic() + PATIENCE
    while process.poll() is None:
        if until():
            return True
        if time.monotonic() > end:
            raise Wrong(f"a run hangs (process {process.pid})")
        time.sleep(every)
    return False


KINDS = {
    "worker": ("ray::ImplicitFunc",),  # runs trials
    "idle worker": ("ray::IDLE", "default_worker.py"),
    "raylet": ("raylet/raylet",),
    "gcs_server": ("gcs/gcs_server",),
    "monitor": ("_private/monitor.py",),
    "dashboard": ("dashboard/dashboard.py",),
    "log monitor": ("log_monitor.py",),
    "agent": ("dashboard/agent.py", "ray::DashboardAgent"),
    "environment agent": ("runtime_env/agent/main.py", "ray::RuntimeEnvAgent"),
}
"""Kinds of Ray's processes by how their command begins."""


def children(process: subprocess.Popen[bytes], kind: str = "") -> list[psutil.Process]:
    """Return the processes below a driver, or those of a kind alone."""
    found = []
    with contextlib.suppress(psutil.Error):
        for child in psutil.Process(process.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                begins = " ".join(child.cmdline()[:3])[:300]
                if not kind or any(words in begins for words in KINDS[kind]):
                    found.append(child)
    return found


def differences(study: Study, whole: Study, *, rounded: bool = False) -> list[str]:
    """Return what differs between two studies that have ended, times and groups aside.

    Claims are those of both studies' rows in view of one history of analyses: a run that ends early makes one.

    Args:
        study: The one that was disturbed.
        whole: The other one.
        rounded: Whether numbers may differ as those of one trial in two groups; claims are then not compared.
    """
    found = []
    how = {"rtol": 1e-4, "atol": 1e-5} if rounded else {"check_exact": True}
    for name in (TRIALS, HISTORY, PREDICTIONS):
        left, right = (_rows(of.folder, name) for of in (study, whole))
        try:
            pd.testing.assert_frame_equal(left, right, check_like=True, **how)
        except AssertionError as error:
            found.append(f"{name}: {' '.join(str(error).split())[:300]}")
    if not rounded and _claims(study, whole) != _claims(whole, whole):
        found.append(f"{CLAIMS} differs")
    return found


def _rows(folder: Folder, name: str) -> pd.DataFrame:
    """Return a file's rows in the order of their keys."""
    frame = read_trials(folder) if name == TRIALS else folder.read_parquet(name)
    order = [column for column in ("trial_id", "step", "epoch", "split", "index") if column in frame]
    return frame.sort_values(order).drop(columns=["seconds", "group"], errors="ignore").reset_index(drop=True)


def _claims(study: Study, whole: Study) -> bytes:
    """Return what a report claims of the rows of one study, had it the request and the analyses of the other."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Folder(scratch)
        for name, source in ((TRIALS, study), (PREDICTIONS, study), (STUDY, whole)):
            folder.write_bytes(name, source.folder.read_bytes(name))
        rebuild_claims(folder)
        return folder.read_bytes(CLAIMS)


def left_behind() -> list[str]:
    """Return the scratch folders of dead drivers, and the processes with anything in them."""
    folders = []
    for folder in Path("/tmp").glob("adalayers-ray-*"):
        with contextlib.suppress(Timeout, OSError), FileLock(folder / "lock", timeout=0):
            folders.append(folder.name)
    running = {child.pid: " ".join(child.info["cmdline"] or []) for child in psutil.process_iter(["cmdline"])}
    return [*folders, *(f"process {pid}" for pid, words in running.items() if any(map(words.count, folders)))]
