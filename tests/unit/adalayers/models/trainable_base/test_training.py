"""Trials that change a base model: they learn, interrupted or not, and leave the shared one as it was."""

import copy

import numpy as np
import pytest
import torch

from adalayers.backbones.loading import shared_backbone
from adalayers.errors import BadInput
from adalayers.features import features
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.models.factory import build_model
from adalayers.models.trainable_base.model import TrainableBaseModel
from adalayers.storage.folder import Folder
from adalayers.study import Variant
from adalayers.training.trainer import train
from tests.helpers.interrupting import assert_same, interrupted
from tests.helpers.made_data import made_data
from tests.helpers.made_tokens import LookingConfig, token_data
from tests.helpers.states import encoder

CPU = torch.device("cpu")
SMALL = {"k": 8, "heads": 2, "adapter_width": 4, "batch_size": 16, "epochs": 3, "lr": 3e-3}
LOOKING = {"read_out": "linear", "adapter_width": 4, "batch_size": 16, "epochs": 3, "lr": 3e-3}
WAYS = ("adapters", "fine-tuned")


@pytest.fixture(scope="module")
def data(source_of):
    return token_data(source_of())


@pytest.mark.parametrize(
    "config",
    [
        LayerMixConfig(base_model="adapters", dropout=0.3, adapter_norms=True, **SMALL),
        LayerMixConfig(base_model="fine-tuned", base_lr=1e-3, cutoff=0.2, alpha=64.0, **SMALL),
        LookingConfig(base_model="adapters", base_layers="selected", **LOOKING),
    ],
    ids=lambda config: f"{config.fusion} {config.base_model}",
)
def test_an_interrupted_trial_continues_to_the_same_numbers(config, data, tmp_path):
    assert_same(interrupted(config, data, Folder(tmp_path), seed=1), train(config, data, seed=1))


def test_no_trial_changes_the_backbone_that_others_share(data):
    backbone = shared_backbone(data.source, CPU)
    before = copy.deepcopy(backbone.state_dict())
    split = data.splits["train"]
    every = np.arange(8)
    states = split.features.read(every, encoder(0, 1, 2, 3, 4), CPU)

    def frozen():
        return train(LayerMixConfig(**SMALL), data, seed=0, test=True)

    first = frozen()
    for way in WAYS:
        train(LayerMixConfig(base_model=way, adapter_norms=True, **SMALL), data, seed=0)
    assert shared_backbone(data.source, CPU) is backbone
    after = backbone.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    again = split.features.read(every, encoder(0, 1, 2, 3, 4), CPU)
    assert all(torch.equal(states[state], again[state]) for state in states)
    assert_same(frozen(), first)


@pytest.mark.parametrize("way", WAYS)
def test_a_tuned_trial_reads_no_features(way, data, monkeypatch):
    def unread(*arguments):
        raise AssertionError("the frozen backbone was run")

    monkeypatch.setattr(features, "hidden_states", unread)
    outcome = train(LayerMixConfig(base_model=way, **SMALL), data, seed=0, test=True)
    assert isinstance(outcome.model, TrainableBaseModel)
    assert set(outcome.predictions["split"]) == {"val", "test"}


def test_a_fusion_looks_at_the_frozen_model_before_training(data):
    config = LookingConfig(base_model="fine-tuned", base_layers="selected", **LOOKING)
    outcome = train(config, data, seed=0)
    assert outcome.model.span.tolist() == [1, 2, 2]
    assert outcome.row["parameters"] == outcome.model.n_parameters() > 1000


@pytest.mark.parametrize("way", WAYS)
def test_variants_are_scored(way, data):
    variants = [Variant(without=(1,)), Variant(without=(1,), renormalise=False)]
    variants += [Variant(without=(1, 2, 3, 4)), Variant(cutoff=0.5)]
    outcome = train(LayerMixConfig(base_model=way, **SMALL), data, seed=0, variants=variants)
    second = {"adapters": "without=1-4", "fine-tuned": "without=1-1 as they are"}[way]
    assert outcome.evaluations["variant"].tolist() == ["without=1-1", second]
    assert outcome.evaluations["value"].between(0, 1).all()


def test_a_base_model_that_nobody_named_is_refused():
    with pytest.raises(BadInput, match="base model for base_model=adapters, these data do not say where"):
        build_model(LayerMixConfig(base_model="adapters", **SMALL), made_data().shape)


def test_a_draw_of_the_pool_keeps_its_tokens_and_its_base_model(data):
    drawn = data.view(24, 0)
    assert drawn.source == data.source
    outcome = train(LayerMixConfig(base_model="adapters", train_examples=24, **SMALL), data, seed=0)
    assert outcome.history[-1]["step"] == 3 * 2


@pytest.fixture(scope="module")
def learnable(source_of):
    return token_data(source_of(), sizes=(120, 60, 60))


# The last one: the base model learns it alone.
@pytest.mark.parametrize(("way", "lr"), [("adapters", 1e-2), ("fine-tuned", 1e-2), ("fine-tuned", 1e-6)])
def test_a_base_model_learns(way, lr, learnable):
    settings = {"mix": "last", "read_out": "linear", "lr": lr, "base_lr": 1e-2, "epochs": 8, "patience": 8}
    settings |= {"adapter_norms": True, "adapter_width": 8}
    config = LayerMixConfig(base_model=way, **{**SMALL, **settings})
    row = train(config, learnable, seed=0, test=True).row
    for split, prefix in (("validation", "val"), ("test", "test")):
        labels = learnable.splits[split].labels
        assert row[f"{prefix}/accuracy"] > max(np.bincount(labels)) / len(labels) + 0.15


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU: its paths are not tested here")
@pytest.mark.parametrize("way", WAYS)
def test_on_a_gpu(way, learnable):
    state = torch.cuda.get_rng_state()
    settings = {**SMALL, "mix": "last", "read_out": "linear", "lr": 1e-2, "epochs": 8, "adapter_norms": True}
    outcome = train(LayerMixConfig(base_model=way, **settings), learnable, seed=0, test=True, device="cuda")
    assert outcome.row["val/accuracy"] > 0.65
    assert torch.equal(torch.cuda.get_rng_state(), state)
