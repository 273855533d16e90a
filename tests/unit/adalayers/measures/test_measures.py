"""What is measured without training, on tiny backbones and texts whose distance is put in."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from adalayers.data.prepare import prepare
from adalayers.fusion.variability import variabilities
from adalayers.measures import MEASURES, measure, proxy_a, variability
from adalayers.measures.case_data import CaseData
from adalayers.request import DataRequest
from adalayers.results.measures import Measured, measured
from adalayers.storage.folder import Folder
from tests.helpers.states import encoder

N = 120
FAR = "acceptability-demo"
"""Of other words than the world's texts."""


@pytest.fixture
def case(world):
    def of(dataset=world["dataset"], reference=None, n=N):
        flags = {"reference_dataset": str(reference)} if reference else {}
        return CaseData(prepare(DataRequest(str(world["backbone"]), str(dataset), train_examples=n)), flags)

    return of


def test_data_of_one_source_lie_no_further_apart_than_nothing_and_other_words_do(case, world):
    same, far = (proxy_a.measure(case(reference=data)) for data in (world["dataset"], FAR))
    assert abs(same.beyond) < 0.4
    assert 1.2 < far.beyond < far.value <= 2
    assert (same.n, far.n, far.why) == (N // 2, N, "")
    assert same == proxy_a.measure(case(reference=world["dataset"]))
    (_, half), (_, other) = case(reference=world["dataset"]).pools(np.random.default_rng(0))
    assert sorted([*half, *other]) == list(range(N))
    own = case(reference=FAR).prepared.request
    named = CaseData(prepare(replace(own, splits=("validation=40%",))), {"reference_dataset": FAR})
    assert named.reference.task.fingerprint == case(reference=FAR).reference.task.fingerprint
    few = proxy_a.measure(case(reference=FAR, n=6))
    assert (few.value, few.beyond) == (None, None)
    assert "at least 20 training examples" in few.why


def test_measures_are_written_and_taken_again_for_other_data_alone(case, tmp_path, monkeypatch):
    folder, taken = Folder(tmp_path), []
    monkeypatch.setitem(MEASURES, "proxy_a", lambda case: taken.append(case) or Measured(title="far"))
    near, far = case(), case(reference=FAR)
    assert (set(near.key), set(far.key)) == ({"backbone", "train"}, {"backbone", "train", "reference"})
    for data in (far, far, near):
        assert measure(["proxy_a"], data, folder)["proxy_a"].title == "far"
    assert taken == [far, near]
    assert measured(folder, {"names": ["proxy_a"], **near.key}) == measured(folder) != {}
    for text in (b"{", b"[]", b'{"measures": {"a": {"unheard": 1}}}'):
        folder.write_bytes("measures.json", text)
        assert measured(folder) == {}


def test_variability_is_by_its_definition_that_of_all_examples_however_they_are_drawn(case):
    near, states = case(), encoder(1, 2, 3, 4)
    vectors = near.features(near.encoded).read(np.arange(N), states, torch.device("cpu"))
    labels = torch.from_numpy(near.prepared.task.splits["train"].labels)
    read = []
    for state in states:
        texts = vectors[state].split(np.diff(near.encoded.offsets).tolist())
        read.append((state, torch.stack([tokens[1:-1].mean(dim=0) for tokens in texts]), labels))
    expected = {state.name: nu for state, nu in variabilities(lambda: read, 2).items()}
    best = variability.measure(near)
    assert best.by_layer == pytest.approx(expected, rel=1e-4)
    assert expected[f"{best.value:02.0f}"] == min(expected.values()) < max(expected.values())
    assert (best.n, best.counted, best.nothing, best.distance) == (N, "examples", None, False)


def test_variability_of_words_and_of_a_sample(case, monkeypatch):
    monkeypatch.setattr(variability, "MAX_WORDS", 300)
    sample = variability.measure(case("entities-demo"))
    assert sample.counted == "words"
    assert 300 <= sample.n < 400
    near = case()
    for most, told in ((50, (50, "")), (1, (0, "the training examples drawn are of fewer than two classes"))):
        monkeypatch.setattr(variability, "MAX_EXAMPLES", most)
        drawn = variability.measure(near)
        assert drawn == variability.measure(near)
        assert (drawn.n, drawn.why) == told
