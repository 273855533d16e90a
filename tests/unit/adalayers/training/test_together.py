"""Trials whose steps are taken as one: the numbers of each alone, to rounding."""

import contextlib
import time
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import torch

from adalayers.backbones.backbone import Backbone
from adalayers.backbones.loading import shared_backbone
from adalayers.config import trial_config
from adalayers.data.prepare import prepare
from adalayers.models.several import FusionModels
from adalayers.request import DataRequest
from adalayers.storage.folder import Folder
from adalayers.tensors import ragged
from adalayers.training import batches, members
from adalayers.training.members import Members
from adalayers.training.together import Together
from adalayers.training.trainer import Diverged, restored
from tests.benchmarks import operations
from tests.helpers.interrupting import Killed, assert_same, killed_at
from tests.helpers.made_data import MadeFeatures, made_data

CPU = torch.device("cpu")
SMALL = {"k": 8, "heads": 2, "feedforward": 16, "batch_size": 16, "epochs": 2, "lr": 3e-3, "dropout": 0.0}
ALPHA_LAMBDA = [{"alpha": alpha, "entropy_weight": weight} for alpha in (1.0, 64.0) for weight in (0.0, 0.1)]
SINGLE_LAYER = [{"mix": "uniform"}, {"mix": "last"}, *({"mix": "single", "layer": layer} for layer in (1, 2))]
CUTOFF = [
    {"alpha": 64.0, "cutoff": 0.3, "cutoff_when": when, "mix_lr": 3e-2, "weight_decay": 0.1}
    for when in ("always", "after-training")
]
ARMS = [*ALPHA_LAMBDA, *SINGLE_LAYER, *CUTOFF]


def trained(arms, kind="sequence", *, several=None, data=None, folder=None, on_evaluation=lambda at: None):
    """Return what comes of trials that train in turn, None of those that diverge."""
    data, outcomes = data or made_data(kind, sizes=(128, 48, 48)), {}

    def trial(number, arm):
        arm = {**SMALL, "seed": 1, **arm}
        seed = arm.pop("seed")
        config = trial_config(**{name: value for name, value in arm.items() if value is not None})
        work = None if folder is None else Folder(folder / str(number))
        trainer = restored(config, data, seed=seed, device=CPU, checkpoint=work)
        with contextlib.suppress(Diverged):
            outcomes[number] = yield from trainer.steps(on_evaluation, work, test=True)

    trials = [trial(number, arm) for number, arm in enumerate(arms)]
    for together in [trials] if several else [[one] for one in trials]:
        (several or Together()).run(together)
    return [outcomes.get(number) for number in range(len(arms))]


def assert_close(outcomes, wanted, tolerance=1e-4):
    for outcome, own in zip(outcomes, wanted, strict=True):
        assert outcome.row["epochs"] == own.row["epochs"]
        ours, theirs = pd.DataFrame(outcome.history), pd.DataFrame(own.history)
        pd.testing.assert_frame_equal(ours, theirs, rtol=tolerance, atol=tolerance)
        ours, theirs = (each.model.state_dict() for each in (outcome, own))
        for name in ours:
            if not name.endswith("in_proj_bias"):  # that of keys has no gradient but rounding
                torch.testing.assert_close(ours[name], theirs[name], rtol=tolerance, atol=tolerance, msg=name)


def assert_as_alone(arms, kind="sequence", tolerance=1e-4, *, wanted=None, steps=None):
    """Compare trials that train together with each alone; return how many were in each step."""
    wanted = wanted or trained(arms, kind)
    if steps:
        steps.reset_mock()
    assert_close(trained(arms, kind, several=Together()), wanted, tolerance)
    return {len(call.args[0].trainers) for call in steps.mock_calls} if steps else set()


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
def steps():
    """How often a step was taken as one."""
    with mock.patch.object(Members, "gradients", autospec=True, side_effect=Members.gradients) as counted:
        yield counted


@pytest.mark.parametrize(("kind", "optimiser"), [("sequence", "adam"), ("token", "adamw")])
def test_all_arms_in_double_precision_equal_the_trials_alone(kind, optimiser, double, steps):
    assert_as_alone([{**arm, "optimiser": optimiser} for arm in ARMS], kind, 1e-9, steps=steps)
    assert steps.call_count == 4 * 16, "two epochs of 8, of those that mix all states, and of each layer"
    assert steps.call_args.args[0].model is not None


@pytest.mark.parametrize("kind", ["sequence", "token"])
def test_what_is_computed_as_one_is_the_model_that_is_kept(kind, double, monkeypatch):
    """Both sides of all other comparisons here are computed so, a trial alone too."""
    odd = {"normalise": False, "gelu_after_mix": True, "positions": True, "entropy_scale": "as-released"}
    arms = [ARMS[3], {**ARMS[3], **odd}, SINGLE_LAYER[2], CUTOFF[0]]
    wanted = trained(arms, kind)
    for module in ("members", "together"):
        monkeypatch.setattr(f"adalayers.training.{module}.alike", lambda model: None)
    assert_close(trained(arms, kind), wanted, 1e-9)


def test_each_members_rate_is_halved_at_its_own_time(double, steps):
    arms = [{"lr": 3e-2, "lr_patience": patience, "epochs": 4} for patience in (1, 2)]
    wanted = trained(arms)
    first, second = ([at["lr"] for at in own.history] for own in wanted)
    assert first != second
    assert assert_as_alone(arms, tolerance=1e-9, wanted=wanted, steps=steps) == {2}


def test_counted_dropout_is_the_same_alone_as_in_a_group_of_several_seeds(double, gpu, steps):
    drops = {"dropout": 0.3, "projection_dropout": 0.2}
    arms = [{**arm, **drops, "seed": seed} for arm in (ARMS[1], ARMS[4]) for seed in (1, 2)]
    with mock.patch.object(batches, "row_keys", side_effect=batches.row_keys) as keys:
        assert assert_as_alone(arms, "token", 1e-9, steps=steps) == {4}
    by = {call.args[0] for call in keys.call_args_list}
    assert by == {(seed, 1 + step // 8, step) for seed in (1, 2) for step in range(16)}


@pytest.mark.parametrize("kind", ["sequence", "token"])
def test_a_gpus_branches_give_the_same(kind, double, monkeypatch):
    arms = [{**arm, "seed": seed} for arm in (ARMS[3], *SINGLE_LAYER[:3], *CUTOFF) for seed in (1, 2)]
    wanted = trained(arms, kind)
    monkeypatch.setattr(ragged, "on_gpu", mock.Mock(return_value=True))
    assert_as_alone(arms, kind, 1e-9, wanted=wanted)
    for arm, own in zip(arms[::4], wanted[::4], strict=True):
        assert_as_alone([arm], kind, 1e-9, wanted=[own])


@pytest.mark.parametrize(
    "head",
    [
        {"dropout": 0.3, "projection_dropout": 0.2, "gelu_after_mix": True, "read_out": "linear"},
        {"train_projections": False, "normalise": False, "read_out": "mean", "classifier_layers": 2},
        {"positions": True, "read_out": "last-token"},
        {"read_out": "first-token", "schedule": "linear", "class_weights": "balanced"},
    ],
)
def test_heads_and_options_equal_the_trials_alone(head):
    assert_as_alone([{**arm, **head} for arm in (*ALPHA_LAMBDA[1:3], *SINGLE_LAYER[2:], CUTOFF[0])])


@pytest.mark.parametrize("ps", [(0.3, 0.3), (0.3, 0.2), (0.0, 0.3)])
def test_dropout_of_words_is_drawn_as_alone_and_once_where_it_is_the_same(ps, steps):
    """And one without dropout takes it from no other."""
    arms = [{"dropout": p, "alpha": alpha} for p, alpha in zip(ps, (1.0, 8.0), strict=True)]
    assert assert_as_alone(arms, "token", steps=steps) == {2 if len({*ps}) == 1 else 1}


def test_seeds_that_read_all_examples_at_once_drop_out_by_themselves(double, gpu):
    """A batch of all examples is the same for every seed, and what is dropped is not."""
    own = {"projection_dropout": 0.3, "train_examples": 3, "draw": 0}
    assert_as_alone([{**ARMS[1], **own, "seed": seed} for seed in (1, 2)], tolerance=1e-9)


def test_members_that_stop_early_diverge_or_are_of_another_kind_leave_the_rest_as_it_is(steps):
    arms = [
        {"epochs": 12, "patience": 12},
        {"epochs": 4, "patience": 1, "lr": 0.1},
        {"epochs": 1, "alpha": 8.0},
        {"epochs": 4, "fusion": "scalar-mix"},
        {"epochs": 4, "mix": "uniform"},
        {"epochs": 4, "lr": 1e30},
        {"epochs": 4, "lr": 1e30, "cutoff": 0.1},
    ]
    wanted = trained(arms)
    steps.reset_mock()
    *others, first, second = trained(arms, several=Together())
    assert first is second is wanted.pop() is wanted.pop() is None
    assert_close(others, wanted)
    assert {len(call.args[0].trainers) for call in steps.mock_calls} >= {2, 6}
    assert others[2].row["seconds"] < others[0].row["seconds"] / 2, "it waited for the others for long"


@pytest.mark.parametrize("other", [{"class_weights": "balanced"}, {"batch_size": 8}])
def test_trials_that_read_or_weigh_examples_otherwise_take_steps_of_their_own(other, steps):
    assert assert_as_alone([{}, other], "token", steps=steps) == {1}


def test_a_group_that_is_interrupted_goes_on_to_the_same_numbers(tmp_path):
    arms = [{**arm, "epochs": 5, "patience": 5} for arm in ARMS[:4]]
    whole = trained(arms, several=Together())
    with pytest.raises(Killed):
        trained(arms, several=Together(), folder=tmp_path, on_evaluation=killed_at(3))
    assert len([*tmp_path.rglob("checkpoint.pt")]) == len(arms)
    assert_close(trained(arms, several=Together(), folder=tmp_path), whole)


def test_a_batch_of_a_group_beyond_memory_is_passed_in_parts(monkeypatch, capsys, double, gpu):
    """What is dropped does not depend on free memory: words of one example are dropped as before."""
    drops = {"dropout": 0.3, "projection_dropout": 0.2}
    arms = [{**arm, **drops, "seed": seed} for arm in ARMS[:2] for seed in (1, 2)]
    alone, forward = trained(arms), FusionModels.forward

    def at_most_six(model, values, batches):
        examples, tokens = np.sum([(n, n * time) for n, time in batches.groups.sizes], axis=0)
        if examples > 6 if batches.training else tokens > 60:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
        return forward(model, values, batches)

    monkeypatch.setattr(FusionModels, "forward", at_most_six)
    assert_as_alone(arms, tolerance=1e-9, wanted=alone)
    said = capsys.readouterr().err
    assert "it is passed 4 at a time from now on" in said
    assert "a batch of 48: it is passed 6 at a time from now on" in said, "where an evaluation needs more"


def test_hidden_states_are_computed_in_their_own_type(monkeypatch):
    """Models compute in bfloat16 on a GPU, the base model in its `backbone_dtype`."""
    monkeypatch.setattr(members, "reduced", lambda device: torch.autocast("cpu", dtype=torch.bfloat16))
    reduced, read = set(), MadeFeatures.read

    def noted(self, *given):
        reduced.add(torch.is_autocast_enabled("cpu"))
        return read(self, *given)

    monkeypatch.setattr(MadeFeatures, "read", noted)
    trained(ARMS[:2], several=Together())
    assert reduced == {False}


LIVE = [
    {"alpha": 64.0, "cutoff": 0.2, "lr": 3e-2, "patience": 1, "dropout": 0.3},
    {"mix": "single", "layer": 1, "projection_dropout": 0.2},
    {"mix": "uniform", "epochs": 1},
    {"fusion": "dwatt", "own_width": True, "read_out": "mean", "dropout": 0.3},
    {"fusion": "head2toe", "k": None},
]
"""Among them some that stop early, read few layers, or train a second round."""


def test_over_live_features_the_base_model_is_passed_once_for_all_and_the_time_is_shared(world):
    """The same as alone, to rounding where mixes are computed as one, else bit for bit."""
    request = DataRequest(str(world["backbone"]), str(world["dataset"]), train_examples=48, eval_examples=16)
    prepared = prepare(request)

    def passed(arms):
        data = prepared.data("live")
        for split in data.splits.values():
            split.features.shared = True
            shared_backbone(split.features.source, CPU)  # loading passes a batch of its own, once
        with mock.patch.object(Backbone, "forward", autospec=True, side_effect=Backbone.forward) as passes:
            outcomes = trained([{"epochs": 3, **arm} for arm in arms], data=data, several=Together())
        return outcomes, passes.call_count

    began = time.monotonic()
    together, passes = passed(LIVE)
    assert 0 < sum(outcome.row["seconds"] for outcome in together) <= time.monotonic() - began
    alone = [passed([arm]) for arm in LIVE]
    for arm, outcome, ((wanted,), _) in zip(LIVE, together, alone, strict=True):
        assert_close([outcome], [wanted])
        if "fusion" in arm or "projection_dropout" in arm:
            assert_same(outcome, wanted)
    assert passes == max(of_one for _, of_one in alone), "a batch was passed more than once"


@pytest.mark.parametrize("variant", ["", *operations.VARIANTS])
def test_a_step_on_a_gpu_waits_for_nothing_and_asks_as_much_for_many_as_for_few(variant):
    settings = operations.VARIANTS.get(variant, {})
    # The first of a size makes what the others find made: positions of its lengths.
    _, few, many = (operations.of_step(size, 16, **settings) for size in (8, 8, 16))
    assert not few.waits
    assert not many.waits
    assert many.operations == few.operations
