"""Fusions on the features that trials read, live, stored or pooled; batches, precision and gradients of every one."""

import dataclasses

import pandas as pd
import pytest
import torch

from adalayers.config import FUSIONS, config_class, trial_config
from adalayers.data.prepare import prepare
from adalayers.models.model import FusionModel
from adalayers.request import DataRequest
from adalayers.training.trainer import train
from tests.helpers.states import made_shape, made_states

CASES = [(name, {}) for name in FUSIONS]
CASES += [
    (name, {"own_width": True})
    for name in FUSIONS
    if "own_width" in {field.name for field in dataclasses.fields(config_class(name))}
]
SMALL = {"heads": 2, "feedforward": 16, "batch_size": 16, "lr": 3e-3}
LENGTHS = torch.tensor([9, 3, 3, 5, 1])


@pytest.fixture(scope="module")
def prepared(world):
    """Texts in the tokens of a tiny backbone."""
    few = {"train_examples": 48, "eval_examples": 16, "test_examples": 16}
    return prepare(DataRequest(str(world["backbone"]), str(world["dataset"]), precision="float32", **few))


@pytest.fixture(params=CASES, ids=lambda case: " ".join([case[0], *case[1]]))
def model(request):
    """A model of one fusion."""
    name, width = request.param
    return FusionModel(config_class(name)(**{**SMALL, **width, "dropout": 0.0}), made_shape()).eval()


@pytest.fixture
def states(model):
    return made_states(model.fusion.states, int(LENGTHS.sum()), model.shape.width, seed=1)


@pytest.mark.parametrize(
    ("config", "pooling"),
    [
        ({"fusion": "layer-mix"}, None),
        ({"fusion": "head2toe"}, "mean"),
        ({"fusion": "layer-set"}, "mean"),
        ({"fusion": "scalar-mix", "own_width": True, "read_out": "mean"}, "mean"),
    ],
    ids=str,
)
def test_live_stored_and_pooled_features_train_to_the_same_numbers(config, pooling, prepared, tmp_path):
    """Views among them; and one configuration that reads tokens has tokens stored for all."""
    config = trial_config(**SMALL, **config, epochs=2, dropout=0.3, train_examples=24)
    whole, few = (prepared.reading([config], pool=pool) for pool in (False, True))
    assert (whole.source.pooling, few.source.pooling) == (None, pooling)
    assert pooling is None or few.store_bytes < whole.store_bytes / 2
    assert prepared.reading([config, trial_config()]).source.pooling is None
    data = [whole.data("live"), *(case.data("disk", cache=tmp_path) for case in (whole, few))]
    live, *others = (pd.DataFrame(train(config, own, seed=0).history) for own in data)
    for other in others:
        pd.testing.assert_frame_equal(live, other, rtol=1e-3, atol=1e-5)


def test_a_sequence_depends_on_no_other_of_its_batch(model, states):
    with torch.no_grad():
        batch = model(states, LENGTHS)
        for row, (length, end) in enumerate(zip(LENGTHS, LENGTHS.cumsum(0), strict=True)):
            alone = model({s: z[end - length : end] for s, z in states.items()}, length.unsqueeze(0))
            torch.testing.assert_close(alone[0], batch[row], atol=1e-5, rtol=1e-4)


def test_half_precision_states_are_read_in_float32_and_those_that_are_trained_get_gradients(model, states):
    half = {state: values.half() for state, values in states.items()}
    full = {state: values.float() for state, values in half.items()}
    assert torch.equal(model(half, LENGTHS), model(full, LENGTHS))
    # As on a GPU: with autocast, and without what is written for frozen states on a CPU.
    tuned = {state: full[state].clone().requires_grad_() for state in model.fusion.live()}
    with torch.autocast("cpu", dtype=torch.bfloat16):
        fused = model.fusion(tuned, LENGTHS)
    assert fused.dtype == torch.float32
    torch.testing.assert_close(fused, model.fusion(full, LENGTHS), atol=0.1, rtol=0.1)
    model(tuned, LENGTHS).square().sum().backward()
    assert all(values.grad.abs().max() > 0 for values in tuned.values())
