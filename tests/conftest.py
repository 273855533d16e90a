"""Settings that all tests share."""

import atexit
import contextlib
import functools
import os
import shutil
import socket
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from filelock import FileLock

ROOT = Path(__file__).parents[1]

# Tiny tensors: more threads only wait for each other, and Ray's workers would fight for the cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
# Ray starts its workers with a niceness of 15: next to other tests they would hardly run.
os.environ.setdefault("RAY_worker_niceness", "0")
# No workers before anybody asks: the tests have a use for fewer than Ray starts.
os.environ.setdefault("RAY_prestart_worker_first_driver", "0")
os.environ.setdefault("RAY_enable_worker_prestart", "0")
# To be looked for where it must not be.
os.environ["ADALAYERS_TESTS_SECRET"] = os.environ["AWS_SECRET_ACCESS_KEY"] = "hunter2-of-the-tests"
# What the user's own environment says must not reach the tests.
for name in ("MLFLOW_TRACKING_URI", "ADALAYERS_CACHE", "HF_ENDPOINT"):
    os.environ.pop(name, None)
# Ray's workers inherit it too: no test writes to the user's cache.
os.environ["ADALAYERS_CACHE"] = tempfile.mkdtemp(prefix="adalayers-tests-")
atexit.register(shutil.rmtree, os.environ["ADALAYERS_CACHE"], ignore_errors=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Measure coverage by unit tests alone: elsewhere much runs in processes that it does not see."""
    for item in items:
        if "unit" not in item.path.parts:
            item.add_marker("no_cover")


@pytest.fixture(scope="session")
def ray_here() -> Iterator[None]:
    """Ray, started once in this process for every test that runs a study in it: its start takes longer than they do."""
    from adalayers.tuning.session import ray_session

    with contextlib.ExitStack() as session:
        with warnings.catch_warnings(action="ignore"):
            session.enter_context(ray_session(None))
        yield
        with warnings.catch_warnings(action="ignore"):
            session.close()


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A tiny backbone and a tiny dataset on disk, which no test changes."""
    from tests.helpers import studying

    return studying.world(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="session")
def tiny_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return the folder of a tiny backbone of a family and sizes, made once, which no test changes."""
    from tests.helpers.tiny import tiny_backbone

    @functools.cache
    def tiny(family: str = "bert", **sizes: int) -> Path:
        return tiny_backbone(tmp_path_factory.mktemp("backbones") / family, family, **sizes)

    return tiny


@pytest.fixture
def folder(tmp_path: Path) -> object:
    """The folder of a study, which is not there yet."""
    from adalayers.storage.folder import Folder

    return Folder(tmp_path / "study")


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of something that accepts and never answers."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield f"127.0.0.1:{listening.getsockname()[1]}"


@pytest.fixture
def closed() -> Iterator[str]:
    """An address at which nothing answers."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An MLflow database with its tables and nothing else, to be copied: making the tables takes seconds."""
    from mlflow import MlflowClient

    own = tmp_path_factory.getbasetemp()
    path = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "empty.db"  # one for all processes
    with FileLock(f"{path}.lock"):
        if not path.exists():
            made = tmp_path_factory.mktemp("mlflow") / "empty.db"
            with warnings.catch_warnings(action="ignore"):
                MlflowClient(tracking_uri=f"sqlite:///{made}").search_experiments()
            made.rename(path)
    return path
