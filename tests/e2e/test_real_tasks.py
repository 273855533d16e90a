"""ADALAYERS_DATA=<folder of local copies> python -m pytest tests/e2e/test_real_tasks.py

Split sizes and labels of the thesis's three corpora, as the hub has them.
"""

import functools
import os

import pytest

from adalayers.tasks.task import Task
from tests.helpers.loading import load_task

SIZES = {
    "imdb": {"train": 22_500, "validation": 2_500, "test": 25_000},
    "cola": {"train": 7_695, "validation": 856, "test": 1_043},
    "conll2003": {"train": 14_041, "validation": 3_250, "test": 3_453},
}
GOLD_ENTITIES = {"LOC": 1_668, "MISC": 702, "ORG": 1_661, "PER": 1_617}


FOLDER = os.environ.get("ADALAYERS_DATA")
pytestmark = pytest.mark.skipif(
    not FOLDER, reason="NO REAL DATA: set ADALAYERS_DATA to a folder with imdb, cola and conll2003"
)


@functools.cache
def real(name: str) -> Task:
    return load_task(name, data_dir=FOLDER)


@pytest.mark.parametrize("name", SIZES)
def test_split_sizes(name):
    assert {role: len(split) for role, split in real(name).splits.items()} == SIZES[name]
    for split in real(name).splits.values():
        assert len(split.inputs) == len(split.index)


def test_gold_entities_of_the_conll_test_split():
    task = real("conll2003")
    starts = [task.label_names[i].removeprefix("B-") for i in task.splits["test"].labels]
    assert {kind: starts.count(kind) for kind in GOLD_ENTITIES} == GOLD_ENTITIES
