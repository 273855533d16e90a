"""What is measured without training, on tiny backbones and texts whose distance is put in."""

import math

import numpy as np
import pytest
import torch
from datasets import ClassLabel, Dataset, Features, Value

from adalayers.data.prepare import prepare
from adalayers.features.extract import hidden_states
from adalayers.fusion.variability import variability as nu
from adalayers.measures import MEASURES, masked_lm, measure, proxy_a, variability, vocabulary
from adalayers.measures.case_data import CaseData
from adalayers.request import DataRequest
from adalayers.results.measures import Measured, measured
from adalayers.storage.folder import Folder
from tests.helpers.states import encoder
from tests.helpers.tiny import WORDS, tiny_backbone

LETTERS = [word for word in WORDS if word.isalpha()]


def dataset(folder, words, n=200, seed=0):
    """Write texts of five words each, drawn from `words`."""
    rng = np.random.default_rng(seed)
    features = Features({"text": Value("string"), "label": ClassLabel(names=["no", "yes"])})
    folder.mkdir(parents=True)
    for split, size in (("train", n), ("validation", 20), ("test", 20)):
        rows = [{"text": " ".join(rng.choice(words, 5)), "label": i % 2} for i in range(size)]
        Dataset.from_list(rows, features=features).to_parquet(folder / f"{split}-00000-of-00001.parquet")
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("measures")
    half = len(LETTERS) // 2
    return {
        "backbone": tiny_backbone(root / "tiny", layers=2),
        "near": dataset(root / "near", LETTERS[:half], seed=1),
        "again": dataset(root / "again", LETTERS[:half], seed=2),
        "far": dataset(root / "far", LETTERS[half:], seed=3),
        "few": dataset(root / "few", LETTERS, n=6),
    }


def case(folders, name, reference=None, *, backbone=None, length=32):
    backbone = str(backbone or folders["backbone"])
    request = DataRequest(backbone, str(folders.get(name, name)), max_length=length)
    return CaseData(prepare(request), {"reference_dataset": str(folders[reference])} if reference else {})


@pytest.mark.parametrize("name", ["vocabulary", "proxy_a"])
def test_data_of_one_source_lie_no_further_apart_than_nothing_and_other_words_do(folders, name):
    same, again, far = (MEASURES[name](case(folders, data, "near")) for data in ("near", "again", "far"))
    scale = {"vocabulary": 1.0, "proxy_a": 2.0}[name]
    assert abs(same.beyond) < 0.15 * scale
    assert abs(again.beyond) < 0.15 * scale
    assert far.beyond > 0.6 * scale
    assert far.value <= scale
    assert (far.n > 0, far.why) == (True, "")
    assert far == MEASURES[name](case(folders, "far", "near"))


def test_divergence_by_hand():
    assert vocabulary.divergence(np.array([1.0, 0.0]), np.array([0.0, 1.0])) == pytest.approx(1.0)
    assert vocabulary.divergence(np.array([0.5, 0.5]), np.array([0.5, 0.5])) == 0.0
    # H(3/4, 1/4) - (H(1, 0) + H(1/2, 1/2)) / 2
    entropy = -(0.75 * math.log2(0.75) + 0.25 * math.log2(0.25))
    divergence = vocabulary.divergence(np.array([1.0, 0.0]), np.array([0.5, 0.5]))
    assert divergence == pytest.approx(entropy - 0.5)


def test_special_tokens_are_no_words(folders):
    near = case(folders, "near")
    examples = np.arange(10)
    n_tokens = len(near.encoded.take(examples).input_ids)
    n_words = len(vocabulary.texts(near.encoded, examples, near.special))
    assert n_words == n_tokens - 20  # [CLS] and [SEP]


def test_the_loss_of_a_checkpoint_without_a_head_is_none_and_says_why(folders):
    loss = masked_lm.measure(case(folders, "near", "near"))
    assert (loss.value, loss.why) == (None, "its checkpoint holds no such head")
    loss = masked_lm.measure(case(folders, "near", "near", backbone=f"random:{folders['backbone']}"))
    assert (loss.value, loss.why) == (None, "random weights have learned no language")


def test_the_loss_of_a_checkpoint_with_a_head(folders, tmp_path):
    import transformers

    tiny_backbone(tmp_path / "masked", layers=2)
    config = transformers.AutoConfig.from_pretrained(tmp_path / "masked")
    transformers.set_seed(0)
    transformers.AutoModelForMaskedLM.from_config(config).save_pretrained(tmp_path / "masked")
    loss = masked_lm.measure(case(folders, "far", "near", backbone=tmp_path / "masked"))
    # An untrained head is about as surprised as one that guesses.
    assert loss.value == pytest.approx(math.log(config.vocab_size), rel=0.1)
    assert loss.low < loss.value < loss.high
    assert loss.n > 50


def test_data_too_small_to_measure_say_so(folders):
    distance = proxy_a.measure(case(folders, "few", "near"))
    assert (distance.value, distance.beyond) == (None, None)
    assert "at least 20 training examples" in distance.why


def test_measures_are_written_and_not_taken_again(folders, tmp_path, monkeypatch):
    folder, far = Folder(tmp_path / "case"), case(folders, "far", "near")
    first = measure(["vocabulary"], far, folder)
    assert measured(folder) == first
    monkeypatch.setitem(MEASURES, "vocabulary", lambda case: Measured(title="another"))
    assert measure(["vocabulary"], far, folder) == first
    again = case(folders, "again", "near")
    assert measure(["vocabulary"], again, folder)["vocabulary"].title == "another"


@pytest.mark.parametrize("layer", [1, 2])
def test_variability_names_the_layer_that_tells_labels_apart(folders, monkeypatch, layer):
    """The labels are added to the output of one layer."""
    near = case(folders, "near")
    texts = [tuple(ids) for ids in np.split(near.encoded.input_ids, near.encoded.offsets[1:-1])]
    label_of = dict(zip(texts, near.prepared.task.splits["train"].flat_labels, strict=True))

    def with_labels(backbone, encoded, examples, device):
        states = hidden_states(backbone, encoded, examples, device)
        lengths = np.diff(encoded.offsets)[examples]
        drawn = [tuple(ids) for ids in np.split(encoded.input_ids, encoded.offsets[1:-1])]
        labels = np.repeat([label_of[drawn[example]] for example in examples], lengths)
        state = encoder(layer)[0]
        return states | {state: states[state] + 5.0 * torch.from_numpy(labels).unsqueeze(1)}

    monkeypatch.setattr("adalayers.features.features.hidden_states", with_labels)
    best = variability.measure(near)
    assert (best.value, best.n, best.counted) == (layer, 200, "examples")
    assert set(best.by_layer) == {"01", "02"}
    assert best.by_layer[f"0{layer}"] < 0.5 * best.by_layer[f"0{3 - layer}"]
    assert (best.nothing, best.distance) == (None, False)


def test_variability_is_that_of_all_examples_however_they_are_drawn(folders):
    """200 examples are all: against the definition over the whole training split."""
    near, state = case(folders, "near"), encoder(2)[0]
    vectors = [
        near.features(near.encoded).read(np.array([example]), [state], torch.device("cpu"))[state][1:-1]
        for example in range(200)
    ]
    labels = torch.from_numpy(near.prepared.task.splits["train"].flat_labels)
    expected = nu(torch.stack([tokens.mean(dim=0) for tokens in vectors]), labels)
    assert variability.measure(near).by_layer["02"] == pytest.approx(expected, rel=1e-4)


def test_variability_of_words_and_of_a_sample(folders, monkeypatch):
    monkeypatch.setattr(variability, "MAX_WORDS", 300)
    words = case(folders, "entities-demo", length=256)
    sample = variability.measure(words)
    assert sample.counted == "words"
    assert 300 <= sample.n < 400
    assert sample == variability.measure(words)
    monkeypatch.setattr(variability, "MAX_EXAMPLES", 50)
    assert variability.measure(case(folders, "near")).n == 50
    monkeypatch.setattr(variability, "MAX_EXAMPLES", 1)
    single = variability.measure(case(folders, "near"))
    assert (single.value, single.by_layer) == (None, {})
    assert "fewer than two classes" in single.why


def test_a_measure_without_reference_needs_no_flag(folders, tmp_path):
    near = case(folders, "near")
    assert set(near.key) == {"backbone", "train"}
    assert set(case(folders, "near", "near").key) == {"backbone", "train", "reference"}
    measures = measure(["variability"], near, Folder(tmp_path))
    assert measured(Folder(tmp_path), {"names": ["variability"], **near.key}) == measures


def test_a_broken_file_holds_nothing(tmp_path):
    folder = Folder(tmp_path)
    assert measured(folder) == {}
    for text in (b"{", b"[]", b'{"measures": {"a": {"unheard": 1}}}'):
        folder.write_bytes("measures.json", text)
        assert measured(folder) == {}
