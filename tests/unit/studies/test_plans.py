"""Every study plans what it planned: arms with all that tells them from the defaults, searches, comparisons, notes."""

import dataclasses

import pytest

from adalayers.command.flags import parse
from adalayers.comparisons import PlannedArm
from studies import alpha_lambda, decoder_layers, few_shot, methods, single_layer, width
from tests.helpers.planning import planned, setting_of
from tests.helpers.plans import BART, PLANS, STUDIES, TEXTS, WORDS, plans
from tests.helpers.refusing import refused


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_plans_what_it_planned(name):
    """Where that is meant to change: `python -m tests.helpers.plans`, and read the difference."""
    assert plans(name).splitlines() == (PLANS / f"{name}.txt").read_text(encoding="utf-8").splitlines()


def test_what_a_study_cannot_set_is_named():
    def plan(study, **how):
        planned(study, setting_of(study, TEXTS, **how))

    for layer in (-1, 9):
        refused("wanted --set layer to be one of", plan, single_layer.STUDY, layer=layer)
    refused(r"--protocol: invalid choice: .all.", parse, few_shot.STUDY, ["--protocol", "all"])
    own = {"methods": "concat-matchd"}
    refused(r"unknown method 'concat-matchd'; .*'concat-matched'", plan, methods.STUDY, own=own)


def test_methods_are_named_as_their_arms_are():
    """In either case: one study, whichever is typed."""
    argv = [["--methods", name] for name in ("DWAtt-matched", "dwatt-matched")]
    assert len({str(parse(methods.STUDY, given).own_identity) for given in argv}) == 1
    made = planned(methods.STUDY, setting_of(methods.STUDY, TEXTS, own={"methods": "DWAtt-matched"}))
    assert [arm.name for arm in made.arms] == ["layer mix", "DWAtt matched"]


def test_methods_compare_what_the_last_searches_found():
    """The best of an earlier search keeps the plain name, and stands behind the others."""
    top, selected = "fine-tuning, of as many top layers", "fine-tuning, up to the selected layer"
    now = [("layer mix", "layer mix"), (top, top), (f"{selected}-12", selected)]
    arms = [PlannedArm(name, "tuned", tunes=(method,)) for name, method in [*now, (selected, selected)]]
    pairs = [planned.names[:2] for planned in methods.comparisons(arms, (), "layer mix")]
    assert pairs == [(top, "layer mix"), (f"{selected}-12", "layer mix"), (f"{selected}-12", top)]


def test_the_protocol_of_few_shots_reaches_the_arms():
    flags = parse(few_shot.STUDY, ["--protocol", "whole"])
    how = {"epochs": flags.study.epochs, "own": flags.own_identity, "pool": 14_000}
    assert len(planned(few_shot.STUDY, setting_of(few_shot.STUDY, WORDS, "cola", **how)).arms) == 90


def test_what_is_fixed_next_to_a_layer_reaches_every_arm():
    """A layer means nothing to the study's own settings; what else is fixed there stays."""
    made = planned(width.STUDY, setting_of(width.STUDY, WORDS, layer=3, k=32, alpha=8.0))
    assert {(arm.config.k, arm.config.alpha) for arm in made.arms} == {(32, 8.0)}
    of_layers = setting_of(single_layer.STUDY, WORDS, layer=3, train_projections=False)
    assert {arm.config.train_projections for arm in planned(single_layer.STUDY, of_layers).arms} == {False}


def test_a_last_layer_is_read_as_the_mix_that_it_is_compared_with():
    words = dataclasses.replace(BART, head="token", n_outputs=9)
    made = planned(decoder_layers.STUDY, setting_of(decoder_layers.STUDY, words))
    arms = {arm.name: arm for arm in made.arms}
    for stream, token in (("encoder", "first-token"), ("decoder", "last-token")):
        last = arms[f"last layer, {stream}"]
        (mix,) = (arms[name] for name in last.against)
        assert (last.config.word_position, mix.config.word_position) == (token, token)
        assert (mix.config.stream, mix.config.hidden_states) == (stream, "layers")


def test_the_thesis_mix_travels_as_far_on_as_many_examples_as_trials_train_on():
    def rate(**examples):
        made = planned(alpha_lambda.STUDY, setting_of(alpha_lambda.STUDY, TEXTS, "cola", **examples))
        return next(arm.config.mix_lr for arm in made.arms if arm.name == alpha_lambda.AT_ITS_TRAVEL)

    assert rate(pool=500) == rate(pool=8000, train_examples=500)
