"""Rows of reference: what they score is what scikit-learn, or a count by hand, scores."""

import dataclasses
from collections import Counter, defaultdict

import numpy as np
import pytest
import torch
from sklearn.metrics import matthews_corrcoef

from adalayers.command.flags import REFERENCES as NAMES
from adalayers.config import trial_config
from adalayers.data.prepare import prepare
from adalayers.measures import references
from adalayers.measures.references import REFERENCES, add_references
from adalayers.request import DataRequest
from adalayers.results.measures import Measured, measured, read_references, write_measures
from adalayers.storage.folder import Folder


@pytest.fixture(scope="module")
def ready(world, tmp_path_factory):
    """Prepared data and what trials read of it, by dataset."""
    cache = tmp_path_factory.mktemp("cache")

    def of(dataset, **sizes):
        prepared = prepare(DataRequest(str(world["backbone"]), dataset, **sizes))
        prepared = prepared.reading([trial_config()], pool=False)
        return prepared.task, prepared.data("memory", cache=cache)

    sizes = {"train_examples": 200, "eval_examples": 60, "test_examples": 60}
    return {
        "text": of(str(world["dataset"])),
        "word": of("entities-demo", **sizes),
        "number": of("similarity-demo", **sizes),
        "pair": of("inference-demo", **sizes),
    }


def rows(ready, kind, tmp_path, wanted=NAMES):
    add_references(Folder(tmp_path / kind), *ready[kind], wanted)
    return read_references(Folder(tmp_path / kind))


def test_the_names_of_the_flag_are_those_that_there_are():
    assert tuple(REFERENCES) == NAMES


def test_of_texts_there_are_majority_words_and_the_last_state(ready, tmp_path):
    task, _ = ready["text"]
    scores = rows(ready, "text", tmp_path)
    assert set(scores) == {"majority", "tf-idf", "linear-probe"}
    gold = task.gold("test").labels
    most = np.bincount(task.gold("train").labels).argmax()
    assert scores["majority"]["test/accuracy"] == pytest.approx((gold == most).mean())
    assert scores["majority"]["test/matthews"] == 0
    assert scores["tf-idf"]["val/accuracy"] > scores["majority"]["val/accuracy"]
    assert scores["linear-probe"]["val/accuracy"] > scores["majority"]["val/accuracy"]
    assert {name.partition("/")[0] for name in scores["tf-idf"]} == {"val", "test"}


@pytest.mark.filterwarnings("ignore:lbfgs failed")
def test_the_probe_is_a_linear_model_of_the_last_states_mean(ready, tmp_path):
    from sklearn.linear_model import LogisticRegression

    task, data = ready["text"]
    vectors = {}
    for role in ("train", "validation", "test"):
        split = data.splits[role]
        batch = split.batch(np.arange(len(split)), data.shape.streams[0].states()[-1:], torch.device("cpu"))
        states = next(iter(batch.states.values())).float().split(batch.lengths.tolist())
        vectors[role] = np.stack([state.mean(0).numpy() for state in states])
    mean, scale = vectors["train"].mean(axis=0), vectors["train"].std(axis=0) + 1e-6
    vectors = {role: (of_role - mean) / scale for role, of_role in vectors.items()}
    models = [
        LogisticRegression(C=strength, max_iter=200).fit(vectors["train"], task.gold("train").labels)
        for strength in references.STRENGTHS
    ]
    gold = task.gold("validation")
    said = [model.predict(vectors["validation"]) for model in models]
    best = models[np.argmax([task.kind.scores(gold, each)[task.metric] for each in said])]
    expected = matthews_corrcoef(task.gold("test").labels, best.predict(vectors["test"]))
    assert rows(ready, "text", tmp_path)["linear-probe"]["test/matthews"] == pytest.approx(expected, abs=0.04)


def test_of_words_there_is_each_words_most_frequent_tag(ready, tmp_path):
    task, _ = ready["word"]
    scores = rows(ready, "word", tmp_path)
    assert set(scores) == {"majority", "frequent-tag", "linear-probe"}
    assert scores["majority"]["test/f1"] == 0
    tags = defaultdict(Counter)
    for words, labels in zip(task.splits["train"].inputs, task.splits["train"].labels, strict=True):
        for word, label in zip(words, labels.tolist(), strict=True):
            tags[word][label] += 1
    predicted, _ = references._frequent_tag(*ready["word"])["test"]
    words = [word for sentence in task.splits["test"].inputs for word in sentence]
    known = [i for i, word in enumerate(words) if word in tags]
    assert 0 < len(known) < len(words)
    assert all(tags[words[i]][predicted[i]] == max(tags[words[i]].values()) for i in known)
    unseen = {int(predicted[i]) for i in range(len(words)) if words[i] not in tags}
    assert len(unseen) == 1


@pytest.mark.parametrize(("kind", "score"), [("number", "pearson"), ("pair", "accuracy")])
def test_of_numbers_and_pairs_there_are_linear_models(ready, tmp_path, kind, score):
    scores = rows(ready, kind, tmp_path)
    assert set(scores) == {"majority", "tf-idf", "linear-probe"}
    assert scores["tf-idf"][f"val/{score}"] > scores["majority"][f"val/{score}"]


def test_they_stand_beside_the_measures_and_are_worked_out_once(ready, tmp_path, monkeypatch):
    task, data = ready["text"]
    folder = Folder(tmp_path)
    write_measures(folder, {"names": []}, {"proxy_a": Measured(value=1.0)})
    add_references(folder, task, data, ("majority", "tf-idf"))
    first = read_references(folder)
    assert set(first) == {"majority", "tf-idf"}
    assert measured(folder, {"names": []})["proxy_a"].value == 1.0

    def none(*given):
        raise AssertionError("it is there")

    monkeypatch.setitem(REFERENCES, "tf-idf", none)
    add_references(folder, task, data, ("tf-idf",))
    assert read_references(folder) == {"tf-idf": first["tf-idf"]}
    splits = {**data.provenance.splits, "train": "other"}
    other = dataclasses.replace(data, provenance=dataclasses.replace(data.provenance, splits=splits))
    with pytest.raises(AssertionError, match="it is there"):
        add_references(folder, task, other, ("tf-idf",))


def test_a_live_study_has_no_probe_and_none_leaves_all_out(ready, world, tmp_path):
    prepared = prepare(DataRequest(str(world["backbone"]), str(world["dataset"])))
    add_references(Folder(tmp_path), prepared.task, prepared.data("live"), ("majority", "linear-probe"))
    assert set(read_references(Folder(tmp_path))) == {"majority"}
    add_references(Folder(tmp_path), prepared.task, prepared.data("live"), ())
    assert read_references(Folder(tmp_path)) == {}
