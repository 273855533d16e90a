"""Ray's private names are where they are used; what fails here breaks with another release of Ray."""

import inspect
import pkgutil
from types import SimpleNamespace

import pytest
import ray
from ray.exceptions import OutOfMemoryError, RayError
from ray.tune.execution import class_cache
from ray.tune.schedulers import ASHAScheduler

from adalayers.tuning import ray_private
from tests.conftest import ROOT


@pytest.mark.parametrize(("name", "needed_by"), ray_private.PRIVATE_NAMES.items())
def test_a_private_name_is_there(name, needed_by):
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        pytest.fail(f"Ray {ray.__version__} has no {name}, needed by {needed_by}; mend tuning/ray_private.py")


def test_a_local_ray_takes_a_folder():
    assert f'"{ray_private.TEMP_DIR}"' in inspect.getsource(ray.init), "it is one of its further keywords"


def test_asha_keeps_trials_where_they_are_forgotten():
    scheduler = ASHAScheduler(metric="best", mode="max")
    scheduler.on_trial_add(None, SimpleNamespace(trial_id="a"))
    assert "a" in scheduler._trial_info
    ray_private.forget_trial(scheduler, "a")
    assert not scheduler._trial_info


def test_keys_are_no_part_of_a_trials_runtime_environment(monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    # As Ray has it: a study that ran in this process has withheld the keys before.
    monkeypatch.setattr(
        class_cache, "ENV_VARS_TO_PROPAGATE", {"AWS_SECRET_ACCESS_KEY", "RAY_CHDIR_TO_TRIAL_DIR"}
    )
    before = class_cache._ActorClassCache().get(type("Trial", (), {}))
    assert "hunter2" in str(before._default_options), (
        "Ray no longer hands them on: nothing is left to withhold"
    )
    ray_private.withhold_credentials()
    after = class_cache._ActorClassCache().get(type("Trial", (), {}))
    assert "hunter2" not in str(after._default_options)


def test_workers_look_first_where_they_are_told_to():
    config = ray_private.job_config(["/first", "/second"])
    config._py_driver_sys_path.extend(["/current"])  # as ray.init does
    path = ["/own"]
    for entry in config._get_proto_job_config().py_driver_sys_path:
        path.insert(0, entry)  # as a worker does
    assert path == ["/first", "/second", "/own"]
    assert not ray_private.job_config([])._get_proto_job_config().py_driver_sys_path


IMPORT = """The actor died because of an error raised in its creation task, ray::ImplicitFunc.__init__() (pid=7)
ModuleNotFoundError: No module named 'adalayers.tuning'"""
KILLED = """The actor died unexpectedly before finishing this task.
	class_name: ImplicitFunc
The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: Worker \
unexpectedly exits with a connection error code 2. End of file. There are some potential root causes. (1) The process \
is killed by SIGKILL by OOM killer due to high memory usage. (2) ray stop --force is called."""


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RayError(IMPORT), "ModuleNotFoundError: No module named 'adalayers.tuning'"),
        (RayError(KILLED), "Worker unexpectedly exits with a connection error code 2. End of file"),
        (
            OutOfMemoryError("Memory was 15 of 16 GB\nset RAY_memory_usage_threshold"),
            "Memory was 15 of 16 GB",
        ),
        (RayError(), "RayError"),
    ],
)
def test_a_failed_worker_is_said_to_have_failed_of_what_ray_knows(error, said):
    assert ray_private.cause(error) == said


def test_the_release_is_the_one_that_is_pinned():
    assert ray.__version__.startswith(f"{ray_private.RELEASE}.")
    assert f"ray=={ray_private.RELEASE}." in (ROOT / "constraints.txt").read_text()
    assert f'"ray[tune]=={ray_private.RELEASE}.*"' in (ROOT / "pyproject.toml").read_text()
