"""Ray's private names are where they are used; what fails here breaks with another release of Ray."""

import pkgutil
import sys
from types import SimpleNamespace

import pytest
from ray.exceptions import OutOfMemoryError, RayError
from ray.tune.execution import class_cache

from adalayers.tuning import ray_private


@pytest.mark.parametrize(
    "name",
    [
        "ray._private.services:canonicalize_bootstrap_address",
        "ray._raylet:GcsClient",
        "ray.tune.experiment.trial:Trial.set_ray_actor",
        "ray.tune.execution.class_cache:DEFAULT_ENV_VARS",
        "ray.tune.execution.class_cache:ENV_VARS_TO_PROPAGATE",
        "ray.job_config:JobConfig._runtime_env_has_working_dir",
    ],
)
def test_a_private_name_is_there(name):
    pkgutil.resolve_name(name)


def test_without_its_private_names_ray_does_less_and_nothing_fails(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray._private.services", None)
    monkeypatch.delattr(class_cache, "ENV_VARS_TO_PROPAGATE")
    monkeypatch.setattr("ray.job_config.JobConfig", SimpleNamespace)
    assert ray_private.answer("nowhere:1", 1) == "ray", "joining says the rest"
    assert ray_private.worker_of(SimpleNamespace()) is None
    ray_private.withhold_credentials()
    assert vars(ray_private.job_config(["/first"])) == {}


def test_keys_are_no_part_of_a_trials_runtime_environment_which_is_empty_for_a_ray_started_here(monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    # As Ray has it: a study that ran in this process has withheld the keys before.
    monkeypatch.setattr(class_cache, "ENV_VARS_TO_PROPAGATE", {"AWS_SECRET_ACCESS_KEY"})

    def environment():
        return class_cache._ActorClassCache().get(type("Trial", (), {}))._default_options["runtime_env"]

    with ray_private.without_environment():
        assert environment() == {}
    assert "hunter2" in str(environment()), "else nothing is left to withhold"
    ray_private.withhold_credentials()
    assert "hunter2" not in str(environment())


def test_workers_look_first_where_they_are_told_to():
    config = ray_private.job_config(["/first", "/second"])
    config._py_driver_sys_path.extend(["/current"])  # as ray.init does
    path = ["/own"]
    for entry in config._get_proto_job_config().py_driver_sys_path:
        path.insert(0, entry)  # as a worker does
    assert path == ["/first", "/second", "/own"]
    assert not ray_private.job_config([])._get_proto_job_config().py_driver_sys_path


KILLED = """The actor is dead because its worker process has died. Worker exit detail: Worker unexpectedly exits \
with a connection error code 2. End of file. There are some potential root causes. (1) The process is killed by \
SIGKILL by OOM killer due to high memory usage. (2) ray stop --force is called."""


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RayError("It died (pid=7)\nModuleNotFoundError: No module"), "ModuleNotFoundError: No module"),
        (RayError(KILLED), "Worker unexpectedly exits with a connection error code 2. End of file"),
        (OutOfMemoryError("Memory was 15 of 16 GB\nset RAY_memory"), "Memory was 15 of 16 GB"),
        (RayError(), "RayError"),
    ],
)
def test_a_failed_worker_is_said_to_have_failed_of_what_ray_knows(error, said):
    assert ray_private.cause(error) == said
