"""Trials whose steps are taken as one: the numbers of each alone, to rounding."""

from unittest import mock

import numpy as np
import pandas as pd
import pytest
import torch

from adalayers.config import trial_config
from adalayers.models.several import FusionModels
from adalayers.storage.folder import Folder
from adalayers.tensors import ragged
from adalayers.training import members
from adalayers.training.members import Members
from adalayers.training.steps import SharedClock, in_turn
from adalayers.training.together import Together
from adalayers.training.trainer import Trainer, restored
from tests.benchmarks import operations
from tests.helpers.interrupting import Killed, killed_at
from tests.helpers.made_data import made_data

SMALL = {"k": 8, "heads": 2, "feedforward": 16, "batch_size": 16, "epochs": 2, "lr": 3e-3, "dropout": 0.0}
ALPHA_LAMBDA = [{"alpha": alpha, "entropy_weight": weight} for alpha in (1.0, 64.0) for weight in (0.0, 0.1)]
SINGLE_LAYER = [{"mix": "uniform"}, {"mix": "last"}, *({"mix": "single", "layer": layer} for layer in (1, 2))]
CUTOFF = [
    {"alpha": 64.0, "cutoff": 0.3, "cutoff_when": when, "mix_lr": 3e-2, "weight_decay": 0.1}
    for when in ("always", "after-training")
]
ARMS = [*ALPHA_LAMBDA, *SINGLE_LAYER, *CUTOFF]


def trained(arms, kind="sequence", *, several=None, data=None, folder=None, on_evaluation=lambda at: None):
    """Return what comes of trials that train in turn, of those that end."""
    data, clock, outcomes = data or made_data(kind, sizes=(256, 48, 48)), SharedClock(), {}

    def trial(number, arm):
        arm = {**SMALL, "seed": 1, **arm}
        seed, config = arm.pop("seed"), trial_config(**arm)
        work = None if folder is None else Folder(folder / str(number))
        device = torch.device("cpu")
        trainer = restored(config, data, seed=seed, device=device, checkpoint=work)
        outcomes[number] = yield from trainer.steps(on_evaluation, work, test=True)

    trials = [trial(number, arm) for number, arm in enumerate(arms)]
    if several is None:  # each by itself
        for one in trials:
            in_turn([one], clock, Together())
    else:
        in_turn(trials, clock, several)
    return [outcomes[number] for number in range(len(arms))]


def assert_close(outcome, wanted, tolerance):
    ours, theirs = pd.DataFrame(outcome.history), pd.DataFrame(wanted.history)
    pd.testing.assert_frame_equal(ours, theirs, rtol=tolerance, atol=tolerance)
    ours, theirs = (each.model.state_dict() for each in (outcome, wanted))
    for name in ours:
        if not name.endswith("in_proj_bias"):  # that of keys has no gradient but rounding
            torch.testing.assert_close(ours[name], theirs[name], rtol=tolerance, atol=tolerance, msg=name)


def assert_as_alone(arms, kind="sequence", tolerance=1e-4, *, wanted=None, several=Together, steps=None):
    """Compare trials that train together with each alone; of `steps` those of the group are left."""
    wanted = wanted or trained(arms, kind)
    if steps:
        steps.reset_mock()
    for outcome, own in zip(trained(arms, kind, several=several()), wanted, strict=True):
        assert outcome.row["epochs"] == own.row["epochs"]
        assert_close(outcome, own, tolerance)


@pytest.fixture
def double():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture
def gpu(monkeypatch):
    """A GPU's branches are taken."""
    monkeypatch.setattr(ragged, "on_gpu", mock.Mock(return_value=True))


@pytest.fixture
def steps(monkeypatch):
    """How often a step was taken as one."""
    counted, gradients = mock.Mock(), Members.gradients

    def noted(self, *given):
        counted(self)
        return gradients(self, *given)

    monkeypatch.setattr(Members, "gradients", noted)
    return counted


@pytest.mark.parametrize(("kind", "optimiser"), [("sequence", "adam"), ("token", "adamw")])
def test_all_arms_in_double_precision_equal_the_trials_alone(kind, optimiser, double, steps):
    arms = [{**arm, "optimiser": optimiser} for arm in ARMS]
    assert_as_alone(arms, kind, 1e-9, steps=steps)
    assert steps.call_count == 4 * 32, (
        "two epochs of 16 steps, of those that mix all states, and of each layer"
    )
    assert steps.call_args.args[0].model is not None


def test_each_members_rate_is_halved_at_its_own_time(double, steps):
    arms = [{"lr": 3e-2, "lr_patience": patience, "epochs": 4} for patience in (1, 2)]
    wanted = trained(arms)
    first, second = ([at["lr"] for at in own.history] for own in wanted)
    assert first != second
    assert_as_alone(arms, tolerance=1e-9, wanted=wanted, steps=steps)
    assert {len(call.args[0].trainers) for call in steps.mock_calls} == {2}


@pytest.mark.parametrize("kind", ["sequence", "token"])
def test_counted_dropout_is_the_same_alone_as_in_a_group_of_several_seeds(kind, double, gpu, steps):
    drops = {"dropout": 0.3, "projection_dropout": 0.2}
    arms = [{**arm, **drops, "seed": seed} for arm in (ARMS[1], ARMS[4]) for seed in (1, 2)]
    assert_as_alone(arms, kind, 1e-9, steps=steps)
    assert {len(call.args[0].trainers) for call in steps.mock_calls} == {4}


@pytest.mark.parametrize("kind", ["sequence", "token"])
def test_a_gpus_branches_give_the_same(kind, double, monkeypatch):
    arms = [{**arm, "seed": seed} for arm in ARMS[3:] for seed in (1, 2)]
    wanted = trained(arms, kind)
    monkeypatch.setattr(ragged, "on_gpu", mock.Mock(return_value=True))
    assert_as_alone(arms, kind, 1e-9, wanted=wanted)
    assert_as_alone(arms, kind, 1e-9, wanted=wanted, several=lambda: None)


@pytest.mark.parametrize(
    "head",
    [
        {"positions": True, "read_out": "linear"},
        {"dropout": 0.3, "projection_dropout": 0.2, "gelu_after_mix": True},
        {"train_projections": False, "normalise": False, "read_out": "mean", "classifier_layers": 2},
        {"read_out": "last-token"},
        {"read_out": "first-token"},
        {"schedule": "linear", "class_weights": "balanced"},
    ],
)
def test_heads_and_options_equal_the_trials_alone(head):
    arms = [{**arm, **head} for arm in (*ALPHA_LAMBDA[1:3], *SINGLE_LAYER[2:], CUTOFF[0])]
    assert_as_alone(arms)


@pytest.mark.parametrize("ps", [(0.3, 0.3), (0.3, 0.2), (0.0, 0.3)])
def test_dropout_of_words_is_drawn_as_alone_and_once_where_it_is_the_same(ps, steps):
    """And one without dropout takes it from no other."""
    arms = [{"dropout": p, "alpha": alpha} for p, alpha in zip(ps, (1.0, 8.0), strict=True)]
    assert_as_alone(arms, "token", steps=steps)
    assert {len(call.args[0].trainers) for call in steps.mock_calls} == {2 if len({*ps}) == 1 else 1}


def test_seeds_that_read_all_examples_at_once_drop_out_by_themselves(double, gpu):
    """A batch of all examples is the same for every seed, and what is dropped is not."""
    own = {"projection_dropout": 0.3, "train_examples": 3, "draw": 0}
    arms = [{**ARMS[1], **own, "seed": seed} for seed in (1, 2)]
    assert_as_alone(arms, tolerance=1e-9)


def test_members_that_stop_early_or_are_of_another_kind_leave_the_rest_as_it_is(steps):
    arms = [
        {"epochs": 6, "patience": 6},
        {"epochs": 6, "patience": 1, "lr": 0.1},
        {"epochs": 1, "alpha": 8.0},
        {"epochs": 6, "patience": 6, "fusion": "scalar-mix"},
        {"epochs": 6, "patience": 6, "mix": "uniform"},
    ]
    assert_as_alone(arms, steps=steps)
    assert {len(call.args[0].trainers) for call in steps.mock_calls} >= {2, 4}


def test_a_group_that_is_interrupted_goes_on_to_the_same_numbers(tmp_path):
    arms = [{**arm, "epochs": 5, "patience": 5} for arm in ARMS[:4]]
    whole = trained(arms, several=Together())
    with pytest.raises(Killed):
        trained(arms, several=Together(), folder=tmp_path, on_evaluation=killed_at(3))
    sizes = [file.stat().st_size for file in tmp_path.rglob("checkpoint.pt")]
    assert len(sizes) == len(arms)
    for outcome, wanted in zip(trained(arms, several=Together(), folder=tmp_path), whole, strict=True):
        assert_close(outcome, wanted, 1e-4)


def test_a_batch_of_a_group_beyond_memory_is_passed_in_parts(monkeypatch, capsys, double, gpu):
    """What is dropped does not depend on free memory: words of one example are dropped as before."""
    arms = [
        {**arm, "dropout": 0.3, "projection_dropout": 0.2, "seed": seed}
        for arm in ARMS[:2]
        for seed in (1, 2)
    ]
    alone = trained(arms)
    forward = FusionModels.forward

    def at_most_six(model, values, batches):
        examples, tokens = np.sum([(n, n * time) for n, time in batches.groups], axis=0)
        if examples > 6 if batches.training else tokens > 300:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
        return forward(model, values, batches)

    monkeypatch.setattr(FusionModels, "forward", at_most_six)
    assert_as_alone(arms, tolerance=1e-9, wanted=alone)
    said = capsys.readouterr().err
    assert "it is passed 4 at a time from now on" in said
    assert "it is passed 2 at a time from now on" in said, "where an evaluation needs more"


def test_hidden_states_are_computed_in_their_own_type(monkeypatch):
    """Models compute in bfloat16 on a GPU, the base model in its `backbone_dtype`."""
    monkeypatch.setattr(members, "reduced", lambda device: torch.autocast("cpu", dtype=torch.bfloat16))
    data, reduced = made_data(sizes=(64, 16, 16)), set()
    features = type(data.splits["train"].features)
    read = features.read

    def noted(self, *given):
        reduced.add(torch.is_autocast_enabled("cpu"))
        return read(self, *given)

    monkeypatch.setattr(features, "read", noted)
    trained(ARMS[:2], several=Together(), data=data)
    assert reduced == {False}


def test_a_member_that_diverges_changes_no_other(double):
    arms = [ARMS[1], {"lr": 1e300}, ARMS[5]]
    data = made_data(sizes=(64, 16, 16))
    losses = []

    def trial(arm):
        trainer = Trainer(trial_config(**{**SMALL, **arm}), data, seed=1, device=torch.device("cpu"))
        losses.append((yield from trainer.train_epoch()))

    alone = []
    for arm in (arms[0], arms[2]):
        in_turn([trial(arm)], SharedClock(), Together())
        alone.append(losses.pop())
    in_turn([trial(arm) for arm in arms], SharedClock(), Together())
    assert [losses[0], losses[2]] == pytest.approx(alone, rel=1e-9)


@pytest.mark.parametrize("variant", ["", *operations.VARIANTS])
def test_a_step_on_a_gpu_waits_for_nothing_and_asks_as_much_for_many_as_for_few(variant):
    settings = operations.VARIANTS.get(variant, {})
    # The first of a size makes what the others find made: positions of its lengths.
    _, few, many = (operations.of_step(size, 16, **settings) for size in (8, 8, 16))
    assert not few.waits
    assert not many.waits
    assert many.operations == few.operations
