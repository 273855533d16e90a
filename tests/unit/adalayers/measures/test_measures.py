"""What is measured without training, on tiny backbones and texts whose distance is put in."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from datasets import ClassLabel, Dataset, Features, Value

from adalayers.data.prepare import prepare
from adalayers.features.extract import hidden_states
from adalayers.fusion.variability import variability as nu
from adalayers.measures import MEASURES, masked_lm, measure, proxy_a, variability, vocabulary
from adalayers.measures.given import Given
from adalayers.request import DataRequest
from adalayers.results.measures import Measured, measured
from adalayers.storage.folder import Folder
from tests.helpers.states import encoder
from tests.helpers.tiny import WORDS, tiny_backbone

LIKE = [word for word in WORDS if word.isalpha()]


def dataset(folder, words, n=200, seed=0):
    """Write texts of five words each, drawn from `words`."""
    rng = np.random.default_rng(seed)
    features = Features({"text": Value("string"), "label": ClassLabel(names=["no", "yes"])})
    for split, size in (("train", n), ("validation", 20), ("test", 20)):
        rows = [{"text": " ".join(rng.choice(words, 5)), "label": i % 2} for i in range(size)]
        folder.mkdir(parents=True, exist_ok=True)
        Dataset.from_list(rows, features=features).to_parquet(folder / f"{split}-00000-of-00001.parquet")
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("measures")
    half = len(LIKE) // 2
    return {
        "backbone": tiny_backbone(root / "tiny", layers=2),
        "near": dataset(root / "near", LIKE[:half], seed=1),
        "again": dataset(root / "again", LIKE[:half], seed=2),
        "far": dataset(root / "far", LIKE[half:], seed=3),
    }


def given(made, of, reference, *, backbone=None):
    request = DataRequest(str(backbone or made["backbone"]), str(made[of]), max_length=32)
    return Given(prepare(request), {"reference_dataset": str(made[reference])})


@pytest.mark.parametrize("name", ["vocabulary", "proxy_a"])
def test_data_of_one_source_lie_no_further_apart_than_nothing_and_other_words_do(made, name):
    same, again, far = (MEASURES[name](given(made, of, "near")) for of in ("near", "again", "far"))
    scale = {"vocabulary": 1.0, "proxy_a": 2.0}[name]
    assert abs(same.beyond) < 0.15 * scale
    assert abs(again.beyond) < 0.15 * scale
    assert far.beyond > 0.6 * scale
    assert far.value <= scale
    assert (far.n > 0, far.why) == (True, "")


def test_a_measure_is_the_same_each_time(made):
    assert vocabulary.measure(given(made, "far", "near")) == vocabulary.measure(given(made, "far", "near"))
    assert proxy_a.measure(given(made, "far", "near")) == proxy_a.measure(given(made, "far", "near"))


def test_divergence_by_hand():
    assert vocabulary.divergence(np.array([1.0, 0.0]), np.array([0.0, 1.0])) == pytest.approx(1.0)
    assert vocabulary.divergence(np.array([0.5, 0.5]), np.array([0.5, 0.5])) == 0.0
    # H(3/4, 1/4) - (H(1, 0) + H(1/2, 1/2)) / 2
    entropy = -(0.75 * math.log2(0.75) + 0.25 * math.log2(0.25))
    found = vocabulary.divergence(np.array([1.0, 0.0]), np.array([0.5, 0.5]))
    assert found == pytest.approx(entropy - 0.5)


def test_special_tokens_are_no_words(made):
    of = given(made, "near", "near")
    assert len(of.special) >= 3
    whole = of.encoded.take(np.arange(10))
    from adalayers.measures.given import texts

    assert len(texts(of.encoded, np.arange(10), of.special)) == len(whole.input_ids) - 20  # [CLS] and [SEP]


def test_the_loss_of_a_checkpoint_without_a_head_is_none_and_says_why(made):
    found = masked_lm.measure(given(made, "near", "near"))
    assert (found.value, found.why) == (None, "its checkpoint holds no such head")
    found = masked_lm.measure(given(made, "near", "near", backbone=f"random:{made['backbone']}"))
    assert (found.value, found.why) == (None, "random weights have learned no language")


def test_the_loss_of_a_checkpoint_with_a_head(made, tmp_path):
    import transformers

    tiny_backbone(tmp_path / "masked", layers=2)
    config = transformers.AutoConfig.from_pretrained(tmp_path / "masked")
    transformers.set_seed(0)
    transformers.AutoModelForMaskedLM.from_config(config).save_pretrained(tmp_path / "masked")
    found = masked_lm.measure(given(made, "far", "near", backbone=tmp_path / "masked"))
    # An untrained head is about as surprised as one that guesses.
    assert found.value == pytest.approx(math.log(config.vocab_size), rel=0.1)
    assert found.low < found.value < found.high
    assert found.n > 50


def test_data_too_small_to_measure_say_so(made, tmp_path):
    few = {**made, "few": dataset(tmp_path / "few", LIKE, n=6)}
    found = proxy_a.measure(given(few, "few", "near"))
    assert (found.value, found.beyond) == (None, None)
    assert "at least 20 training examples" in found.why


def test_measures_are_written_and_not_taken_again(made, tmp_path, monkeypatch):
    folder = Folder(tmp_path / "case")
    of = given(made, "far", "near")
    first = measure(["vocabulary"], of, folder)
    assert measured(folder) == first
    monkeypatch.setitem(MEASURES, "vocabulary", lambda given: Measured(title="another"))
    assert measure(["vocabulary"], of, folder) == first
    assert measure(["vocabulary"], given(made, "again", "near"), folder)["vocabulary"].title == "another"


def shifted(made, monkeypatch, layer):
    """A case whose backbone tells the labels apart by the output of one layer alone."""
    of = Given(prepare(DataRequest(str(made["backbone"]), str(made["near"]), max_length=32)))
    labels = of.prepared.task.splits["train"].flat_labels

    def told(backbone, encoded, examples, device):
        found = hidden_states(backbone, encoded, examples, device)
        lengths = np.diff(encoded.offsets)[examples]
        texts = [tuple(row) for row in np.split(encoded.input_ids, encoded.offsets[1:-1])]
        known = [by_text[texts[example]] for example in examples]
        state = encoder(layer)[0]
        found[state] = found[state] + 5.0 * torch.from_numpy(np.repeat(known, lengths)).unsqueeze(1)
        return found

    train = of.encoded
    rows = [tuple(row) for row in np.split(train.input_ids, train.offsets[1:-1])]
    by_text = dict(zip(rows, labels, strict=True))
    monkeypatch.setattr("adalayers.measures.variability.hidden_states", told)
    return of


@pytest.mark.parametrize("layer", [1, 2])
def test_variability_names_the_layer_that_tells_labels_apart(made, monkeypatch, layer):
    found = variability.measure(shifted(made, monkeypatch, layer))
    assert (found.value, found.n, found.of) == (layer, 200, "examples")
    assert set(found.by_layer) == {"01", "02"}
    assert found.by_layer[f"0{layer}"] < 0.5 * found.by_layer[f"0{3 - layer}"]
    assert (found.nothing, found.distance) == (None, False)


def test_variability_is_that_of_all_examples_however_they_are_drawn(made):
    """200 examples are all: against the definition over the whole training split."""
    of = Given(prepare(DataRequest(str(made["backbone"]), str(made["near"]), max_length=32)))
    found = variability.measure(of)
    labels, state = of.prepared.task.splits["train"].flat_labels, encoder(2)[0]
    vectors = []
    for example in range(200):
        hidden = hidden_states(of.backbone, of.encoded, np.array([example]), torch.device("cpu"))[state]
        vectors.append(hidden[1:-1].mean(dim=0))
    expected = nu(torch.stack(vectors), torch.from_numpy(labels))
    assert found.by_layer["02"] == pytest.approx(expected, rel=1e-4)


def test_variability_of_words_and_of_a_sample(made, monkeypatch):
    of = Given(prepare(DataRequest(str(made["backbone"]), "entities-demo", max_length=256)))
    monkeypatch.setattr(variability, "WORDS", 300)
    found = variability.measure(of)
    assert found.of == "words"
    assert 300 <= found.n < 400
    assert found == variability.measure(of)
    of = Given(prepare(DataRequest(str(made["backbone"]), str(made["near"]), max_length=32)))
    monkeypatch.setattr(variability, "EXAMPLES", 50)
    assert variability.measure(of).n == 50


def test_variability_of_one_class_says_why(made, monkeypatch):
    of = Given(prepare(DataRequest(str(made["backbone"]), str(made["near"]), max_length=32)))
    monkeypatch.setattr(variability, "EXAMPLES", 1)
    found = variability.measure(of)
    assert (found.value, found.by_layer) == (None, {})
    assert "fewer than two classes" in found.why


def test_a_measure_without_reference_needs_no_flag(made, tmp_path):
    of = Given(prepare(DataRequest(str(made["backbone"]), str(made["near"]), max_length=32)))
    assert set(of.key) == {"backbone", "train"}
    assert set(given(made, "near", "near").key) == {"backbone", "train", "reference"}
    found = measure(["variability"], of, Folder(tmp_path))
    assert measured(Folder(tmp_path), {"names": ["variability"], **of.key}) == found


def test_a_broken_file_holds_nothing(tmp_path):
    folder = Folder(tmp_path)
    assert measured(folder) == {}
    for text in (b"{", b"[]", b'{"measures": {"a": {"unheard": 1}}}'):
        folder.write_bytes("measures.json", text)
        assert measured(folder) == {}
