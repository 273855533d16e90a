"""Configurations: impossible values, overrides from text, and what identifies a trial."""

import dataclasses
import typing

import pytest

from adalayers import config as configs
from adalayers.errors import BadInput
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.fusion.scalar_mix import ScalarMixConfig
from adalayers.states import Shape, State, Stream, chosen_states
from tests.helpers.states import encoder, made_shape

IMPOSSIBLE = {"k": 0, "heads": 7, "cutoff": 1.0, "dropout": 1.0, "read_out": "max", "alpha": float("nan")}
IMPOSSIBLE |= {"lr": -1e-3, "epochs": 0, "batch_size": 2.5, "hidden_states": f"layers:{'9' * 5000}"}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_impossible_values_are_bad_input_that_names_them(name):
    with pytest.raises(BadInput, match=name):
        configs.with_overrides(LayerMixConfig(), {name: IMPOSSIBLE[name]})


def test_unknown_hyperparameter_gets_near_names():
    with pytest.raises(BadInput, match="'entropy_weight'"):
        configs.with_overrides(LayerMixConfig(), {"entropy_wieght": 0.1})


def test_text_becomes_the_fields_type():
    typed = configs.parse_overrides(
        ["k=32", "k=32", "lr=1e-3", "positions=true", "mix_lr=none", "mix=uniform", "layer=2"]
    )
    assert typed == {"k": 32, "lr": 1e-3, "positions": True, "mix_lr": None, "mix": "uniform", "layer": 2}


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ("k", "KEY=VALUE"),
        ("k=many", "a whole number"),
        ("k=1.5", "a whole number"),
        ("positions=maybe", "true or false"),
        ("lr=inf", "a finite number"),
        ("mix=learnt", "unknown value of mix"),
        ("drop_out=0.1", r"unknown hyperparameter 'drop_out'.*'dropout'"),
        ("k=32 k=64", "one value of k"),
    ],
)
def test_text_of_another_type_and_two_values_are_bad_input(texts, said):
    with pytest.raises(BadInput, match=said):
        configs.parse_overrides(texts.split())


def test_a_cutoff_is_checked_against_the_number_of_states():
    shape = made_shape(layers=6)
    LayerMixConfig(cutoff=0.1).check(shape)
    with pytest.raises(BadInput, match="below 1/6"):
        LayerMixConfig(cutoff=0.2).check(shape)
    LayerMixConfig(mix="uniform", cutoff=0.2).check(shape)


def test_what_a_variant_ignores_does_not_identify_it():
    base, sequence, token = LayerMixConfig(), made_shape(), made_shape("token")
    assert "mix_lr" in base.used(sequence)
    assert base.used(sequence) == LayerMixConfig(mix_lr=base.lr).used(sequence)
    assert base.identity(sequence) == LayerMixConfig(mix_lr=base.lr).identity(sequence)
    uniform = LayerMixConfig(mix="uniform")
    other = LayerMixConfig(mix="uniform", alpha=9.0, entropy_weight=0.1, mix_lr=0.5)
    assert uniform.used(token) == other.used(token)
    assert uniform.identity(token) == other.identity(token)
    assert "feedforward" in base.used(token)
    assert "feedforward" not in base.used(sequence)
    assert base.used(sequence) == LayerMixConfig(cutoff_when="after-training").used(sequence)
    assert base.used(sequence) != LayerMixConfig(cutoff=0.1).used(sequence)
    assert base.used(sequence) == LayerMixConfig(draw=3, warmup=0.5, final_norm=False).used(sequence)
    assert "draw" in LayerMixConfig(train_examples=10).used(sequence)


def test_a_linear_read_out_has_no_attention_to_set_up():
    shapes = made_shape(), made_shape("token")
    linear = LayerMixConfig(read_out="linear")
    other = LayerMixConfig(read_out="linear", k=linear.k, heads=7, encoder_layers=3, feedforward=16)
    for shape in shapes:
        other.check(shape)
        assert linear.identity(shape) == other.identity(shape)
        assert linear.identity(shape) != LayerMixConfig().identity(shape)
        assert linear.identity(shape) != LayerMixConfig(read_out="linear", dropout=0.3).identity(shape)


@pytest.mark.parametrize("config", [LayerMixConfig, ScalarMixConfig])
def test_single_is_one_of_the_layers_read_and_on_the_last_one_it_is_last(config):
    shape = made_shape(layers=4)
    single, last = config(mix="single", layer=4), config(mix="last")
    assert single.identity(shape) == last.identity(shape)
    assert single.used(shape) == last.used(shape)
    assert config(mix="single", layer=3).identity(shape) != last.identity(shape)
    assert config(mix="single", layer=4).identity(made_shape(layers=5)) != last.identity(shape)
    with pytest.raises(BadInput, match=r"layer to be one of \[1, 2, 3, 4\], got layer=5"):
        config(mix="single", layer=5).check(shape)
    for wrong in ({"mix": "single"}, {"layer": 3}):
        with pytest.raises(BadInput, match="layer to be a hidden state for mix=single alone"):
            config(**wrong)


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
    defaults = {
        f"{field.name}={field.metadata.get('absent', field.default)}"
        for field in dataclasses.fields(LayerMixConfig)
    }
    assert defaults == set(FIRST_DEFAULTS.split())


def test_hyperparameters_of_one_name_are_of_one_type_in_all_methods():
    every = configs.hyperparameters()
    for kind in map(configs.config_class, configs.FUSIONS):
        hints = typing.get_type_hints(kind)
        for field in dataclasses.fields(kind):
            assert hints[field.name] == every[field.name], (kind.fusion, field.name)


def test_another_fusion_keeps_what_the_two_share():
    @dataclasses.dataclass(frozen=True)
    class Mean(configs.TrialConfig):
        fusion: typing.ClassVar[str] = "test-mean"
        k: int = 8

        def width(self, shape):
            return self.k

        def build(self, shape):
            raise NotImplementedError

    config = configs.with_overrides(
        LayerMixConfig(k=32, lr=0.01, alpha=9.0), {"fusion": "test-mean", "dropout": 0.2}
    )
    assert config == Mean(k=32, lr=0.01, dropout=0.2)
    assert configs.trial_config(**configs.as_values(config)) == config
    with pytest.raises(BadInput, match="alpha"):
        configs.with_overrides(config, {"alpha": 1.0})
    with pytest.raises(BadInput, match=r"unknown fusion 'test-maen'.*'test-mean'"):
        configs.trial_config(fusion="test-maen")


def test_hidden_states_by_choice():
    def numbers(choice, layers, family):
        return [state.number for state in chosen_states(choice, made_shape(layers=layers, family=family))]

    assert numbers("layers", 4, "bert") == [1, 2, 3, 4]
    assert numbers("with-embeddings", 4, "roberta") == [0, 1, 2, 3, 4]
    assert numbers("as-released", 24, "roberta") == list(range(24))
    assert numbers("as-released", 12, "bart") == list(range(13))
    assert numbers("layers:6,1,12", 12, "bart") == [1, 6, 12]
    assert [numbers(half, 6, "bert") for half in ("lower-half", "upper-half")] == [[1, 2, 3], [4, 5, 6]]
    assert [numbers(half, 5, "bert") for half in ("lower-half", "upper-half")] == [[1, 2, 3], [3, 4, 5]]
    with pytest.raises(BadInput, match=r"0\.\.4, got 6"):
        numbers("layers:6", 4, "bert")
    for wrong in ("layer", "layers:", "layers:a", "layers:1;2"):
        with pytest.raises(BadInput, match="hidden_states"):
            LayerMixConfig(hidden_states=wrong)


def test_the_last_state_is_read_behind_the_final_norm_unless_asked():
    t5 = Shape("sequence", 2, (Stream("encoder", 2, final_norm=True),), 8, "t5")
    assert chosen_states("layers", t5) == encoder(1, 2)
    assert chosen_states("layers", t5, final_norm=False) == [State("encoder", 1), State("encoder", 2, True)]
    assert chosen_states("layers", made_shape(layers=2), final_norm=False) == encoder(1, 2)
    assert "final_norm" in LayerMixConfig().used(t5)


NAMES = {
    "layers": ("layers", "layers:1,2,3"),
    "with-embeddings": ("layers:0,1,2,3", "as-released"),
    "layers:1,3": ("layers:1,3",),
}


def test_a_choice_of_hidden_states_has_one_name():
    shape = made_shape(layers=3)
    for name, spellings in NAMES.items():
        resolved = [configs.trial_config(hidden_states=each).resolved(shape) for each in spellings]
        assert {config["hidden_states"] for config in resolved} == {name}
    same = [configs.trial_config(hidden_states=name).identity(shape) for name in ("layers", "layers:1,2,3")]
    assert same[0] == same[1]
