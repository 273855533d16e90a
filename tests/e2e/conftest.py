"""What tests of the real MiniLM share."""

from collections.abc import Iterator
from unittest import mock

import jaxtyping
import pytest


@pytest.fixture(scope="module", autouse=True)
def _unchecked() -> Iterator[None]:
    """Leave out the checks of types and shapes, a sixth of the time here.

    tests/unit has them, over small models, for the same code: fusions, heads, backbones and changed base models.
    """
    with mock.patch.object(jaxtyping.config, "jaxtyping_disable", True):
        yield
