"""Shapes of every fusion's `forward` are checked here: the import hook would check the types of its configuration,
which converts them itself, along with them.
"""

import functools
import importlib

import pytest
from beartype import beartype
from jaxtyping import jaxtyped

from adalayers.config import FUSIONS
from adalayers.fusion.fusion import Fusion


@pytest.fixture(autouse=True)
def _checked_shapes(monkeypatch):
    for kind, forward in _checked().items():
        monkeypatch.setattr(kind, "forward", forward)


@functools.cache
def _checked():
    """Return the fusions and their `forward`, checked."""
    found = [kind for module in FUSIONS.values() for kind in vars(importlib.import_module(module)).values()]
    return {
        kind: jaxtyped(typechecker=beartype)(kind.forward)
        for kind in found
        if isinstance(kind, type) and issubclass(kind, Fusion) and "forward" in vars(kind)
    }
