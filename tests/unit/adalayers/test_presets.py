"""The thesis's published set-ups: their numbers, their readings, and the parameters that they count."""

import pytest

from adalayers import presets
from adalayers.config import trial_config
from adalayers.models.model import FusionModel
from adalayers.states import chosen_states
from tests.helpers.states import made_shape

LAYERS_ALONE = {"imdb": 803_214, "cola": 803_214, "conll2003": 2_167_061}
"""Parameters of BART's set-ups over layers 1..12, as written."""


def shape(setup: presets.SetUp):
    run, family = setup.run, "bart" if _on(setup, presets.BART) else "roberta"
    return made_shape(setup.head, setup.n_outputs, run.layers, run.width, family)


def _on(setup: presets.SetUp, base) -> bool:
    return setup.run.base_model == base["base_model"]


def of(dataset: str, base) -> presets.SetUp:
    (found,) = (setup for setup in presets.SETUPS if setup.run.dataset == dataset and _on(setup, base))
    return found


@pytest.mark.parametrize(
    "setup", presets.SETUPS, ids=lambda setup: f"{setup.run.dataset} {setup.run.base_model}"
)
def test_recomputed_parameters_are_those_of_the_model_as_released(setup):
    config = trial_config(**setup.config("as-released"))
    config.check(shape(setup))
    assert FusionModel(config, shape(setup)).n_parameters() == setup.run.recomputed
    within = (
        setup.run.dataset != "conll2003"
    )  # there the thesis leaves out the feed-forward, and says so nowhere
    assert (abs(setup.run.recomputed - setup.run.parameters) < 0.005e6) == within == (not setup.run.remark)


@pytest.mark.parametrize(
    "setup", [setup for setup in presets.SETUPS if _on(setup, presets.BART)], ids=lambda s: s.run.dataset
)
def test_as_written_barts_embeddings_are_not_mixed(setup):
    model = FusionModel(trial_config(**setup.config("as-written")), shape(setup))
    assert model.n_parameters() == LAYERS_ALONE[setup.run.dataset]
    assert [state.number for state in model.fusion.states] == list(range(1, 13))


def test_the_readings_differ_in_what_the_code_does_and_the_text_does_not_say():
    for setup in presets.SETUPS:
        written, released = (setup.config(reading) for reading in presets.READINGS)
        differs = {name for name in {**written, **released} if written.get(name) != released.get(name)}
        told = {"projection_dropout", "gelu_after_mix", "hidden_states", "entropy_scale"}
        assert differs - {"dropout"} == told
        assert released["projection_dropout"] == released["dropout"] == setup.released_dropout


def test_the_published_values():
    """Thesis figures 7, 11 and 15, and the scores of sections 5.4.2 to 5.4.4."""
    conll2003 = (1e-3, 128, 1e-3, 1e-2, 0.2, 0.2, 8, 128, 16, 40, 356, 256, True)  # of both base models
    tables = {
        ("imdb", presets.ROBERTA["base_model"]): (
            1e-3,
            70,
            0,
            5e-3,
            3e-2,
            0.3,
            16,
            64,
            5,
            10,
            1200,
            128,
            False,
        ),
        ("imdb", presets.BART["base_model"]): (
            1e-3,
            70,
            0,
            5e-3,
            3e-2,
            0.005,
            16,
            64,
            5,
            10,
            588,
            128,
            False,
        ),
        ("cola", presets.ROBERTA["base_model"]): (0, 64, 0, 1e-2, 3e-2, 0.3, 8, 64, 25, 30, 600, 256, True),
        ("cola", presets.BART["base_model"]): (0, 64, 0, 1e-2, 1e-2, 0.1, 8, 64, 16, 32, 900, 256, True),
        ("conll2003", presets.ROBERTA["base_model"]): conll2003,
        ("conll2003", presets.BART["base_model"]): conll2003,
    }
    names = (
        *("weight_decay", "alpha", "entropy_weight", "cutoff", "dropout", "projection_dropout", "heads", "k"),
        *("lr_patience", "patience", "batch_size", "epochs", "positions"),
    )
    assert [(setup.run.dataset, setup.run.base_model) for setup in presets.SETUPS] == list(tables)
    for setup, (key, values) in zip(presets.SETUPS, tables.items(), strict=True):
        configs = {**setup.config("as-released"), **setup.config("as-written")}
        assert tuple(configs[name] for name in names) == values, key
    assert [setup.run.score for setup in presets.SETUPS] == [0.961, 0.960, 0.836, 0.809, 0.894, 0.893]
    assert [setup.run.parameters for setup in presets.SETUPS] == [
        1.59e6,
        0.87e6,
        1.59e6,
        0.87e6,
        3.21e6,
        1.77e6,
    ]
    assert {setup.run.config["lr"] for setup in presets.SETUPS} == {1e-4}
    assert [setup.run.config["class_weights"] for setup in presets.SETUPS] == [
        *["none"] * 4,
        "published",
        "none",
    ]
    layers = [(s.run.config.get("encoder_layers"), s.run.config.get("feedforward")) for s in presets.SETUPS]
    assert layers == [*[(None, None)] * 4, *[(1, 2048)] * 2]
    assert [setup.run.metric for setup in presets.SETUPS] == [*["accuracy"] * 4, *["f1"] * 2]


def test_published_f1_of_classes_follows_from_precision_and_recall():
    (with_classes,) = (setup for setup in presets.SETUPS if setup.run.classes)
    assert with_classes is of("conll2003", presets.ROBERTA)
    for score in with_classes.run.classes:
        assert score.f1 == pytest.approx(
            2 * score.precision * score.recall / (score.precision + score.recall), abs=1e-4
        )


def test_a_dataset_without_a_set_up_takes_those_of_its_kind():
    found = presets.setups("imdb", "sequence")
    assert [setup.run.base_model for setup in found] == ["roberta-large", "bart-large-cnn"]
    assert found[0].mix == {"alpha": 70.0, "entropy_weight": 0.0, "cutoff": 5e-3, "mix_lr": 1e-4}
    for dataset, head, source in (("other", "sequence", "cola"), ("other", "token", "conll2003")):
        assert {setup.run.dataset for setup in presets.setups(dataset, head)} == {source}


def test_a_logit_travels_as_far_as_alpha_rate_and_all_steps_take_it():
    travel = presets.logit_travel(128.0, mix_lr=1e-3, batch_size=32, epochs=4, train_examples=2000)
    assert travel == pytest.approx(32.256)
    # 256 epochs of 40 steps on all of its data
    assert of("conll2003", presets.ROBERTA).travel == pytest.approx(131, abs=0.1)


@pytest.mark.parametrize(
    "setup", presets.SETUPS, ids=lambda setup: f"{setup.run.dataset} {setup.run.base_model}"
)
def test_the_states_that_the_released_code_reads_are_told(setup):
    numbers = [state.number for state in chosen_states("as-released", shape(setup))]
    assert setup.run.states == f"embeddings and layers 1 to {numbers[-1]}"
    assert numbers == list(range(len(numbers)))
