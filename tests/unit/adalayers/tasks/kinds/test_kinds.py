"""What each kind of task says of itself, and that nobody else needs to be asked."""

import numpy as np
import pandas as pd
import pytest
import torch

from adalayers.tasks.kind import Gold
from adalayers.tasks.kinds import KINDS
from tests.helpers.loading import load_task
from tests.helpers.refusing import refused

TAGS = ("O", "B-X", "I-X")


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.demo])
def test_a_kind_is_complete(name):
    kind = KINDS[name]
    assert kind.name == name
    names = [metric.name for metric in kind.metrics]
    assert kind.default_metric in names
    task = load_task(kind.demo)
    assert type(task.kind) is type(kind)
    gold, n = task.gold("validation"), len(task.splits["validation"])
    scores = kind.scores(gold, gold.labels, np.ones(len(gold.labels)))
    assert set(kind.metrics_of(task.label_names)) <= set(scores)
    assert {metric: scores[metric] for metric in names} == dict.fromkeys(names, 1.0)
    assert all(0 <= kind.baseline(metric, gold) < 1 for metric in names)
    rows = kind.prediction_columns(gold, gold.labels, np.ones(len(gold.labels)))
    lengths = {column: len(values) for column, values in rows.items()}
    assert lengths == dict.fromkeys(("label", "prediction", "score"), n)


@pytest.mark.parametrize("name", ["sequence", "token", "word"])
def test_loss_decoding_and_weights_of_classes(name):
    kind = KINDS[name]
    outputs, labels = torch.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 1.0]]), torch.tensor([0, 1])
    logs = torch.log_softmax(outputs, dim=1)
    assert kind.loss(outputs, labels).tolist() == pytest.approx([-float(logs[0, 0]), -float(logs[1, 1])])
    predictions, probabilities = kind.decode(outputs)
    assert predictions.tolist() == [0, 2]
    assert probabilities.tolist() == pytest.approx([float(logs[0, 0].exp()), float(logs[1, 2].exp())])
    sure = kind.decode(torch.tensor([[20.0, 0.0, 0.0], [25.0, 0.0, 0.0]]))[1]
    assert sure[0] < sure[1] < 1, "else a ranking has ties at its top"
    gold = Gold(np.array([0, 0, 0, 1]), TAGS)
    assert kind.class_weights("none", gold) is None
    assert kind.class_weights("balanced", gold) == pytest.approx([4 / 9, 4 / 3, 4 / 3])
    assert kind.class_weights("published", gold) == [0.0292, 0.12, 0.12]
    refused("class_weights=halved", kind.class_weights, "halved", gold)


def test_rankings_are_scored_of_two_classes_that_both_occur():
    kind, names = KINDS["sequence"], ("no", "yes")
    gold, predictions = Gold(np.array([0, 0, 1, 1]), names), np.array([0, 1, 0, 1])
    sure = np.array([0.9, 0.6, 0.7, 0.8])  # of yes: 0.1, 0.6, 0.3, 0.8
    scores = kind.scores(gold, predictions, sure)
    found = [scores[name] for name in ("auroc", "average_precision", "recall@fpr=0.01")]
    assert found == pytest.approx([0.75, (1 + 2 / 3) / 2, 0.5])
    assert [kind.baseline(name, gold) for name in ("auroc", "average_precision")] == [0.5, 0.5]
    three, one = Gold(gold.labels, (*names, "maybe")), Gold(np.zeros(4, dtype=int), names)
    for without in ((gold, predictions), (three, predictions, sure), (one, predictions, sure)):
        assert "auroc" not in kind.scores(*without)
    assert kind.metrics_of(names)[3:] == ("auroc", "average_precision", "recall@fpr=0.01")
    assert kind.metrics_of((*names, "maybe")) == ("accuracy", "f1_macro", "matthews")


def test_the_most_frequent_class_is_the_baseline():
    gold = Gold(np.array([0, 1, 1, 1]), ("a", "b"))
    for name in ("sequence", "word"):
        assert KINDS[name].baseline("accuracy", gold) == 0.75
        assert KINDS[name].baseline("f1_macro", gold) == pytest.approx(6 / 7 / 2)
    assert KINDS["token"].baseline("f1", Gold(np.array([0, 0, 1]), TAGS, np.array([0, 3]))) == 0.0
    # Words cut into characters have no tag outside: three entities of one character, one of two; always S gives five.
    cut = Gold(np.array([3, 0, 2, 3, 3]), ("B", "M", "E", "S"), np.array([0, 5]))
    assert KINDS["token"].baseline("precision", cut) == pytest.approx(3 / 5)


def test_rows_of_sentences():
    gold = Gold(np.array([1, 2, 0]), TAGS, np.array([0, 2, 2, 3]))
    rows = KINDS["token"].prediction_columns(gold, np.array([0, 2, 0]), np.array([0.5, 1.0, 0.25]))
    labels, said = [("B-X", "I-X"), (), ("O",)], [("O", "I-X"), (), ("O",)]
    assert rows == {"label": labels, "prediction": said, "score": [0.75, 1.0, 0.25]}


def test_what_truncation_cut_away_is_outside_an_entity_and_wrong_as_a_class():
    assert KINDS["token"].truncated_prediction(("B-X", "O")) == 1
    characters, four = KINDS["token"], ("B", "M", "E", "S")
    assert characters.truncated_prediction(four) == 4
    said = characters.as_text(Gold(np.zeros(2, dtype=int), four, np.array([0, 2])), np.array([3, 4]))
    assert said == [("S", "(cut)")]
    word, gold = KINDS["word"], Gold(np.array([0, 1, 1, 0]), ("NOUN", "VERB"), np.array([0, 3, 4]))
    predictions = np.array([0, 1, *[word.truncated_prediction(gold.names)] * 2])
    assert word.scores(gold, predictions) == pytest.approx({"accuracy": 0.5, "f1_macro": 2 / 3})
    rows = word.prediction_columns(gold, predictions, np.ones(4))
    assert rows["prediction"] == [("NOUN", "VERB", "(cut)"), ("(cut)",)]


def test_numbers_are_learned_in_standard_deviations_from_the_mean_and_answered_as_they_are():
    kind = KINDS["regression"].fitted(np.array([100.0, 300.0], dtype=np.float32))
    assert kind.about() == {"label_scale": {"mean": 200.0, "sd": 100.0}}
    loaded = KINDS["regression"].as_saved({"label_scale": {"mean": 200.0, "sd": 100.0}, "labels": []})
    assert loaded.about() == kind.about()
    described = kind.describe_labels(Gold(np.array([0.0, 1.0, 5.0])))
    assert list(described.values()) == pytest.approx([2.0, (14 / 3) ** 0.5, 0.0, 0.5, 1.0, 3.0, 5.0])
    outputs, labels = torch.tensor([[0.0], [2.0]]), torch.tensor([300.0, 300.0])
    assert kind.loss(outputs, labels).tolist() == pytest.approx([1.0, 1.0])
    numbers, probabilities = kind.decode(outputs)
    assert (numbers.tolist(), probabilities.tolist()) == ([200.0, 400.0], [1.0, 1.0])
    refused("numbers that differ as labels of train, got 3 for each of 2", kind.fitted, np.array([3.0, 3.0]))
    refused("class_weights=balanced", kind.class_weights, "balanced", Gold(np.array([1.0])))


def test_strata():
    assert KINDS["token"].strata(np.array([0, 1])) is None
    kind = KINDS["regression"]
    assert np.bincount(kind.strata(np.arange(200.0))).tolist() == [20] * 10
    assert len(set(kind.strata(np.arange(15.0)).tolist())) == 1
    # Equal labels share a stratum, and one of a single label joins its neighbour.
    assert np.bincount(kind.strata(np.repeat([0.0, 1.0, 2.0], [10, 1, 19]))).tolist() == [10, 20]


def test_mistakes_are_the_surest_wrong_answers_first_and_numbers_by_their_error():
    rows = pd.DataFrame({"label": ["1", "2", "3"], "prediction": ["1", "5", "4"], "score": [0.9, 0.2, 0.7]})
    assert KINDS["sequence"].mistakes(rows).index.tolist() == [2, 1]
    assert KINDS["regression"].mistakes(rows).index.tolist() == [1, 2, 0]
