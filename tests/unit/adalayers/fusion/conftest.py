"""Shapes of every fusion's `forward` are checked here: the import hook would check the types of its configuration,
which converts them itself, along with them.
"""

import importlib

import pytest
from beartype import beartype
from jaxtyping import jaxtyped

from adalayers.config import FUSIONS
from adalayers.fusion.fusion import Fusion


@pytest.fixture(autouse=True)
def _checked_shapes(monkeypatch):
    for module in FUSIONS.values():
        for kind in vars(importlib.import_module(module)).values():
            if isinstance(kind, type) and issubclass(kind, Fusion) and "forward" in vars(kind):
                monkeypatch.setattr(kind, "forward", jaxtyped(typechecker=beartype)(kind.forward))
