"""CONTRIBUTING.md's hyperparameter that touches the step: one place, for a trial alone of any kind, and for a group."""

import pytest
import torch

from adalayers.config import _CONFIGS
from adalayers.fusion.layer_mix import LayerMix, LayerMixConfig
from adalayers.training import together
from adalayers.training.steps import SharedClock, in_turn
from adalayers.training.together import Together
from adalayers.training.trainer import Trainer
from tests.helpers.documented import snippet
from tests.helpers.made_data import made_data

SMALL = {"k": 8, "heads": 2, "batch_size": 16, "epochs": 2, "lr": 3e-3, "dropout": 0.0}
NORMS = (0.0, 0.01, 1e9)


@pytest.fixture
def config(monkeypatch):
    exec(snippet("hyperparameter"), added := {"__name__": "added"})
    _CONFIGS[LayerMixConfig.fusion] = LayerMixConfig
    monkeypatch.setattr(together, "Members", added["Members"])
    return added["LayerMixConfig"]


def trained(configs):
    """Return the losses of trials that train together, by epoch."""
    data, device = made_data(), torch.device("cpu")
    trainers = [Trainer(config, data, seed=1, device=device) for config in configs]
    outcomes = in_turn(
        [trial.steps(lambda evaluation: None) for trial in trainers], SharedClock(), Together()
    )
    return [[row["train/loss"] for row in outcome.history if "train/loss" in row] for outcome in outcomes]


@pytest.mark.parametrize("stacked", [True, False])
def test_a_group_of_several_values_gives_what_each_gives_alone(config, stacked, monkeypatch):
    if not stacked:
        monkeypatch.setattr(LayerMix, "alike", lambda self: None)
    configs = [config(**SMALL, gradient_norm=norm, optimiser="adamw") for norm in NORMS]
    group = trained(configs)
    for own, each in zip(group, configs, strict=True):
        assert own == pytest.approx(*trained([each]), rel=1e-5)
    assert group[2] == pytest.approx(group[0], rel=1e-6), "a bound beyond all norms changes nothing"
    assert group[1] != pytest.approx(group[0], rel=1e-6)
