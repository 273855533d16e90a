"""The session: what workers are started with, and what that does to their memory."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from unittest import mock

import psutil
import pytest
import ray

from adalayers.console.interrupts import Interrupts
from adalayers.errors import BadInput
from adalayers.tuning import scratch
from adalayers.tuning.session import MALLOC, ray_session, watched

TRIALS = """
import sys, threading
import torch
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.training.trainer import train
from tests.benchmarks.memory import anonymous_mb
from tests.helpers.made_data import made_data

torch.set_num_threads(1)
data = made_data("token", layers=2, width=32, sizes=(256, 512, 8))
config = LayerMixConfig(epochs=1, k=16, heads=2, batch_size=256, feedforward=2048)
train(config, data, seed=0)  # what the first trial loads stays
before = anonymous_mb()
for seed in range(int(sys.argv[1])):
    trial = threading.Thread(target=train, args=(config, data), kwargs={"seed": seed})  # as Tune runs it
    trial.start()
    trial.join()
    print(anonymous_mb() - before)
assert "torch._dynamo" not in sys.modules, "training imports torch's compiler, which takes two seconds"
"""
LEFT, GROWTH = 40, 12
"""MB that a trial may leave in its worker, and that the worker may grow by from the 3rd to the 6th."""


def test_workers_of_a_cluster_start_with_the_settings_of_the_allocator(init, monkeypatch):
    monkeypatch.setenv("MALLOC_ARENA_MAX", "3")  # what the user's own environment says goes before
    with ray_session("somewhere:1"):
        pass
    assert init.call_args.kwargs["runtime_env"]["env_vars"] == {**MALLOC, "MALLOC_ARENA_MAX": "3"}


def test_workers_of_a_local_ray_inherit_them(init, monkeypatch):
    for name in MALLOC:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MALLOC_ARENA_MAX", "3")
    inherited = {}
    init.side_effect = lambda **_: inherited.update(os.environ)
    with ray_session(None):
        assert os.environ["MALLOC_ARENA_MAX"] == "3"
        assert "MALLOC_TRIM_THRESHOLD_" not in os.environ, "they are the workers' alone"
    assert {name: inherited[name] for name in MALLOC} == {**MALLOC, "MALLOC_ARENA_MAX": "3"}


def test_processes_that_outlive_ray_end_with_the_session(init):
    """A worker that is still there when the scratch folder goes would make its own folder in it again."""
    started = []
    init.side_effect = lambda **_: started.append(subprocess.Popen(["sleep", "300"]))
    with ray_session(None):
        assert started[0].poll() is None
    assert not psutil.pid_exists(started[0].pid)
    started[0].wait()


def idle():
    for _ in range(200):
        time.sleep(0.05)


def test_a_raylet_that_dies_is_said_and_ends_what_runs(tmp_path, capsys):
    raylet = subprocess.Popen([shutil.copy(shutil.which("sleep"), tmp_path / "raylet"), "300"])
    with raylet, Interrupts("").listening(), watched():
        raylet.kill()
        with pytest.raises(KeyboardInterrupt):
            idle()
    assert "Ray's own process raylet has died" in capsys.readouterr().err


@pytest.fixture
def init(monkeypatch, tmp_path):
    """Ray's start, which does nothing; no Ray runs."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("RAY_ADDRESS", "")
    monkeypatch.setattr(scratch.tempfile, "tempdir", None)  # it is looked for once
    with (
        mock.patch.object(ray, "init") as init,
        mock.patch.object(ray, "is_initialized", return_value=False),
        mock.patch.object(ray, "shutdown"),
    ):
        yield init


def test_a_local_ray_that_does_not_come_up_is_started_once_more(init, capsys):
    init.side_effect = [Exception("The current node timed out during startup."), None]
    with ray_session(None):
        pass
    assert init.call_count == 2
    assert init.call_args.kwargs["address"] == "local", "never a cluster that happens to run here"
    assert "Ray did not start" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("address", "attempts", "said"),
    [
        (None, 2, "did not start in 2 attempts"),
        ("head:6379", 1, "wanted to join the Ray cluster at head:6379"),
    ],
)
def test_a_ray_that_never_answers_is_bad_input(init, address, attempts, said):
    init.side_effect = ConnectionError("no raylet on this machine")
    with pytest.raises(BadInput, match=rf"{said}.*no raylet on this machine"):
        ray_session(address).__enter__()
    assert init.call_count == attempts


def test_sigterm_while_ray_starts_is_an_interruption(init):
    init.side_effect = SystemExit(15)  # as Ray answers it
    with pytest.raises(KeyboardInterrupt):
        ray_session(None).__enter__()
    assert init.call_count == 1


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc; the settings are glibc's")
def test_a_reused_worker_does_not_grow():
    """A process prints the private memory (MB) that it has more after each of its trials than before them."""
    environment = {name: value for name, value in os.environ.items() if name not in MALLOC}
    done = subprocess.run(
        [sys.executable, "-c", TRIALS, "6"],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[4],
        env={**environment, **MALLOC},
    )
    assert done.returncode == 0, done.stderr
    left = [float(line) for line in done.stdout.split()]
    assert max(left) < LEFT
    assert left[5] - left[2] < GROWTH
