"""Configurations: impossible values, overrides from text, and what identifies a trial."""

import dataclasses
import typing

import pytest

from adalayers import config as configs
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.fusion.scalar_mix import ScalarMixConfig
from adalayers.states import Shape, State, Stream, chosen_states
from tests.helpers.refusing import refused
from tests.helpers.states import encoder, made_shape

IMPOSSIBLE = {"k": 0, "cutoff": 1.0, "dropout": 1.0, "read_out": "max", "alpha": float("nan")}
IMPOSSIBLE |= {"lr": -1e-3, "epochs": 0, "batch_size": 2.5, "hidden_states": f"layers:{'9' * 5000}"}


def test_impossible_values_are_bad_input_that_names_them():
    for name, value in IMPOSSIBLE.items():
        refused(name, configs.with_overrides, LayerMixConfig(), {name: value})


def test_text_becomes_the_fields_type():
    texts = f"k=32 k=32 lr=1e-3 positions=true mix_lr=none mix=uniform layer=2 draw={2**63 - 1}"
    wanted = {"k": 32, "lr": 1e-3, "positions": True, "mix_lr": None, "mix": "uniform", "layer": 2}
    assert configs.parse_overrides(texts.split()) == wanted | {"draw": 2**63 - 1}, (
        "beyond a float's digits too"
    )


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ("k", "KEY=VALUE"),
        ("k=1.5", "a whole number"),
        ("positions=maybe", "true or false"),
        ("lr=inf", "a finite number"),
        ("mix=learnt", "unknown value of mix"),
        ("drop_out=0.1", r"unknown hyperparameter 'drop_out'.*'dropout'"),
        ("k=32 k=64", "one value of k"),
    ],
)
def test_text_of_another_type_and_two_values_are_bad_input(texts, said):
    refused(said, configs.parse_overrides, texts.split())


LINEAR = {"read_out": "linear"}


@pytest.mark.parametrize(
    ("head", "base", "changes", "same"),
    [
        ("sequence", {}, {"mix_lr": 1e-3, "feedforward": 16, "encoder_layers": 3}, True),  # mix_lr is lr
        ("sequence", {}, {"cutoff_when": "after-training", "draw": 3, "warmup": 0.5}, True),
        ("token", {"mix": "uniform"}, {"alpha": 9.0, "entropy_weight": 0.1, "mix_lr": 0.5}, True),
        ("token", {"mix": "uniform"}, {"cutoff": 0.5}, True),
        ("token", LINEAR, {"heads": 7, "encoder_layers": 3, "feedforward": 16}, True),
        ("token", {}, {"feedforward": 16}, False),
        ("sequence", {}, {"cutoff": 0.1}, False),
        ("sequence", LINEAR, {"dropout": 0.3}, False),
        ("sequence", {"train_examples": 10}, {"draw": 3}, False),
    ],
)
def test_what_a_variant_ignores_does_not_identify_it(head, base, changes, same):
    shape, config, other = made_shape(head), LayerMixConfig(**base), LayerMixConfig(**base, **changes)
    other.check(shape)
    assert (other.used(shape) == config.used(shape)) == same
    assert (other.identity(shape) == config.identity(shape)) == same


@pytest.mark.parametrize("config", [LayerMixConfig, ScalarMixConfig])
def test_single_is_one_of_the_layers_read_and_on_the_last_one_it_is_last(config):
    shape = made_shape(layers=4)
    single, last = config(mix="single", layer=4), config(mix="last")
    assert single.identity(shape) == last.identity(shape)
    assert single.used(shape) == last.used(shape)
    assert config(mix="single", layer=3).identity(shape) != last.identity(shape)
    assert config(mix="single", layer=4).identity(made_shape(layers=5)) != last.identity(shape)
    refused(r"layer to be one of \[1, 2, 3, 4\], got layer=5", config(mix="single", layer=5).check, shape)
    for wrong in ({"mix": "single"}, {"layer": 3}):
        refused("layer to be a hidden state for mix=single alone", config, **wrong)


def test_a_field_that_is_added_with_a_default_renames_no_trial():
    shape = made_shape()

    @dataclasses.dataclass(frozen=True)
    class Grown(LayerMixConfig):
        extra: float = 0.5
        former: int = dataclasses.field(default=3, metadata={"absent": 2})

    before = LayerMixConfig(alpha=8.0).identity(shape)
    assert Grown(alpha=8.0, former=2).identity(shape) == before
    assert Grown(alpha=8.0, former=2, extra=1.0).identity(shape) == {**before, "extra": 1.0}
    # Its default changed from 2: what was run with 2 keeps its name, what is run with 3 gets one of its own.
    assert Grown(alpha=8.0).identity(shape) == {**before, "former": 3}


FIRST_DEFAULTS = """
hidden_states=layers stream=encoder final_norm=True train_examples=None draw=None read_out=attention
word_position=first-token classifier_layers=1 heads=8 dropout=0.1 positions=False encoder_layers=1
feedforward=2048 base_model=frozen base_layers=all adapter_width=64 adapter_sharing=layer
adapter_norms=False base_lr=None optimiser=adam lr=0.001 weight_decay=0.001 schedule=plateau warmup=0.1
lr_patience=2 batch_size=32 epochs=20 evaluate_every=1 patience=5 class_weights=none mix=learned
layer=None alpha=1.0 entropy_weight=0.0 entropy_scale=nats cutoff=0.0 cutoff_when=always
train_projections=True k=64 normalise=True projection_dropout=0.0 gelu_after_mix=False mix_lr=None
"""


def test_defaults_are_what_identities_of_earlier_trials_rest_on():
    """Whoever changes one keeps the first that there ever was in the field's metadata, as `absent`."""
    fields = dataclasses.fields(LayerMixConfig)
    defaults = {f"{field.name}={field.metadata.get('absent', field.default)}" for field in fields}
    assert defaults == set(FIRST_DEFAULTS.split())


def test_hyperparameters_of_one_name_are_of_one_type_in_all_methods():
    every = configs.hyperparameters()
    for kind in map(configs.config_class, configs.FUSIONS):
        hints = typing.get_type_hints(kind)
        for field in dataclasses.fields(kind):
            assert hints[field.name] == every[field.name], (kind.fusion, field.name)


def test_another_fusion_keeps_what_the_two_share():
    mix = LayerMixConfig(k=32, lr=0.01, alpha=9.0)
    config = configs.with_overrides(mix, {"fusion": "scalar-mix", "dropout": 0.2})
    assert config == ScalarMixConfig(k=32, lr=0.01, dropout=0.2)
    assert configs.trial_config(**configs.as_values(config)) == config
    refused("alpha", configs.with_overrides, config, {"alpha": 1.0})
    refused(r"unknown fusion 'scalar-mixx'.*'scalar-mix'", configs.trial_config, fusion="scalar-mixx")


@pytest.mark.parametrize(
    ("choice", "layers", "family", "numbers"),
    [
        ("layers", 4, "bert", [1, 2, 3, 4]),
        ("with-embeddings", 4, "roberta", [0, 1, 2, 3, 4]),
        ("as-released", 24, "roberta", [*range(24)]),
        ("layers:6,1,12", 12, "bart", [1, 6, 12]),
        ("lower-half", 5, "bert", [1, 2, 3]),
        ("upper-half", 5, "bert", [3, 4, 5]),
    ],
)
def test_hidden_states_by_choice(choice, layers, family, numbers):
    assert chosen_states(choice, made_shape(layers=layers, family=family)) == encoder(*numbers)


def test_the_last_state_is_read_behind_the_final_norm_unless_asked():
    t5 = Shape("sequence", 2, (Stream("encoder", 2, final_norm=True),), 8, "t5")
    assert chosen_states("layers", t5) == encoder(1, 2)
    assert chosen_states("layers", t5, final_norm=False) == [State("encoder", 1), State("encoder", 2, True)]
    assert "final_norm" in LayerMixConfig().used(t5)
    assert chosen_states("layers", made_shape(layers=2), final_norm=False) == encoder(1, 2)
    assert "final_norm" not in LayerMixConfig().used(made_shape())
    refused(r"0\.\.2, got 6", chosen_states, "layers:6", t5)
    for wrong in ("layer", "layers:", "layers:a", "layers:1;2"):
        refused("hidden_states", LayerMixConfig, hidden_states=wrong)


def test_a_choice_of_hidden_states_has_one_name():
    def names(*choices):
        made = [configs.trial_config(hidden_states=each) for each in choices]
        assert len({str(config.identity(shape)) for config in made}) == 1
        return {config.resolved(shape)["hidden_states"] for config in made}

    shape = made_shape(layers=3)
    assert names("layers", "layers:1,2,3") == {"layers"}
    assert names("layers:0,1,2,3", "as-released") == {"with-embeddings"}
    assert names("layers:1,3") == {"layers:1,3"}
    shape = Shape("sequence", 2, (Stream("encoder", 3, embeddings=False),), 8, "states")
    assert names("layers:1,2,3", "layers") == {"layers"}
    assert names("lower-half") == {"lower-half"}
