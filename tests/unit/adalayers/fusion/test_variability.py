"""Layer selection against the definition in NumPy; what it chooses, keeps and trains."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from adalayers.config import trial_config
from adalayers.data.trial_data import Passes
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.fusion.variability import VariabilityConfig, labelled, variabilities
from adalayers.models.saved import load, save
from adalayers.storage.folder import Folder
from adalayers.training.trainer import train
from tests.helpers.interrupting import assert_same, interrupted
from tests.helpers.made_data import made_data
from tests.helpers.mixing import read_at
from tests.helpers.refusing import refused
from tests.helpers.states import encoder, made_shape

STATES = encoder(1, 2, 3)
CPU = torch.device("cpu")
SMALL = {"fusion": "variability", "k": 8, "heads": 2, "feedforward": 16}
SMALL |= {"batch_size": 16, "epochs": 4, "lr": 3e-3}


def numpy_nu(features, labels):
    """trace(S_w pinv(S_b)) / |Y| by the definition."""
    groups = [features[labels == label] for label in np.unique(labels)]
    within = np.mean([np.cov(group.T, ddof=0) for group in groups], axis=0)
    between = np.cov(np.array([group.mean(axis=0) for group in groups]).T, ddof=0)
    return np.trace(within @ np.linalg.pinv(between, rcond=1e-10)) / len(groups)


def drawn(n=60, inner=5, classes=3):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, classes, n)
    return rng.normal(size=(n, inner)) + rng.normal(size=(classes, inner))[labels], labels


def nu(features, labels):
    read = [(STATES[0], torch.from_numpy(features), torch.from_numpy(labels))]
    return variabilities(lambda: read, int(labels.max()) + 1)[STATES[0]]


@pytest.mark.parametrize(("classes", "inner"), [(2, 5), (3, 40), (5, 7)])
def test_agrees_with_numpy(classes, inner):
    features, labels = drawn(classes=classes, inner=inner)
    assert nu(features, labels) == pytest.approx(numpy_nu(features, labels), rel=1e-9)


def test_by_hand():
    # Classes at 0 and 4 on one axis, each -1 and +1 around it: S_w = 1, S_b = 4; what the other axis does is nothing.
    features = np.array([[-1.0, 9.0], [1.0, 9.0], [3.0, 9.0], [5.0, 9.0]])
    assert nu(features, np.array([0, 0, 1, 1])) == pytest.approx(1 / 4 / 2)


def test_a_class_of_one_varies_by_nothing_a_class_of_none_is_none_and_of_one_class_nothing_is_told():
    features, labels = drawn()
    labels[labels == 1] = 0
    labels[0] = 1
    found = [nu(features, given) for given in (labels, np.where(labels == 2, 5, labels))]
    assert found == pytest.approx([numpy_nu(features, labels)] * 2)
    assert nu(np.ones_like(features), labels) == math.inf
    refused("at least two classes, got 1", nu, features, np.zeros_like(labels))


def pooled(split, state, words):
    """Vectors and labels of a split by their definition: first and last tokens are special."""
    ends = np.cumsum(split.features.lengths)
    hidden = split.features._states[state.number].astype(np.float64)
    starts = ends - split.features.lengths
    if not words:
        return np.array([hidden[a + 1 : b - 1].mean(axis=0) for a, b in zip(starts, ends, strict=True)])
    counts = np.diff(split.word_offsets)
    return hidden[np.repeat(starts, counts) + split.word_places]


@pytest.mark.parametrize("batch_size", [7, 1000])
@pytest.mark.parametrize("kind", ["sequence", "token"])
def test_of_batches_it_is_that_of_all_their_examples(kind, batch_size):
    split = made_data(kind).splits["train"]
    found = variabilities(lambda: labelled(Passes(split, STATES, CPU, batch_size), STATES), 3)
    for state in STATES:
        expected = numpy_nu(pooled(split, state, kind == "token"), split.labels)
        assert found[state] == pytest.approx(expected, rel=1e-9)
    assert min(found, key=found.__getitem__).number == 2


@pytest.mark.parametrize(
    ("special", "rows"),
    [
        (None, ([1, 2], [5])),
        ([0, 0, 0, 1, 0, 0, 1], ([0, 1, 2], [4, 5])),  # as T5: one at the end alone
        ([1, 0, 0, 1, 1, 1, 1], ([1, 2], [4, 5, 6])),  # nothing but special tokens: all of them
    ],
)
def test_special_tokens_are_left_out(special, rows):
    hidden = torch.arange(14.0).view(7, 2) ** 2
    special = None if special is None else torch.tensor(special, dtype=torch.bool)
    own = {"lengths": torch.tensor([4, 3]), "labels": torch.tensor([0, 1]), "words": None, "special": special}
    ((state, vectors, labels),) = labelled([SimpleNamespace(states={STATES[0]: hidden}, **own)], STATES[:1])
    assert (state, labels.tolist()) == (STATES[0], [0, 1])
    expected = torch.stack([hidden[list(tokens)].double().mean(dim=0) for tokens in rows])
    torch.testing.assert_close(vectors, expected)


@pytest.mark.parametrize("read", ["selected", "last"])
@pytest.mark.parametrize("k", [None, 8], ids=["own width", "projected"])
def test_one_layer_is_read_and_trained_from_where_the_layer_mix_starts(k, read):
    torch.manual_seed(3)
    shape, split = made_shape(layers=3, width=16), made_data().splits["train"]
    fusion = VariabilityConfig(**read_at(k), read=read).build(shape)
    batches = Passes(split, STATES, CPU, 32)
    fusion.fit(batches)
    assert fusion.depth() == 2
    found = variabilities(lambda: labelled(batches, STATES), 3)
    measured = {f"variability/nu_{state.name}": found[state] for state in STATES}
    assert fusion.summary() == {"variability/layer": 2, **measured}
    number = {"selected": 2, "last": 3}[read]
    assert fusion.live() == encoder(number)
    batch = split.batch(np.arange(5), fusion.live(), CPU)
    given = fusion(batch.states, batch.lengths)
    if k is None:
        assert torch.equal(given, batch.states[fusion.live()[0]].float())
        return
    torch.manual_seed(3)
    mix = LayerMixConfig(k=8, mix="single", layer=number).build(shape)
    torch.testing.assert_close(given, mix(batch.states, batch.lengths))


@pytest.mark.parametrize("kind", ["sequence", "token"])
def test_a_trial_chooses_once_and_keeps_its_choice(tmp_path, kind):
    data, settings = made_data(kind), trial_config(**SMALL)
    whole = train(settings, data, seed=0)
    assert whole.row["variability/layer"] == 2
    assert whole.row["variability/nu_02"] < whole.row["variability/nu_01"]
    assert_same(interrupted(settings, data, Folder(tmp_path / "work")), whole)
    save(whole.model, Folder(tmp_path / "best"), about={})
    again = load(tmp_path / "best")
    assert (again.fusion.live(), again.fusion.depth()) == (encoder(2), 2)
    assert again.fusion.summary() == whole.model.fusion.summary()
