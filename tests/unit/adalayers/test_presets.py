"""The thesis's published set-ups: their numbers, their readings, and the parameters that they count."""

import pytest

from adalayers import presets
from adalayers.config import trial_config
from adalayers.models.model import FusionModel
from tests.helpers.states import encoder, made_shape

LAYERS_ALONE = {"imdb": 803_214, "cola": 803_214, "conll2003": 2_167_061}
"""Parameters of BART's set-ups over layers 1..12, as written."""


def shape(setup: presets.SetUp):
    run = setup.run
    task = ("token", 9) if run.dataset == "conll2003" else ("sequence", 2)
    return made_shape(*task, run.layers, run.width, run.base_model.partition("-")[0])


BY_NAME = {(setup.run.dataset, setup.run.base_model): setup for setup in presets.SETUPS}


@pytest.mark.parametrize("setup", BY_NAME.values(), ids=map(" ".join, BY_NAME))
def test_recomputed_parameters_are_those_of_the_model_as_released(setup):
    config = trial_config(**setup.config("as-released"))
    config.check(shape(setup))
    model = FusionModel(config, shape(setup))
    assert model.n_parameters() == setup.run.recomputed
    assert [*model.fusion.states] == encoder(*range(len(model.fusion.states)))
    assert setup.run.states == f"embeddings and layers 1 to {model.fusion.states[-1].number}"
    # There the thesis leaves out the feed-forward, and says so nowhere.
    within = setup.run.dataset != "conll2003"
    assert (abs(setup.run.recomputed - setup.run.parameters) < 0.005e6) == within == (not setup.run.remark)


@pytest.mark.parametrize(("dataset", "parameters"), LAYERS_ALONE.items())
def test_as_written_barts_embeddings_are_not_mixed(dataset, parameters):
    setup = BY_NAME[dataset, "bart-large-cnn"]
    model = FusionModel(trial_config(**setup.config("as-written")), shape(setup))
    assert model.n_parameters() == parameters
    assert [*model.fusion.states] == encoder(*range(1, 13))


def test_the_readings_differ_in_what_the_code_does_and_the_text_does_not_say():
    for setup in presets.SETUPS:
        written, released = (setup.config(reading) for reading in presets.READINGS)
        differs = {name for name in {**written, **released} if written.get(name) != released.get(name)}
        told = {"projection_dropout", "gelu_after_mix", "hidden_states", "entropy_scale"}
        assert differs - {"dropout"} == told
        assert released["projection_dropout"] == released["dropout"] == setup.released_dropout


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
    assert BY_NAME["conll2003", "roberta-large"].travel == pytest.approx(131, abs=0.1)
