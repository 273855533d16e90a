"""Configurations: impossible values, overrides from text, and what identifies a trial."""

import pytest

from adalayers.config import TrialConfig, parse_overrides, state_indices, with_overrides
from adalayers.errors import BadInput


@pytest.mark.parametrize(
    "overrides",
    [
        {"k": 0},
        {"k": 64, "heads": 7},
        {"cutoff": 1.0},
        {"cutoff": -0.1},
        {"dropout": 1.0},
        {"alpha": 0},
        {"alpha": float("nan")},
        {"lr": -1e-3},
        {"epochs": 0},
        {"batch_size": 2.5},
        {"mix": "single"},
        {"layer": 3},
        {"mix": "learnt"},
    ],
)
def test_impossible_values_are_bad_input_that_names_them(overrides):
    with pytest.raises(BadInput) as error:
        with_overrides(TrialConfig(), overrides)
    assert any(name in str(error.value) for name in overrides)


def test_unknown_hyperparameter_gets_near_names():
    with pytest.raises(BadInput, match="'entropy_weight'"):
        with_overrides(TrialConfig(), {"entropy_wieght": 0.1})
    with pytest.raises(BadInput, match=r"unknown hyperparameter 'drop_out'.*'dropout'"):
        parse_overrides(["drop_out=0.1"])


def test_text_becomes_the_fields_type():
    assert parse_overrides(
        ["k=32", "lr=1e-3", "positions=true", "mix_lr=none", "mix=uniform", "layer=2"]
    ) == {
        "k": 32,
        "lr": 1e-3,
        "positions": True,
        "mix_lr": None,
        "mix": "uniform",
        "layer": 2,
    }


@pytest.mark.parametrize("text", ["k", "k=many", "k=1.5", "positions=maybe", "lr=inf", "mix=learnt"])
def test_text_of_another_type_is_bad_input(text):
    with pytest.raises(BadInput):
        parse_overrides([text])


def test_two_values_of_one_name_are_bad_input():
    assert parse_overrides(["k=32", "k=32"]) == {"k": 32}
    with pytest.raises(BadInput, match="one value of k"):
        parse_overrides(["k=32", "k=64"])


def test_a_cutoff_is_checked_against_the_number_of_states():
    TrialConfig(cutoff=0.1).check_states(6)
    with pytest.raises(BadInput, match="below 1/6"):
        TrialConfig(cutoff=0.2).check_states(6)
    TrialConfig(mix="uniform", cutoff=0.2).check_states(6)


def test_what_a_variant_ignores_does_not_identify_it():
    base = TrialConfig()
    assert "mix_lr" in base.used("sequence")
    assert base.used("sequence") == TrialConfig(mix_lr=base.lr).used("sequence")
    uniform = TrialConfig(mix="uniform")
    assert uniform.used("token") == TrialConfig(
        mix="uniform", alpha=9.0, entropy_weight=0.1, mix_lr=0.5
    ).used("token")
    assert "feedforward" in base.used("token")
    assert "feedforward" not in base.used("sequence")
    assert base.used("sequence") == TrialConfig(cutoff_when="after-training").used("sequence")
    assert base.used("sequence") != TrialConfig(cutoff=0.1).used("sequence")


def test_hidden_states_by_choice():
    assert state_indices("layers", 4, "bert") == [1, 2, 3, 4]
    assert state_indices("with-embeddings", 4, "roberta") == [0, 1, 2, 3, 4]
    assert state_indices("as-released", 24, "roberta") == list(range(24))
    assert state_indices("as-released", 12, "bart") == list(range(13))
