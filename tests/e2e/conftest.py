"""Hidden states of the real MiniLM, stored once for all processes of the tests."""

from collections.abc import Iterator
from pathlib import Path

import jaxtyping
import pytest

from adalayers.request import DataRequest


@pytest.fixture(scope="module", autouse=True)
def _unchecked() -> Iterator[None]:
    """Leave out the checks of types and shapes, a sixth of the time here.

    tests/unit has them, over small models, for the same code: fusions, heads, backbones and changed base models.
    """
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)


@pytest.fixture(scope="session")
def minilm_cache(shared_folder: Path) -> Path:
    """A folder for them; of two processes that want the same, the second waits for the first."""
    return shared_folder / "minilm"


@pytest.fixture(scope="session")
def entities() -> DataRequest:
    """What several tests train on."""
    sizes = {"train_examples": 300, "eval_examples": 150, "test_examples": 150, "max_length": 64}
    return DataRequest("minilm", "entities-demo", **sizes)
