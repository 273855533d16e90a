"""Every fusion on the features that trials read: it learns from them, live or stored, and batches change nothing."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch

from adalayers.config import FUSIONS, config_class, trial_config
from adalayers.data.prepare import prepare
from adalayers.models.model import FusionModel
from adalayers.request import DataRequest
from adalayers.training.trainer import train
from tests.helpers.made_data import made_data
from tests.helpers.states import made_shape, made_states

CASES = [(name, {}) for name in FUSIONS]
CASES += [
    (name, {"own_width": True})
    for name in FUSIONS
    if "own_width" in {field.name for field in dataclasses.fields(config_class(name))}
]
SMALL = {"heads": 2, "feedforward": 16, "batch_size": 16, "lr": 3e-3}
LENGTHS = [9, 3, 3, 5, 1]


@pytest.fixture(params=CASES, ids=lambda case: " ".join([case[0], *case[1]]))
def make(request):
    """Return what makes a configuration of one fusion."""
    name, width = request.param
    return lambda **changes: config_class(name)(**{**SMALL, **width, **changes})


@pytest.fixture(scope="module")
def prepared(world):
    """Texts in the tokens of a tiny backbone."""
    few = {"train_examples": 48, "eval_examples": 16, "test_examples": 16}
    return prepare(DataRequest(str(world["backbone"]), str(world["dataset"]), precision="float32", **few))


def states(model, lengths):
    return made_states(model.fusion.states, sum(lengths), model.shape.width, seed=1)


def test_it_learns_an_easy_task(make):
    """Labels of three classes are read off the last hidden state, which every method reads."""
    data = made_data(informative=3)
    for split in data.splits.values():  # as they are stored
        hidden = split.features._states
        hidden.update({number: state.astype(np.float16) for number, state in hidden.items()})
    # Linear probes take larger steps.
    probes = {"head2toe": {"lr": 0.1, "lasso": 0.0, "fraction": 0.5}, "late-fusion": {"lr": 0.1}}
    steps = probes.get(make().fusion, {})
    outcome = train(make(epochs=5, **steps), data, seed=0)
    labels = data.splits["validation"].labels
    assert outcome.row["val/accuracy"] > np.bincount(labels).max() / len(labels) + 0.2


def test_live_and_stored_features_train_to_the_same_numbers(make, prepared, tmp_path):
    config = make(epochs=2, dropout=0.3)
    live, disk = (
        pd.DataFrame(train(config, prepared.data(mode, cache=tmp_path), seed=0).history)
        for mode in ("live", "disk")
    )
    pd.testing.assert_frame_equal(live, disk, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    "config",
    [{"fusion": "layer-set"}, {"fusion": "scalar-mix", "own_width": True, "read_out": "mean"}],
    ids=str,
)
def test_pooled_and_whole_stores_train_to_the_same_numbers(config, prepared, tmp_path):
    """Views among them; and one configuration that reads tokens has tokens stored for all."""
    config = trial_config(**SMALL, **config, epochs=2, dropout=0.3, train_examples=24)
    whole, few = (prepared.reading([config], pool=pool) for pool in (False, True))
    assert (whole.source.pooling, few.source.pooling) == (None, "mean")
    assert few.store_bytes < whole.store_bytes / 2
    assert prepared.reading([config, trial_config()]).source.pooling is None
    histories = []
    for case in (whole, few):
        row = train(config, case.data("disk", cache=tmp_path), seed=0)
        histories.append(pd.DataFrame(row.history))
    pd.testing.assert_frame_equal(*histories, rtol=1e-3, atol=1e-5)


def test_a_sequence_depends_on_no_other_of_its_batch(make):
    model = FusionModel(make(), made_shape()).eval()
    together = states(model, LENGTHS)
    ends = np.cumsum(LENGTHS)
    with torch.no_grad():
        batch = model(together, torch.tensor(LENGTHS))
        for row, (length, end) in enumerate(zip(LENGTHS, ends, strict=True)):
            alone = model({s: z[end - length : end] for s, z in together.items()}, torch.tensor([length]))
            torch.testing.assert_close(alone[0], batch[row], atol=1e-5, rtol=1e-4)


def test_half_precision_states_are_read_in_float32(make):
    model = FusionModel(make(), made_shape()).eval()
    half = {state: values.half() for state, values in states(model, LENGTHS).items()}
    full = {state: values.float() for state, values in half.items()}
    lengths = torch.tensor(LENGTHS)
    assert torch.equal(model(half, lengths), model(full, lengths))
    # As on a GPU: with autocast, and without what is written for frozen states on a CPU.
    tuned = {state: values.requires_grad_() for state, values in full.items()}
    with torch.autocast("cpu", dtype=torch.bfloat16):
        fused = model.fusion(tuned, lengths)
    assert fused.dtype == torch.float32
    torch.testing.assert_close(fused, model.fusion(full, lengths), atol=0.1, rtol=0.1)


def test_hidden_states_that_are_trained_get_gradients(make):
    """As from a base model that is tuned along."""
    model = FusionModel(make(dropout=0.0), made_shape())
    given = {state: values.requires_grad_() for state, values in states(model, LENGTHS).items()}
    live = {state: given[state] for state in model.fusion.live()}
    model(live, torch.tensor(LENGTHS)).square().sum().backward()
    assert all(given[state].grad.abs().max() > 0 for state in model.fusion.live())
