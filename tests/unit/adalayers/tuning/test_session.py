"""The session: what workers are started with, what that does to their memory, and what becomes of Ray that fails."""

import os
import shutil
import subprocess
import sys
import time
from unittest import mock

import psutil
import pytest
import ray
from ray.tune.execution import class_cache

from adalayers.console.interrupts import Interrupts
from adalayers.errors import BadInput
from adalayers.tuning import scratch
from adalayers.tuning.session import MALLOC, ray_session, watched
from tests.conftest import ROOT

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
for seed in range(6):
    trial = threading.Thread(target=train, args=(config, data), kwargs={"seed": seed})  # as Tune runs it
    trial.start()
    trial.join()
    print(anonymous_mb() - before)
assert "torch._dynamo" not in sys.modules, "training imports torch's compiler, which takes two seconds"
"""


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


@pytest.mark.parametrize("address", [None, "somewhere:1"])
def test_workers_start_with_the_settings_of_the_allocator(init, address, monkeypatch):
    """Those of a local Ray inherit them; what the user's own environment says goes before."""
    for name in MALLOC:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MALLOC_ARENA_MAX", "3")
    inherited = {}
    init.side_effect = lambda **_: inherited.update(os.environ)
    with ray_session(address):
        assert "MALLOC_TRIM_THRESHOLD_" not in os.environ, "they are the workers' alone"
    started = init.call_args.kwargs["runtime_env"]["env_vars"] if address else inherited
    assert {name: started[name] for name in MALLOC} == {**MALLOC, "MALLOC_ARENA_MAX": "3"}


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


def test_a_local_ray_that_does_not_come_up_is_started_once_more(init, capsys):
    init.side_effect = [Exception("The current node timed out during startup."), None]
    with ray_session(None):
        assert not class_cache.DEFAULT_ENV_VARS, "of trials, else each worker starts twice"
    assert init.call_count == 2
    assert init.call_args.kwargs["address"] == "local", "never a cluster that happens to run here"
    assert "Ray did not start" in capsys.readouterr().err


NO_RAYLET = ConnectionError("no raylet on this machine")


@pytest.mark.parametrize(
    ("address", "raised", "attempts", "error", "said"),
    [
        (None, NO_RAYLET, 2, BadInput, "did not start in 2 attempts.*no raylet on this machine"),
        ("head:6379", NO_RAYLET, 1, BadInput, "wanted to join the Ray cluster at head:6379.*no raylet"),
        (None, SystemExit(15), 1, KeyboardInterrupt, "^$"),  # as Ray answers SIGTERM
    ],
)
def test_a_ray_that_never_answers_is_bad_input(init, address, raised, attempts, error, said):
    init.side_effect = raised
    with pytest.raises(error, match=said):
        ray_session(address).__enter__()
    assert init.call_count == attempts


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc; the settings are glibc's")
def test_a_reused_worker_does_not_grow():
    """A process prints the private memory (MB) that it has more after each of its trials than before them."""
    command = [sys.executable, "-c", TRIALS]
    environment = os.environ | MALLOC
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stderr
    left = [float(line) for line in done.stdout.split()]
    assert max(left) < 40
    assert left[5] - left[2] < 12
