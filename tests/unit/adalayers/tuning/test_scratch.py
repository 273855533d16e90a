"""What a driver that was killed has left goes with the next run's start, and nothing else does."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest

from adalayers.tuning import scratch
from tests.helpers.refusing import refused

ROOT = Path(__file__).parents[4]
DRIVER = """
import os, subprocess, sys, time, types
room = sys.modules["adalayers.tuning"] = types.ModuleType("adalayers.tuning")
room.__path__ = ["adalayers/tuning"]  # this room without torch and Ray, which take seconds
from adalayers.environ import inherited
from adalayers.tuning.scratch import MARK, scratch_folder

with scratch_folder() as folder:
    sleep = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(300)"]
    with inherited({MARK: folder.name}):
        raylet = subprocess.Popen(sleep, stdout=subprocess.PIPE)
    environment = {name: value for name, value in os.environ.items() if name != "ADALAYERS_RAY"}
    with open(folder / "worker.out", "w") as out:
        worker = subprocess.Popen(sleep, stdout=out, env=environment)
    users = subprocess.Popen(sleep, stdout=subprocess.PIPE)
    for started in (raylet, users):
        started.stdout.readline()
    print(folder, raylet.pid, worker.pid, users.pid, flush=True)
    time.sleep(300)
"""


@pytest.fixture(autouse=True)
def temporary(monkeypatch):
    """A temporary folder of the test's own, with a name short enough for Ray."""
    with tempfile.TemporaryDirectory(prefix="", dir="/tmp") as folder:
        monkeypatch.setenv("TMPDIR", folder)
        monkeypatch.setattr(scratch.tempfile, "tempdir", None)
        yield Path(folder)


@pytest.fixture
def driver():
    """Start a driver; return it, its folder, and what it has started: marked, writing to the folder, and neither."""
    process = subprocess.Popen([sys.executable, "-c", DRIVER], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    folder, *pids = process.stdout.readline().split()
    yield process, Path(folder), [psutil.Process(int(pid)) for pid in pids]
    process.kill()
    process.communicate()
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)


def lives(process):
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_what_a_killed_driver_left_goes_and_nothing_else(driver, temporary, capsys):
    process, folder, started = driver
    others = [temporary / name for name in ("adalayers-ray-abc", "adalayers-ray-0123456789", "ray")]
    for other in others:
        other.mkdir()
    scratch.clear_dead()  # the driver lives
    assert folder.exists()
    assert all(lives(child) for child in started)
    process.kill()
    process.wait()
    with scratch.scratch_folder() as mine:
        assert mine.exists()
        assert not folder.exists()
        assert [lives(left) for left in started] == [False, False, True]
        assert f"2 processes and {folder}" in capsys.readouterr().err
    assert sorted(temporary.iterdir()) == sorted(others)


def test_a_folder_that_is_just_being_made_or_is_a_link_stays(temporary):
    (temporary / "adalayers-ray-01234567").mkdir()
    (temporary / "elsewhere").mkdir()
    (temporary / "adalayers-ray-76543210").symlink_to(temporary / "elsewhere")
    scratch.clear_dead()
    assert len(list(temporary.iterdir())) == 3


@pytest.mark.parametrize("name", ["t" * 60, "ü", "t t", "a%41"])
def test_a_tmpdir_that_ray_cannot_use_is_not_used(name, tmp_path, temporary, monkeypatch):
    """Sockets have room for a short folder alone; other names than plain ones are read otherwise."""
    (temporary / name).mkdir()
    monkeypatch.setattr(scratch.tempfile, "tempdir", str(temporary / name))
    monkeypatch.setattr(scratch, "_SHORT", tmp_path)
    with scratch.scratch_folder() as folder:
        assert folder.parent == tmp_path
        assert folder.stat().st_mode & 0o777 == 0o700
    assert not [*tmp_path.iterdir(), *(temporary / name).iterdir()]
    monkeypatch.setattr(scratch, "_SHORT", tmp_path / "none")
    refused("set TMPDIR to one whose path is of at most 14", scratch.scratch_folder().__enter__)
