"""The real MiniLM, from its PyPI package: the one pretrained backbone that needs no hub, and every method over it."""

import numpy as np
import pytest
import torch
from torch.nn.functional import cosine_similarity

from adalayers.backbones.loading import load
from adalayers.backbones.sources import resolve
from adalayers.backbones.tokens import encode, load_tokenizer
from adalayers.config import with_overrides
from adalayers.data.prepare import prepare
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.request import DataRequest
from adalayers.training.trainer import train
from studies.methods import STUDY, methods
from tests.helpers.long_form import MINILM
from tests.helpers.planning import setting_of

pytestmark = MINILM

SENTENCES = [
    "A woman is cooking soup in the kitchen.",
    "In her kitchen a lady prepares some broth.",
    "The government raised taxes on petrol last year.",
    "Fuel duties went up after a decision of the state.",
]


def test_sentences_of_like_meaning_are_near():
    source = resolve("minilm")
    tokenizer, backbone = load_tokenizer(source), load(source)
    # Its tokenizer.json asks for padding and cutting, at 128 tokens.
    assert np.diff(encode(tokenizer, ["word " * 300, "word"], 512).offsets).tolist() == [302, 3]
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
    assert min(similarity[0, 1], similarity[2, 3]) > 0.5
    assert similarity[:2, 2:].max() < 0.3


@pytest.fixture(scope="module")
def entities(tmp_path_factory):
    """What several tests train on."""
    sizes = {"train_examples": 300, "eval_examples": 150, "test_examples": 150, "max_length": 64}
    prepared = prepare(DataRequest("minilm", "entities-demo", **sizes))
    return prepared.data("disk", cache=tmp_path_factory.mktemp("cache"))


def test_a_trial_s_numbers_are_those_of_earlier_releases(entities):
    """Pinned at 2026-11-22, torch 2.13.0; the tolerances are for rounding on other CPUs."""
    outcome = train(LayerMixConfig(epochs=3, alpha=8.0, lr=2e-3), entities, seed=1)
    assert outcome.row["val/f1"] == pytest.approx(0.342, abs=0.02)
    weights = [0.1509, 0.1758, 0.1678, 0.1511, 0.1636, 0.1909]
    assert outcome.model.fusion.weights().tolist() == pytest.approx(weights, abs=2e-3)


def test_entities_demo_is_learnable_and_layers_differ(entities):
    small = {"epochs": 10, "feedforward": 64}
    mixed = train(LayerMixConfig(alpha=8.0, **small), entities, seed=1).row
    states = {"hidden_states": "with-embeddings", "mix": "single", "layer": 0}
    embeddings = train(LayerMixConfig(**states, **small), entities, seed=1).row
    assert 0.4 < mixed["val/f1"] < 0.99
    assert mixed["val/f1"] > embeddings["val/f1"] + 0.05


@pytest.mark.parametrize(
    ("name", "words", "changes"),
    [
        ("late fusion at own width", False, {"train_examples": 400, "epochs": 8, "lr": 1e-2}),
        ("adapters, two classifiers", True, {"epochs": 3}),
    ],
)
def test_a_method_beats_the_majority_class(name, words, changes, world, tmp_path):
    """A linear probe over sentences, and a changed base model over rows of few words."""
    sizes = {"train_examples": 800, "eval_examples": 200, "test_examples": 200}
    given = (str(world["dataset"]), {}) if words else ("acceptability-demo", sizes)
    prepared = prepare(DataRequest("minilm", given[0], **given[1]))
    setting = setting_of(STUDY, prepared.shape, "acceptability-demo", epochs=10, pool=400)
    config = with_overrides(setting.base, {**methods(setting)[name][1], **changes})
    data = prepared.data("disk", cache=tmp_path)
    outcome = train(config, data, seed=1, test=True)
    floor = prepared.task.baseline("validation")
    assert outcome.row[f"val/{data.metric}"] > floor + 0.02, (outcome.row, floor)
    assert outcome.row["cost/training"] > 0
    assert outcome.row["cost/use"] > 0
