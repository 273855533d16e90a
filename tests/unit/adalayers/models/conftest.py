"""Tiny backbones of every family, made once."""

import functools

import pytest

from adalayers.backbones.loading import load
from adalayers.backbones.sources import resolve
from tests.helpers.tiny import tiny_backbone


@pytest.fixture(scope="session")
def source_of(tmp_path_factory):
    """Return where a tiny backbone of a family is, four layers of width 16."""

    @functools.cache
    def source(family="bert"):
        folder = tmp_path_factory.mktemp("backbones") / family
        return resolve(str(tiny_backbone(folder, family, width=16, heads=2)))

    return source


@pytest.fixture(scope="session")
def backbone_of(source_of):
    """Return a tiny backbone of a family."""
    return functools.cache(lambda family="bert": load(source_of(family)))
