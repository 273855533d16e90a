"""What each kind of task says of itself, and that nobody else needs to be asked."""

import numpy as np
import pandas as pd
import pytest
import torch

from adalayers.errors import BadInput
from adalayers.tasks.kind import Gold
from adalayers.tasks.kinds import KINDS
from adalayers.tasks.metrics import Answers
from adalayers.tasks.task import load_task

TAGS = ("O", "B-X", "I-X")
CLASSES = ["sequence", "token", "word"]


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


@pytest.mark.parametrize("name", CLASSES)
def test_loss_and_decoding_of_classes(name):
    kind = KINDS[name]
    outputs, labels = torch.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 1.0]]), torch.tensor([0, 1])
    logs = torch.log_softmax(outputs, dim=1)
    losses = [-float(logs[0, 0]), -float(logs[1, 1])]
    assert kind.loss(outputs, labels).tolist() == pytest.approx(losses)
    predictions, probabilities = kind.decode(outputs)
    assert predictions.tolist() == [0, 2]
    assert probabilities.tolist() == pytest.approx([float(logs[0, 0].exp()), float(logs[1, 2].exp())])


@pytest.mark.parametrize("name", CLASSES)
def test_schemes_of_class_weights(name):
    kind, gold = KINDS[name], Gold(np.array([0, 0, 0, 1]), TAGS)
    assert kind.class_weights("none", gold) is None
    assert kind.class_weights("balanced", gold) == pytest.approx([4 / 9, 4 / 3, 4 / 3])
    assert kind.class_weights("published", gold) == [0.0292, 0.12, 0.12]
    with pytest.raises(BadInput, match="class_weights=halved"):
        kind.class_weights("halved", gold)


def test_rankings_are_scored_of_two_classes_that_both_occur_and_read_back_from_rows():
    kind, names = KINDS["sequence"], ("no", "yes")
    gold, predictions = Gold(np.array([0, 0, 1, 1]), names), np.array([0, 1, 0, 1])
    sure = np.array([0.9, 0.6, 0.7, 0.8])  # of yes: 0.1, 0.6, 0.3, 0.8
    scores = kind.scores(gold, predictions, sure)
    assert scores["auroc"] == 0.75
    assert scores["average_precision"] == pytest.approx((1 + 2 / 3) / 2)
    assert scores["recall@fpr=0.01"] == 0.5
    rows = kind.prediction_columns(gold, predictions, sure)
    again = kind.rescored(Answers(rows["label"], rows["prediction"], names, np.array(rows["score"])))
    assert again == pytest.approx(scores)
    assert [kind.baseline(name, gold) for name in ("auroc", "average_precision")] == [0.5, 0.5]
    of_three = kind.scores(Gold(gold.labels, (*names, "maybe")), predictions, sure)
    of_one = kind.scores(Gold(np.zeros(4, dtype=int), names), predictions, sure)
    assert "auroc" not in kind.scores(gold, predictions)
    assert "auroc" not in of_three
    assert "auroc" not in of_one
    assert kind.metrics_of(names)[3:] == ("auroc", "average_precision", "recall@fpr=0.01")
    assert kind.metrics_of((*names, "maybe")) == ("accuracy", "f1_macro", "matthews")


def test_the_most_frequent_class_is_the_baseline():
    gold = Gold(np.array([0, 1, 1, 1]), ("a", "b"))
    for name in ("sequence", "word"):
        assert KINDS[name].baseline("accuracy", gold) == 0.75
        assert KINDS[name].baseline("f1_macro", gold) == pytest.approx(6 / 7 / 2)
    assert KINDS["sequence"].baseline("matthews", gold) == 0.0
    outside = Gold(np.array([0, 0, 1]), TAGS, np.array([0, 3]))
    assert KINDS["token"].baseline("f1", outside) == KINDS["token"].baseline("f1/PER", outside) == 0.0
    # Words cut into characters have no tag outside: three entities of one character, one of two; always S gives five.
    cut = Gold(np.array([3, 0, 2, 3, 3]), ("B", "M", "E", "S"), np.array([0, 5]))
    assert KINDS["token"].baseline("precision", cut) == pytest.approx(3 / 5)


def test_rows_of_sentences():
    gold = Gold(np.array([1, 2, 0]), TAGS, np.array([0, 2, 2, 3]))
    rows = KINDS["token"].prediction_columns(gold, np.array([0, 2, 0]), np.array([0.5, 1.0, 0.25]))
    labels, said = [("B-X", "I-X"), (), ("O",)], [("O", "I-X"), (), ("O",)]
    assert rows == {"label": labels, "prediction": said, "score": [0.75, 1.0, 0.25]}
    with pytest.raises(ValueError, match="sentence 2: wanted 1 predictions, one per label, got 0"):
        KINDS["token"].scores(gold, np.array([0, 2]))


def test_what_truncation_cut_away_is_outside_an_entity_and_wrong_as_a_class():
    assert KINDS["token"].truncated_prediction(("B-X", "O")) == 1
    characters, four = KINDS["token"], ("B", "M", "E", "S")
    assert characters.truncated_prediction(four) == 4
    said = characters.as_text(Gold(np.zeros(2, dtype=int), four, np.array([0, 2])), np.array([3, 4]))
    assert said == [("S", "(cut)")]
    word, gold = KINDS["word"], Gold(np.array([0, 1, 1, 0]), ("NOUN", "VERB"), np.array([0, 3, 4]))
    cut = word.truncated_prediction(gold.names)
    predictions = np.array([0, 1, cut, cut])
    assert word.scores(gold, predictions) == pytest.approx({"accuracy": 0.5, "f1_macro": 2 / 3})
    rows = word.prediction_columns(gold, predictions, np.ones(4))
    assert rows["label"] == [("NOUN", "VERB", "VERB"), ("NOUN",)]
    assert rows["prediction"] == [("NOUN", "VERB", "(cut)"), ("(cut)",)]


def test_tags_of_entities_and_classes_of_words_are_told_apart_by_their_names():
    assert KINDS["token"].fits(("O", "PER"))
    assert KINDS["token"].fits(("B-PER", "I-PER"))
    assert not KINDS["token"].fits(("NOUN", "VERB", "-LRB-"))
    assert KINDS["word"].fits(("NOUN", "VERB"))


def test_numbers_are_learned_in_standard_deviations_from_the_mean_and_answered_as_they_are():
    kind = KINDS["regression"].fitted(np.array([100.0, 300.0], dtype=np.float32))
    assert kind.about() == {"label_scale": {"mean": 200.0, "sd": 100.0}}
    loaded = KINDS["regression"].as_saved({"label_scale": {"mean": 200.0, "sd": 100.0}, "labels": []})
    assert loaded.about() == kind.about()
    assert KINDS["word"].as_saved({"labels": ["A"]}) is KINDS["word"]
    outputs, labels = torch.tensor([[0.0], [2.0]]), torch.tensor([300.0, 300.0])
    assert kind.loss(outputs, labels).tolist() == pytest.approx([1.0, 1.0])
    numbers, probabilities = kind.decode(outputs)
    assert (numbers.tolist(), probabilities.tolist()) == ([200.0, 400.0], [1.0, 1.0])
    with pytest.raises(BadInput, match="wanted numbers that differ as labels of train, got 3 for each of 2"):
        kind.fitted(np.array([3.0, 3.0]))
    with pytest.raises(BadInput, match="class_weights=balanced"):
        kind.class_weights("balanced", Gold(np.array([1.0])))


def test_numbers_are_stored_so_that_their_scores_can_be_computed_again():
    kind, rng = KINDS["regression"], np.random.default_rng(0)
    gold, predictions = Gold(rng.normal(size=40).astype(np.float32)), rng.normal(size=40) * 1e3
    rows = kind.prediction_columns(gold, predictions, np.ones(40))
    labels, stored = (np.array(rows[name], dtype=float) for name in ("label", "prediction"))
    whole = kind.scores(gold, predictions)
    assert kind.scores(Gold(labels), stored) == pytest.approx(whole, abs=1e-7, rel=1e-7)


def test_strata():
    assert KINDS["sequence"].strata(np.array([0, 1, 1])).tolist() == [0, 1, 1]
    assert KINDS["token"].strata([np.array([0, 1])]) is None
    kind = KINDS["regression"]
    assert np.bincount(kind.strata(np.arange(200.0))).tolist() == [20] * 10
    assert len(set(kind.strata(np.arange(15.0)).tolist())) == 1
    for seed in range(50):
        rng = np.random.default_rng(seed)
        labels = rng.choice(rng.normal(size=rng.integers(1, 12)), rng.integers(20, 120))
        strata = kind.strata(labels)
        assert np.unique(strata, return_counts=True)[1].min() >= 2
        assert all(len(set(strata[labels == value])) == 1 for value in set(labels))


def test_what_reports_are_told_of_labels():
    assert KINDS["sequence"].describe_labels(Gold(np.array([1, 1, 0]), ("a", "b"))) == {"a": 1, "b": 2}
    described = KINDS["regression"].describe_labels(Gold(np.array([0.0, 1.0, 5.0])))
    names = ("mean", "lowest", "median", "highest")
    assert [described[name] for name in names] == [2.0, 0.0, 1.0, 5.0]


def test_mistakes_are_wrong_answers_the_surest_first_and_numbers_by_their_error():
    rows = pd.DataFrame({"label": ["1", "2", "3"], "prediction": ["1", "5", "4"], "score": [0.9, 0.2, 0.7]})
    assert KINDS["sequence"].mistakes(rows).index.tolist() == [2, 1]
    assert KINDS["regression"].mistakes(rows).index.tolist() == [1, 2, 0]
