"""ADALAYERS_DATA=<folder of local copies> python -m pytest tests/e2e/test_real_tasks.py

Split sizes and labels of the thesis's three corpora, as the hub has them; the real MiniLM learns of them.
"""

import os
from importlib.util import find_spec

import pytest

from adalayers.backbones.sources import MINILM_PACKAGE
from adalayers.data.prepare import DataRequest, prepare
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.tasks.task import Task, load_task
from adalayers.training.trainer import train
from tests.helpers.long_form import LONG

SIZES = {
    "imdb": {"train": 22_500, "validation": 2_500, "test": 25_000},
    "cola": {"train": 7_695, "validation": 856, "test": 1_043},
    "conll2003": {"train": 14_041, "validation": 3_250, "test": 3_453},
}
GOLD_ENTITIES = {"LOC": 1_668, "MISC": 702, "ORG": 1_661, "PER": 1_617}


@pytest.fixture(scope="module")
def data_dir() -> str:
    folder = os.environ.get("ADALAYERS_DATA")
    if not folder:
        pytest.skip(
            "NO REAL DATA: set ADALAYERS_DATA to a folder with imdb, cola and conll2003 to run these tests"
        )
    return folder


@pytest.fixture(scope="module")
def real(data_dir) -> dict[str, Task]:
    return {name: load_task(name, data_dir=data_dir) for name in SIZES}


@pytest.mark.parametrize("name", SIZES)
def test_split_sizes(real, name):
    assert {role: len(split) for role, split in real[name].splits.items()} == SIZES[name]
    for split in real[name].splits.values():
        assert len(split.inputs) == len(split.labels) == len(split.index)


@pytest.mark.parametrize(
    ("name", "validation", "test"), [("imdb", 24, 104), ("cola", 4, 16), ("conll2003", 193, 126)]
)
def test_examples_that_also_stand_in_train(real, name, validation, test):
    assert real[name].shared == {"validation": validation, "test": test}


def test_gold_entities_of_the_conll_test_split(real):
    task = real["conll2003"]
    sentences = [[task.label_names[i] for i in labels] for labels in task.splits["test"].labels]
    starts = [tag[2:] for sentence in sentences for tag in sentence if tag.startswith("B-")]
    assert {kind: starts.count(kind) for kind in GOLD_ENTITIES} == GOLD_ENTITIES


@pytest.mark.skipif(find_spec(MINILM_PACKAGE) is None, reason="NO REAL WEIGHTS: `make setup` installs them")
@pytest.mark.parametrize(
    ("name", "size", "floors"),
    [
        pytest.param(
            *("imdb", {"train_examples": 200, "max_length": 64}),
            {"val/accuracy": 0.62, "test/accuracy": 0.65},
            marks=LONG,  # a task of its kind is learned in test_methods.py
        ),
        ("conll2003", {"train_examples": 250}, {"val/f1": 0.45, "test/f1/LOC": 0.3, "test/f1/PER": 0.3}),
    ],
)
def test_minilm_learns_real_data(name, size, floors, data_dir, tmp_path):
    request = DataRequest("minilm", name, data_dir=data_dir, eval_examples=100, test_examples=100, **size)
    data = prepare(request).data("disk", cache=tmp_path)
    row = train(LayerMixConfig(epochs=8, feedforward=256), data, seed=1, test=True).row
    assert {metric: row[metric] for metric, floor in floors.items() if row[metric] <= floor} == {}
