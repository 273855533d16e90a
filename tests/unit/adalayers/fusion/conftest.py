"""Shapes of every fusion's `fuse` are checked here: the import hook would check the types of its configuration,
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
    for kind, fuse in _checked().items():
        monkeypatch.setattr(kind, "fuse", fuse)


@functools.cache
def _checked():
    """Return the fusions and their `fuse`, checked."""
    found = [kind for module in FUSIONS.values() for kind in vars(importlib.import_module(module)).values()]
    return {
        kind: jaxtyped(typechecker=beartype)(kind.fuse)
        for kind in found
        if isinstance(kind, type) and issubclass(kind, Fusion) and "fuse" in vars(kind)
    }
