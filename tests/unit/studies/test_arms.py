"""What arms of several studies set, on shapes without a backbone."""

import importlib

import pytest

from adalayers.comparisons import PlannedArm
from adalayers.errors import BadInput
from adalayers.study import Setting
from tests.helpers.planning import planned, setting_of
from tests.helpers.states import made_shape


def setting(dataset="cola", head="sequence", study="small_data", epochs=20, pool=2000, **fixed) -> Setting:
    asked = importlib.import_module(f"studies.{study}").STUDY
    return setting_of(asked, made_shape(head, 3, 6, 384), dataset, epochs=epochs, pool=pool, **fixed)


def arms(study, **how):
    made, notes = importlib.import_module(f"studies.{study}").arms(setting(study=study, **how))
    return {arm.name: arm.overrides for arm in made}, notes


def test_the_best_of_a_search_over_layers_is_compared_with_the_mix():
    study = importlib.import_module("studies.single_layer")
    known = [
        PlannedArm(arm.name, arm.role, arm.overrides) for arm in study.arms(setting(study="single_layer"))[0]
    ]
    best = PlannedArm("search-best", "best", {"mix": "single", "layer": 2})
    pairs = [(pair.arm, pair.control) for pair in study.comparisons([*known, best], [], "mix")]
    assert ("search-best", "mix") in pairs


def test_ablation_has_positions_where_the_set_up_has_them():
    cola, imdb = (arms("ablation", dataset=dataset)[0] for dataset in ("cola", "imdb"))
    assert (cola["published"]["positions"], imdb["published"]["positions"]) == (True, False)
    assert "no positions" in cola
    assert imdb["with positions"]["positions"]
    assert ", no positions;" in arms("ablation", dataset="imdb")[1][0]


@pytest.mark.parametrize("study", ["small_data", "capacity"])
def test_every_amount_of_data_is_trained_for_as_many_steps_and_evaluated_as_often(study):
    for overrides in arms(study)[0].values():
        n, epochs = overrides["train_examples"], overrides.get("epochs", 20)
        assert epochs * -(-n // 32) == pytest.approx(20 * 63, rel=0.02)
        assert round(epochs / overrides.get("evaluate_every", 1)) == pytest.approx(20, abs=1)


@pytest.mark.parametrize(
    ("study", "arm"),
    [("alpha_lambda", "published-mix"), ("search", "published-mix"), ("ablation", "published")],
)
@pytest.mark.parametrize(
    ("dataset", "head", "step"),
    [("cola", "sequence", 6.4e-3), ("imdb", "sequence", 7e-3), ("conll2003", "token", 1.28e-2)],
)
def test_published_arms_have_the_thesis_step_whatever_the_rate(study, arm, dataset, head, step):
    made, notes = arms(study, dataset=dataset, head=head, lr=3e-3)
    assert made[arm]["alpha"] * made[arm]["mix_lr"] == pytest.approx(step)
    assert f"a step of {step:.3g}" in " ".join(notes)
    set_otherwise = arms(study, dataset=dataset, head=head, mix_lr=1e-2)[0]
    assert set_otherwise[arm]["mix_lr"] == 1e-2


def test_the_mix_at_its_travel_goes_as_far_here_as_in_the_published_run():
    """4 epochs of 63 steps, 2,000 examples at batch 32; there 256 of 40."""
    made, _ = arms("alpha_lambda", dataset="conll2003", head="token", epochs=4)
    rate = made["published-mix at its travel"]["mix_lr"]
    assert 128 * rate * 4 * 63 == pytest.approx(256 * 40 * 128 * 1e-4, rel=2e-3)


def test_methods_tell_of_the_mix_that_its_search_left_and_no_travel_of_another():
    (note, *_) = arms("methods", dataset="conll2003", head="token")[1]
    assert "as its own search left it" in note
    assert "travel" not in note


def test_adapters_whose_spans_are_taken_away_have_rates_at_which_they_learn():
    adapters = arms("layer_spans", dataset="conll2003", head="token")[0]["adapters"]
    assert (adapters["schedule"], adapters["lr"], adapters["base_lr"]) == ("linear", 1e-2, 3e-3)


@pytest.mark.parametrize(
    ("fixed", "names"),
    [
        ({}, "alpha=1|alpha=64|alpha=512|alpha=64 entropy_weight=0.01|alpha=64 cutoff=0.083|uniform|last"),
        ({"alpha": 8.0}, "alpha=8|alpha=8 entropy_weight=0.01|alpha=8 cutoff=0.083|uniform|last"),
        ({"cutoff": 0.02}, "alpha=1|alpha=64|alpha=512|alpha=64 entropy_weight=0.01|uniform|last"),
        ({"mix": "uniform"}, "uniform"),
    ],
    ids=str,
)
def test_small_data_keeps_the_value_of_a_factor_that_the_user_fixed(fixed, names):
    made = arms("small_data", **fixed)[0]
    assert [name.removesuffix(" train_examples=2000") for name in made if "=2000" in name] == names.split("|")
    for overrides in made.values():
        assert all(overrides.get(name, value) == value for name, value in fixed.items())


def test_all_of_the_pool_is_trained_for_the_epochs_asked_for():
    assert setting(epochs=3, batch_size=16).for_equal_steps(2000) == {"train_examples": 2000}


def test_a_layer_may_be_fixed_where_layers_are_under_study():
    """The mix reads all of them, so the study's own settings cannot hold it."""
    made = setting(study="single_layer", layer=2)
    names = {arm.name for arm in study_plan("single_layer", made).arms}
    assert names == {"mix", "uniform", "layer=2", "mix untrained", "uniform untrained", "layer=2 untrained"}
    (search,) = study_plan("single_layer", made).searches
    assert search.space.domains["layer"].categories == [2]
    assert search.space.grid["layer"] == [2]
    assert set(importlib.import_module("search_spaces.single_layer").GRID["layer"]) > {2}
    for layer in (-1, 9):
        with pytest.raises(BadInput, match="wanted --set layer to be one of"):
            study_plan("single_layer", setting(study="single_layer", layer=layer))


def study_plan(study, made):
    return planned(importlib.import_module(f"studies.{study}").STUDY, made)
