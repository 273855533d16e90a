"""What arms of several studies set, and what is refused, on shapes without a backbone; `test_plans` holds the rest."""

import importlib

import pytest

from adalayers.command.flags import parse
from adalayers.comparisons import PlannedArm
from adalayers.errors import BadInput
from adalayers.study import Setting
from tests.helpers.planning import planned, setting_of
from tests.helpers.states import made_shape


def study_of(name):
    return importlib.import_module(f"studies.{name}").STUDY


def setting(study, dataset="cola", head="sequence", epochs=20, pool=2000, **fixed) -> Setting:
    shape = made_shape(head, 3, 6, 384)
    return setting_of(study_of(study), shape, dataset, epochs=epochs, pool=pool, **fixed)


def arms(study, **how):
    made, notes = study_of(study).design.arms(setting(study, **how))
    return {arm.name: arm.overrides for arm in made}, notes


@pytest.mark.parametrize("study", ["small_data", "capacity"])
def test_every_amount_of_data_is_trained_for_as_many_steps_and_evaluated_as_often(study):
    for overrides in arms(study)[0].values():
        n, epochs = overrides["train_examples"], overrides.get("epochs", 20)
        assert epochs * -(-n // 32) == pytest.approx(20 * 63, rel=0.02)
        assert round(epochs / overrides.get("evaluate_every", 1)) == pytest.approx(20, abs=1)


def test_published_arms_have_the_thesis_step_whatever_the_rate():
    for study, arm, how, step in (
        ("alpha_lambda", "published-mix", {"dataset": "cola"}, 6.4e-3),
        ("search", "published-mix", {"dataset": "imdb"}, 7e-3),
        ("ablation", "published", {"dataset": "conll2003", "head": "token"}, 1.28e-2),
    ):
        made, notes = arms(study, lr=3e-3, **how)
        assert made[arm]["alpha"] * made[arm]["mix_lr"] == pytest.approx(step)
        assert f"a step of {step:.3g}" in " ".join(notes)
        assert arms(study, mix_lr=1e-2, **how)[0][arm]["mix_lr"] == 1e-2


def test_what_a_study_cannot_set_is_named():
    for layer in (-1, 9):
        with pytest.raises(BadInput, match="wanted --set layer to be one of"):
            planned(study_of("single_layer"), setting("single_layer", layer=layer))
    with pytest.raises(BadInput, match=r"--protocol: invalid choice: .all."):
        parse(study_of("few_shot"), ["--protocol", "all"])
    with pytest.raises(BadInput, match=r"unknown method 'concat-matchd'; .*'concat-matched'"):
        planned(study_of("methods"), setting("methods", own={"methods": "concat-matchd"}))


def test_the_protocol_of_few_shots_reaches_the_arms():
    flags = parse(study_of("few_shot"), ["--protocol", "whole"])
    how = {"epochs": flags.study.epochs, "own": flags.own_identity}
    assert (
        len(planned(study_of("few_shot"), setting("few_shot", "cola", "token", pool=14_000, **how)).arms)
        == 90
    )


def test_published_arms_are_compared_where_the_control_is():
    alone = [PlannedArm("bart-large-cnn-setup as-released", "published", label="bart-large-cnn")]
    assert study_of("published").design.comparisons(alone, (), "roberta-large-setup as-written") == []
