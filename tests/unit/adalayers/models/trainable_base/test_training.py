"""Trials that change a base model: they learn, interrupted or not, and leave the shared one as it was."""

import copy

import numpy as np
import pytest
import torch

from adalayers.backbones.loading import shared_backbone
from adalayers.features import features
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.fusion.variability import VariabilityConfig
from adalayers.models.trainable_base.model import TrainableBaseModel
from adalayers.storage.folder import Folder
from adalayers.study import Variant
from adalayers.training.trainer import train
from tests.helpers.interrupting import assert_same, interrupted
from tests.helpers.made_tokens import token_data
from tests.helpers.states import encoder

CPU = torch.device("cpu")
SMALL = {"k": 8, "heads": 2, "adapter_width": 4, "batch_size": 16, "epochs": 3, "lr": 3e-3}
SELECTING = {"own_width": True, "base_layers": "selected", "base_lr": 1e-3, "read_out": "linear"}
WAYS = ("adapters", "fine-tuned")


@pytest.fixture(scope="module")
def data(source_of):
    return token_data(source_of())


@pytest.mark.parametrize(
    ("config", "span"),
    [
        (LayerMixConfig(base_model="adapters", dropout=0.3, adapter_norms=True, **SMALL), [1, 4, 4]),
        # Chosen by a look at the frozen model.
        (VariabilityConfig(base_model="fine-tuned", **{**SMALL, **SELECTING}), [1, 1, 1]),
    ],
)
def test_an_interrupted_trial_continues_to_the_same_numbers(config, span, data, tmp_path):
    whole = train(config, data, seed=1)
    assert whole.model.span.tolist() == span
    assert whole.row["parameters"] == whole.model.n_parameters() > 1000
    assert_same(interrupted(config, data, Folder(tmp_path), seed=1), whole)


def test_no_trial_changes_the_backbone_that_others_share(data):
    backbone, every = shared_backbone(data.source, CPU), encoder(0, 1, 2, 3, 4)
    before = copy.deepcopy(backbone.state_dict())
    features = data.splits["train"].features
    states = features.read(np.arange(8), every, CPU)
    for way in WAYS:
        train(LayerMixConfig(base_model=way, adapter_norms=True, **{**SMALL, "epochs": 1}), data, seed=0)
    assert shared_backbone(data.source, CPU) is backbone
    torch.testing.assert_close(dict(backbone.state_dict()), dict(before), rtol=0, atol=0)
    torch.testing.assert_close(features.read(np.arange(8), every, CPU), states, rtol=0, atol=0)


@pytest.mark.parametrize("way", WAYS)
def test_no_features_are_read_and_variants_are_scored(way, data, monkeypatch):
    monkeypatch.setattr(features, "hidden_states", lambda *_: pytest.fail("the frozen backbone was run"))
    variants = [Variant(without=(1,)), Variant(without=(1,), renormalise=False)]
    variants += [Variant(without=(1, 2, 3, 4)), Variant(cutoff=0.5)]
    config = LayerMixConfig(base_model=way, **{**SMALL, "epochs": 1}, train_examples=24)
    outcome = train(config, data, seed=0, test=True, variants=variants)
    assert outcome.history[-1]["step"] == 2, "of batches of 16"
    assert isinstance(outcome.model, TrainableBaseModel)
    assert set(outcome.predictions["split"]) == {"val", "test"}
    second = {"adapters": "without=1-4", "fine-tuned": "without=1-1 as they are"}[way]
    assert outcome.evaluations["variant"].tolist() == ["without=1-1", second]
    assert outcome.evaluations["value"].between(0, 1).all()


GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU: its paths are not tested here")


# The last one: the base model learns it alone.
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=GPU)])
@pytest.mark.parametrize(("way", "lr"), [("adapters", 1e-2), ("fine-tuned", 1e-6)])
def test_a_base_model_learns(way, lr, device, source_of):
    learnable = token_data(source_of(), sizes=(120, 60, 60))
    settings = {"mix": "last", "read_out": "linear", "lr": lr, "base_lr": 1e-2, "epochs": 8, "patience": 8}
    settings |= {"adapter_norms": True, "adapter_width": 8}
    state = torch.cuda.get_rng_state() if device == "cuda" else None
    config = LayerMixConfig(base_model=way, **{**SMALL, **settings})
    row = train(config, learnable, seed=0, test=True, device=device).row
    for split, prefix in (("validation", "val"), ("test", "test")):
        labels = learnable.splits[split].labels
        assert row[f"{prefix}/accuracy"] > max(np.bincount(labels)) / len(labels) + 0.15
    assert state is None or torch.equal(torch.cuda.get_rng_state(), state)
