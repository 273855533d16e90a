"""Ray's private names are where they are used; what fails here breaks with another release of Ray."""

import pkgutil
import sys
from types import SimpleNamespace

import pytest
import ray
from ray.exceptions import OutOfMemoryError, RayError
from ray.tune.execution import class_cache

from adalayers.tuning import ray_private

PRIVATE_NAMES = {
    "ray._private.services:canonicalize_bootstrap_address": "as without GcsClient",
    "ray._private.services:find_bootstrap_address": "without it `--address auto` asks for host:port",
    "ray._raylet:GcsClient": "without it a port that answers is taken for a cluster's, and joining it says what fails",
    "ray.tune.experiment.trial:Trial.set_ray_actor": "without it no worker is killed for making no progress",
    "ray.tune.execution.class_cache:ENV_VARS_TO_PROPAGATE": "without it Ray hands no keys on",
    "ray.job_config:JobConfig._runtime_env_has_working_dir": "without it workers look where Ray lets them",
}
"""Where each name is, and what holds without it."""


@pytest.mark.parametrize(("name", "without"), PRIVATE_NAMES.items())
def test_a_private_name_is_there(name, without):
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        pytest.fail(f"Ray {ray.__version__} has no {name}: {without}")


def test_without_its_private_names_ray_does_less_and_nothing_fails(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray._private.services", None)
    monkeypatch.delattr(class_cache, "ENV_VARS_TO_PROPAGATE")
    monkeypatch.setattr("ray.job_config.JobConfig", SimpleNamespace)
    assert ray_private.address_of_this_machine() is None
    assert ray_private.answer("nowhere:1", 1) == "ray", "joining says the rest"
    assert ray_private.worker_of(SimpleNamespace()) is None
    ray_private.withhold_credentials()
    assert vars(ray_private.job_config(["/first"])) == {}


def test_keys_are_no_part_of_a_trials_runtime_environment(monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    # As Ray has it: a study that ran in this process has withheld the keys before.
    monkeypatch.setattr(class_cache, "ENV_VARS_TO_PROPAGATE", {"AWS_SECRET_ACCESS_KEY"})
    before = class_cache._ActorClassCache().get(type("Trial", (), {}))
    assert "hunter2" in str(before._default_options), "else nothing is left to withhold"
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
        (OutOfMemoryError("Memory was 15 of 16 GB\nset RAY_memory"), "Memory was 15 of 16 GB"),
        (RayError(), "RayError"),
    ],
)
def test_a_failed_worker_is_said_to_have_failed_of_what_ray_knows(error, said):
    assert ray_private.cause(error) == said
