"""Rows of reference: what they score is what scikit-learn, or a count by hand, scores."""

import dataclasses
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

from adalayers.command.flags import REFERENCES as NAMES
from adalayers.config import trial_config
from adalayers.data.prepare import prepare
from adalayers.measures import references
from adalayers.measures.references import REFERENCES, add_references
from adalayers.request import DataRequest
from adalayers.results.measures import Measured, measured, read_references, write_measures
from adalayers.states import State, Stream
from adalayers.storage.folder import Folder
from tests.helpers.made_data import made_data

SIZES = {"train_examples": 80, "eval_examples": 40, "test_examples": 40}


@pytest.fixture(scope="module")
def ready(world, tmp_path_factory):
    """What prepares data, and what trials read of it."""
    cache = tmp_path_factory.mktemp("cache")

    def of(dataset, mode="memory", **sizes):
        prepared = prepare(DataRequest(str(world["backbone"]), str(dataset), **sizes))
        prepared = prepared.reading([trial_config()], pool=False)
        return prepared.task, prepared.data(mode, cache=cache)

    return of


def rows(tmp_path, ready, wanted=NAMES):
    add_references(Folder(tmp_path), *ready, wanted)
    return read_references(Folder(tmp_path))


def test_of_texts_there_are_majority_words_and_the_last_state(ready, world, tmp_path):
    task, data = ready(world["dataset"])
    scores = rows(tmp_path, (task, data))
    assert set(scores) == {"majority", "tf-idf", "linear-probe"}
    gold, most = task.gold("test").labels, np.bincount(task.gold("train").labels).argmax()
    assert scores["majority"]["test/accuracy"] == pytest.approx((gold == most).mean())
    assert scores["majority"]["test/matthews"] == 0
    for name in ("tf-idf", "linear-probe"):
        assert scores[name]["val/accuracy"] > scores["majority"]["val/accuracy"]
        assert {score.partition("/")[0] for score in scores[name]} == {"val", "test"}


@pytest.mark.parametrize(("kind", "score"), [("sequence", "test/accuracy"), ("token", "test/f1")])
def test_a_probe_reads_the_last_state_at_the_best_strength_on_validation(kind, score, tmp_path, monkeypatch):
    monkeypatch.setattr(references, "STRENGTHS", (1e-9, 1.0, 1e-9))
    for informative in (3, 2):
        data = made_data(kind, layers=3, informative=informative)
        about = {"kind": data.kind, "label_names": data.label_names, "metric": data.metric}
        gold = {role: data.gold(split) for role, split in data.splits.items()}
        task = SimpleNamespace(**about, splits=data.splits, gold=gold.__getitem__)
        scores = rows(tmp_path / str(informative), (task, data), ("linear-probe",))
        assert (scores["linear-probe"][score] > 0.8) == (informative == 3)


def test_the_probe_of_a_decoder_reads_the_last_token_of_a_word(monkeypatch):
    data, read = made_data("token"), set()

    def vectors(split, state):
        read.add((state, split.last_tokens))
        return np.ones((2, 1)), np.arange(2)

    monkeypatch.setattr(references, "_vectors", vectors)
    monkeypatch.setattr(references, "_linear", lambda *given: None)
    task = SimpleNamespace(splits=data.splits, gold=lambda role: data.gold(data.splits[role]))
    for stream in (data.shape.streams, (Stream("decoder", 3),)):
        shape = dataclasses.replace(data.shape, streams=stream)
        references._linear_probe(task, dataclasses.replace(data, shape=shape))
    assert read == {(State("encoder", 3), False), (State("decoder", 3), True)}


def test_of_words_there_is_each_words_most_frequent_tag(ready, tmp_path):
    task, data = ready("entities-demo", **SIZES)
    scores = rows(tmp_path, (task, data))
    assert set(scores) == {"majority", "frequent-tag", "linear-probe"}
    assert scores["majority"]["test/f1"] == 0
    words = {role: [word for said in split.inputs for word in said] for role, split in task.splits.items()}
    counts = Counter(zip(words["train"], task.gold("train").labels.tolist(), strict=True))
    seen = Counter(words["train"])
    once = Counter(tag for word, tag in counts if seen[word] == 1).most_common(1)[0][0]
    assert 0 < sum(word in seen for word in words["test"]) < len(words["test"])
    predicted, _ = references._frequent_tag(task, data)["test"]
    for word, tag in zip(words["test"], predicted.tolist(), strict=True):
        most = max(counts[word, each] for each in range(len(task.label_names)))
        assert counts[word, tag] == most if word in seen else tag == once


@pytest.mark.parametrize(("demo", "score"), [("similarity-demo", "pearson"), ("inference-demo", "accuracy")])
def test_of_numbers_and_pairs_there_are_linear_models(ready, tmp_path, demo, score):
    scores = rows(tmp_path, ready(demo, **SIZES))
    assert set(scores) == {"majority", "tf-idf", "linear-probe"}
    assert scores["tf-idf"][f"val/{score}"] > scores["majority"][f"val/{score}"]


def test_they_stand_beside_the_measures_and_are_worked_out_once(ready, world, tmp_path, monkeypatch):
    assert tuple(REFERENCES) == NAMES
    # A study whose states are not stored has no probe.
    task, data = ready(world["dataset"], "live")
    folder = Folder(tmp_path)
    write_measures(folder, {"names": []}, {"proxy_a": Measured(value=1.0)})
    first = rows(tmp_path, (task, data))
    assert set(first) == {"majority", "tf-idf"}
    assert measured(folder, {"names": []})["proxy_a"].value == 1.0

    monkeypatch.setitem(REFERENCES, "tf-idf", lambda task, data: None)
    assert rows(tmp_path, (task, data), ("tf-idf",)) == {"tf-idf": first["tf-idf"]}
    splits = {**data.provenance.splits, "train": "other"}
    other = dataclasses.replace(data, provenance=dataclasses.replace(data.provenance, splits=splits))
    assert rows(tmp_path, (task, other), ("tf-idf",)) == {}
    assert {*rows(tmp_path, (task, data), ("majority",))} == {"majority"}
    assert rows(tmp_path, (task, data), ()) == {}
