"""What arms of several studies set, and what is refused, on shapes without a backbone; `test_plans` holds the rest."""

import importlib

import pytest

from adalayers.command.flags import parse
from adalayers.comparisons import PlannedArm
from adalayers.errors import BadInput
from adalayers.presets import setups
from adalayers.study import Setting
from tests.helpers.planning import planned, setting_of
from tests.helpers.states import made_shape


def study_of(name):
    return importlib.import_module(f"studies.{name}").STUDY


def setting(dataset="cola", head="sequence", study="small_data", epochs=20, pool=2000, **fixed) -> Setting:
    return setting_of(
        study_of(study), made_shape(head, 3, 6, 384), dataset, epochs=epochs, pool=pool, **fixed
    )


def arms(study, **how):
    made, notes = study_of(study).design.arms(setting(study=study, **how))
    return {arm.name: arm.overrides for arm in made}, notes


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


def test_a_layer_that_is_fixed_is_one_of_those_read_and_leaves_the_space_as_it_was():
    for layer in (-1, 9):
        with pytest.raises(BadInput, match="wanted --set layer to be one of"):
            planned(study_of("single_layer"), setting(study="single_layer", layer=layer))
    planned(study_of("single_layer"), setting(study="single_layer", layer=2))
    assert set(importlib.import_module("search_spaces.single_layer").GRID["layer"]) > {2}


def test_the_protocol_of_few_shots_reaches_the_arms():
    study = study_of("few_shot")
    for argv, n in (([], 46), (["--protocol", "whole"], 90)):
        flags = parse(study, argv)
        how = {"epochs": flags.study.epochs, "own": flags.own_identity}
        there = setting_of(study, made_shape("token", 9, 6, 384), pool=14_000, **how)
        assert len(planned(study, there).arms) == n
    with pytest.raises(BadInput, match=r"--protocol: invalid choice: .all."):
        parse(study, ["--protocol", "all"])


def test_a_method_that_is_none_gets_near_names():
    study = study_of("methods")
    own = {"methods": "concat-matchd"}
    with pytest.raises(BadInput, match=r"unknown method 'concat-matchd'; .*'concat-matched'"):
        planned(study, setting_of(study, made_shape(layers=6, width=384), own=own))


def test_published_arms_are_selected_by_the_thesiss_metric_and_compared_where_the_control_is():
    study = study_of("published")
    assert study.defaults.metrics == {"sequence": "f1_macro"}
    assert {setup.run.selects for setup in setups("cola", "sequence")} == {"f1_macro"}
    alone = [PlannedArm("bart-large-cnn-setup as-released", "published", label="bart-large-cnn")]
    assert study.design.comparisons(alone, (), "roberta-large-setup as-written") == []
