"""What every fusion promises, whichever it is, also on the features that trials read: live, stored or pooled."""

import contextlib
import dataclasses
import math

import pandas as pd
import pytest
import torch

from adalayers.config import FUSIONS, config_class, trial_config
from adalayers.data.prepare import prepare
from adalayers.errors import BadInput
from adalayers.models.model import FusionModel
from adalayers.models.saved import load, save
from adalayers.request import DataRequest
from adalayers.storage.folder import Folder
from adalayers.tensors.ragged import pooled
from adalayers.training.trainer import train
from tests.helpers.refusing import refused
from tests.helpers.states import made_shape, made_states

LENGTHS = torch.tensor([3, 5, 2])
TASKS = {head: made_shape(head) for head in ("sequence", "token")}
ON = [
    pytest.param(name, shape, id=f"{name} on a {head} task")
    for name in FUSIONS
    for head, shape in TASKS.items()
    if head in config_class(name).tasks
]
"""Each method on each kind of task that it has answers for."""


WIDTHS = [
    pytest.param(name, own, id=" ".join([name, *own]))
    for name in FUSIONS
    for own in ({}, {"own_width": True})
    if own.keys() <= config_class(name).__dataclass_fields__.keys()
]
"""Each method projected to k, and at the base model's width where it can."""


def made(name, shape, **own):
    torch.manual_seed(0)
    return FusionModel(config_class(name)(heads=2, dropout=0.0, feedforward=16, **own), shape)


def states(model):
    return made_states(model.fusion.states, int(LENGTHS.sum()), model.shape.width, seed=1)


UNANSWERED = [(name, head) for name in FUSIONS for head in TASKS if head not in config_class(name).tasks]

each = pytest.mark.parametrize("name", FUSIONS)


@pytest.mark.parametrize(("name", "shape"), ON)
def test_parameters_have_gradients_and_states_that_are_not_live_are_not_read(name, shape):
    """Each trainable parameter is in one group; a read-out of its own is known from the configuration."""
    model = made(name, shape)
    every = states(model)
    outputs = model(every, LENGTHS)
    loss = (outputs * torch.randn_like(outputs)).sum()
    if (penalty := model.fusion.penalty()) is not None:
        loss = loss + penalty
    loss.backward()
    grouped = [parameter for group in model.parameter_groups() for parameter in group.parameters]
    trainable = {id(p): n for n, p in model.named_parameters() if p.requires_grad}
    assert sorted(id(parameter) for parameter in grouped) == sorted(trainable)
    assert [trainable[id(p)] for p in grouped if p.grad is None or not p.grad.abs().max() > 0] == []

    assert (model.head is None) == model.config.own_read_out
    of_the_head = {"read_out", "heads", "dropout", "positions", "classifier_layers"}
    assert bool(of_the_head & set(model.config.used(shape))) != model.config.own_read_out

    live = {state: every[state] for state in model.eval().fusion.live()}
    with torch.no_grad():
        whole = model(every, LENGTHS)
        torch.testing.assert_close(model(live, LENGTHS), whole)
        gone = model.fusion.live()[0]
        with model.fusion.without([gone]):
            assert gone not in model.fusion.live()
            rest = {state: every[state] for state in model.fusion.live()}
            assert not torch.equal(model(rest, LENGTHS), whole)
        assert model.fusion.live() == list(live)


POOLS_FIRST, LINEAR = ("head2toe", "late-fusion", "layer-set", "layer-graph"), ("scalar-mix", "concat")


@pytest.mark.parametrize("read_out", ["attention", "linear", "mean", "first-token", "last-token"])
@pytest.mark.parametrize(("name", "own"), WIDTHS)
def test_what_is_pooled_before_it_is_read_is_the_same_model(name, read_out, own):
    """Where a configuration says so; and it never does where gelu, a norm or other tokens come before the pool."""
    kind, shape = config_class(name), TASKS["sequence"]
    config = kind(heads=2, read_out=read_out, **own)
    linear = read_out == "mean" and (name == "concat" or (name in LINEAR and bool(own)))
    at_one_token = kind.token_by_token and read_out in ("first-token", "last-token")
    pooling = config.pooling(shape)
    assert (pooling is not None) == (name in POOLS_FIRST or linear or at_one_token)
    assert config.pooling(TASKS["token"]) is None
    assert name in POOLS_FIRST or dataclasses.replace(config, positions=True).pooling(shape) is None
    with contextlib.suppress(BadInput):
        config.check(shape)
        if pooling is not None:
            model = FusionModel(config, shape).eval()
            every = states(model)
            few = {state: pooled(values, LENGTHS, pooling) for state, values in every.items()}
            torch.testing.assert_close(model(few, torch.ones_like(LENGTHS)), model(every, LENGTHS))


@each
def test_a_missing_state_is_named_and_without_any_it_still_answers(name):
    model = made(name, made_shape()).eval()
    every, last = states(model), model.fusion.live()[-1]
    with pytest.raises(KeyError, match=f"number={last.number}"):
        model({state: every[state] for state in every if state != last}, LENGTHS)
    whole = model(every, LENGTHS)
    with torch.no_grad(), model.fusion.without(model.fusion.states):
        assert model.fusion.live() == []
        assert torch.isfinite(model({}, LENGTHS)).all()
        assert model({}, LENGTHS).shape == whole.shape
        if not (model.fusion.of_texts or model.config.own_read_out):
            assert torch.equal(model.fusion({}, LENGTHS), torch.zeros(10, model.fusion.width))


@pytest.mark.parametrize(("name", "head"), UNANSWERED)
def test_a_task_without_answers_is_refused(name, head):
    refused(f"tasks with a label per .*, got fusion={name}; change", made, name, TASKS[head])


@each
def test_saved_parts_load_to_the_same_outputs_and_what_is_noted_is_numbers_by_name(name, tmp_path):
    model = made(name, made_shape())
    for noted in (model.fusion.diagnostics(), model.fusion.summary()):
        assert all("/" in key and math.isfinite(value) for key, value in noted.items()), noted
    model.fusion.finish()
    save(model.eval(), Folder(tmp_path), about={})
    again, given = load(tmp_path), states(model)
    with torch.no_grad():
        assert torch.equal(again(given, LENGTHS), model(given, LENGTHS))


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
def test_live_stored_and_pooled_features_train_to_the_same_numbers(config, pooling, world, tmp_path):
    """Views among them; and one configuration that reads tokens has tokens stored for all."""
    few = {"train_examples": 48, "eval_examples": 16, "test_examples": 16}
    prepared = prepare(DataRequest(str(world["backbone"]), str(world["dataset"]), precision="float32", **few))
    small = {"heads": 2, "feedforward": 16, "batch_size": 16, "lr": 3e-3}
    config = trial_config(**small, **config, epochs=2, dropout=0.3, train_examples=24)
    whole, few = (prepared.reading([config], pool=pool) for pool in (False, True))
    assert (whole.source.pooling, few.source.pooling) == (None, pooling)
    assert pooling is None or few.store_bytes < whole.store_bytes / 2
    assert prepared.reading([config, trial_config()]).source.pooling is None
    data = [whole.data("live"), *(case.data("disk", cache=tmp_path) for case in (whole, few))]
    live, *others = (pd.DataFrame(train(config, own, seed=0).history) for own in data)
    for other in others:
        pd.testing.assert_frame_equal(live, other, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(("name", "own"), WIDTHS)
def test_a_sequence_depends_on_no_other_of_its_batch(name, own):
    model = made(name, made_shape(), **own).eval()
    given = states(model)
    with torch.no_grad():
        batch = model(given, LENGTHS)
        for row, (length, end) in enumerate(zip(LENGTHS, LENGTHS.cumsum(0), strict=True)):
            alone = model({s: z[end - length : end] for s, z in given.items()}, length.unsqueeze(0))
            torch.testing.assert_close(alone[0], batch[row], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(("name", "own"), WIDTHS)
def test_half_precision_states_are_read_in_float32_and_those_that_are_trained_get_gradients(name, own):
    model = made(name, made_shape(), **own).eval()
    half = {state: values.half() for state, values in states(model).items()}
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
