"""Tiny backbones of every family, made once."""

import functools

import pytest

from adalayers.backbones.loading import load
from adalayers.backbones.sources import resolve


@pytest.fixture(scope="session")
def source_of(tiny_of):
    """Return where a tiny backbone of a family is, four layers of width 16."""
    return lambda family="bert": resolve(str(tiny_of(family, width=16, heads=2)))


@pytest.fixture(scope="session")
def backbone_of(source_of):
    """Return a tiny backbone of a family."""
    return functools.cache(lambda family="bert": load(source_of(family)))
