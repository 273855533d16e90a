"""What each kind of task says of itself, and that nobody else needs to be asked."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import adalayers
from adalayers.errors import BadInput
from adalayers.tasks.kinds import KINDS
from adalayers.tasks.task import load_task

TAGS = ("O", "B-X", "I-X")


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_is_complete(name):
    kind = KINDS[name]
    assert kind.name == name
    assert kind.default_metric in kind.metrics
    task = load_task(kind.demo)
    assert task.kind is kind
    split = task.splits["validation"]
    labels = split.flat_labels
    offsets = split.offsets
    scores = kind.scores(labels, labels, task.label_names, offsets)
    assert set(kind.metrics_of(task.label_names)) == set(scores)
    assert {metric: scores[metric] for metric in kind.metrics} == dict.fromkeys(kind.metrics, 1.0)
    for metric in kind.metrics:
        assert 0 <= kind.baseline(metric, labels, task.label_names) < 1
    rows = kind.prediction_columns(labels, labels, np.ones(len(labels)), task.label_names, offsets)
    assert {name: len(values) for name, values in rows.items()} == dict.fromkeys(
        ("label", "prediction", "score"), len(split)
    )


@pytest.mark.parametrize("name", KINDS)
def test_loss_and_decoding_of_classes(name):
    kind = KINDS[name]
    outputs, labels = torch.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 1.0]]), torch.tensor([0, 1])
    logs = torch.log_softmax(outputs, dim=1)
    assert kind.loss(outputs, labels, None) == pytest.approx(float(-(logs[0, 0] + logs[1, 1]) / 2))
    weights = torch.tensor([1.0, 3.0, 1.0])
    weighted = float(-(logs[0, 0] + 3 * logs[1, 1]) / 4)
    assert kind.loss(outputs, labels, weights) == pytest.approx(weighted)
    classes, sure = kind.decode(outputs)
    assert classes.tolist() == [0, 2]
    assert sure.tolist() == pytest.approx([float(logs[0, 0].exp()), float(logs[1, 2].exp())])


def test_words_cut_away_count_as_outside():
    assert KINDS["token"].lost(("B-X", "O")) == 1
    assert KINDS["token"].lost(("NOUN", "VERB")) == 0


def test_rows_of_sentences():
    rows = KINDS["token"].prediction_columns(
        np.array([1, 2, 0]), np.array([0, 2, 0]), np.array([0.5, 1.0, 0.25]), TAGS, np.array([0, 2, 2, 3])
    )
    assert rows == {
        "label": ["B-X I-X", "", "O"],
        "prediction": ["O I-X", "", "O"],
        "score": [0.75, 1.0, 0.25],
    }


def test_strata_are_classes_and_sentences_have_none():
    assert KINDS["sequence"].strata(np.array([0, 1, 1])).tolist() == [0, 1, 1]
    assert KINDS["token"].strata([np.array([0, 1])]) is None


@pytest.mark.parametrize("name", KINDS)
def test_schemes_of_class_weights(name):
    labels = np.array([0, 0, 0, 1])
    assert KINDS[name].class_weights("none", labels, TAGS) is None
    assert KINDS[name].class_weights("balanced", labels, TAGS) == pytest.approx([4 / 9, 4 / 3, 4 / 3])
    assert KINDS[name].class_weights("published", labels, TAGS) == [0.0292, 0.12, 0.12]
    with pytest.raises(BadInput, match="class_weights=halved"):
        KINDS[name].class_weights("halved", labels, TAGS)


def test_nothing_outside_the_kinds_asks_which_kind_a_task_is():
    root = Path(adalayers.__file__).parent
    asking = [
        f"{path.relative_to(root)}: {line.strip()}"
        for path in root.rglob("*.py")
        if "kinds" not in path.parts
        for line in path.read_text().splitlines()
        if any(f"kind{how} {sign} " in line for how in ("", ".name") for sign in ("==", "!="))
        and ('"token"' in line or '"sequence"' in line)
    ]
    assert not asking


def test_importing_kinds_is_free():
    heavy = {"torch", "sklearn", "seqeval", "datasets", "transformers", "pandas"}
    code = f"import sys, adalayers.tasks.kinds; print({heavy!r} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
