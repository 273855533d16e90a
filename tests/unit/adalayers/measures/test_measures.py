"""What is measured without training, on tiny backbones and texts whose distance is put in."""

import numpy as np
import pytest
import torch
from datasets import ClassLabel, Dataset, Features, Value

from adalayers.data.prepare import prepare
from adalayers.features.extract import hidden_states
from adalayers.fusion.variability import variabilities
from adalayers.measures import MEASURES, measure, proxy_a, variability
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


def test_data_of_one_source_lie_no_further_apart_than_nothing_and_other_words_do(folders):
    same, again, far = (proxy_a.measure(case(folders, data, "near")) for data in ("near", "again", "far"))
    assert abs(same.beyond) < 0.3
    assert abs(again.beyond) < 0.3
    assert far.beyond > 1.2
    assert far.value <= 2
    assert (far.n > 0, far.why) == (True, "")
    assert far == proxy_a.measure(case(folders, "far", "near"))


def test_data_too_small_to_measure_say_so(folders):
    distance = proxy_a.measure(case(folders, "few", "near"))
    assert (distance.value, distance.beyond) == (None, None)
    assert "at least 20 training examples" in distance.why


def test_measures_are_written_and_not_taken_again(folders, tmp_path, monkeypatch):
    folder, far = Folder(tmp_path / "case"), case(folders, "far", "near")
    first = measure(["proxy_a"], far, folder)
    assert measured(folder) == first
    monkeypatch.setitem(MEASURES, "proxy_a", lambda case: Measured(title="another"))
    assert measure(["proxy_a"], far, folder) == first
    again = case(folders, "again", "near")
    assert measure(["proxy_a"], again, folder)["proxy_a"].title == "another"


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
    read = [(state, torch.stack([tokens.mean(dim=0) for tokens in vectors]), labels)]
    expected = variabilities(lambda: read, 2)[state]
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
