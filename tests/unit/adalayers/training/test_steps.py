"""Trials that train in turn, a batch each: the base model is passed once for all, and no number changes."""

from unittest import mock

import pandas as pd
import pytest
import torch

from adalayers.backbones.backbone import Backbone
from adalayers.backbones.loading import shared_backbone
from adalayers.config import trial_config
from adalayers.data.prepare import prepare
from adalayers.request import DataRequest
from adalayers.training.steps import Request, SharedClock, in_turn
from adalayers.training.together import Together
from adalayers.training.trainer import Trainer
from tests.helpers.interrupting import assert_same

SMALL = {"heads": 2, "feedforward": 16, "batch_size": 16, "epochs": 3, "lr": 3e-3, "dropout": 0.3}
ARMS = (
    {"k": 8, "alpha": 64.0, "cutoff": 0.2, "lr": 3e-2, "patience": 1},
    {"k": 8, "mix": "single", "layer": 1, "projection_dropout": 0.2},
    {"k": 8, "mix": "uniform", "epochs": 1},
    {"fusion": "dwatt", "own_width": True, "read_out": "mean"},
    {"fusion": "head2toe"},
)
"""Among them some that stop early, read few layers, or train a second round."""


@pytest.fixture(scope="module")
def prepared(world):
    request = DataRequest(str(world["backbone"]), str(world["dataset"]), train_examples=48, eval_examples=16)
    return prepare(request)


def trained(prepared, arms):
    """Return what comes of arms trained in turn over live features, passes of the base model, and seconds."""
    data, clock, wall, outcomes = prepared.data("live"), SharedClock(), SharedClock(), {}
    for split in data.splits.values():
        split.features.shared = True
        shared_backbone(split.features.source, torch.device("cpu"))  # loading passes a batch of its own, once

    def trial(number, arm):
        trainer = Trainer(trial_config(**{**SMALL, **arm}), data, seed=1, device=torch.device("cpu"))
        trainer.clock = clock
        outcomes[number] = yield from trainer.steps(lambda evaluation: None, test=True)

    with mock.patch.object(Backbone, "forward", autospec=True, side_effect=Backbone.forward) as passes:
        in_turn([trial(number, arm) for number, arm in enumerate(arms)], clock, Together())
    return [outcomes[number] for number in range(len(arms))], passes.call_count, wall()


def test_trials_in_turn_are_the_same_as_alone_and_share_the_time_that_they_take(prepared):
    """To rounding where their mixes are computed as one, else bit for bit."""
    together, passes, seconds = trained(prepared, ARMS)
    alone = [trained(prepared, [arm]) for arm in ARMS]
    for arm, outcome, ((wanted,), *_) in zip(ARMS, together, alone, strict=True):
        if "fusion" in arm or "projection_dropout" in arm:
            assert_same(outcome, wanted)
        ours, theirs = pd.DataFrame(outcome.history), pd.DataFrame(wanted.history)
        pd.testing.assert_frame_equal(ours, theirs, rtol=1e-4, atol=1e-5)
    assert passes == max(of_one for _, of_one, _ in alone), "a batch was passed more than once"
    assert 0 < sum(outcome.row["seconds"] for outcome in together) <= seconds


def test_a_trial_that_is_behind_catches_up_before_the_others_go_on():
    order = []

    def trial(name, epochs):
        for epoch in epochs:
            order.append((name, epoch))
            yield Request(epoch=epoch)

    in_turn([trial("a", [1, 1, 2]), trial("b", [2, 2, 3])], SharedClock(), Together())
    assert order == [("a", 1), ("b", 2), ("a", 1), ("a", 2), ("b", 2), ("b", 3)]
