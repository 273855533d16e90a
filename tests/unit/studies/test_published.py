"""The published study's arms, comparisons and records, on shapes without a backbone."""

import functools

import pytest

from adalayers.comparisons import PlannedArm
from adalayers.config import trial_config, with_overrides
from adalayers.presets import setups
from adalayers.study import Setting
from studies.published import STUDY
from tests.helpers import planning
from tests.helpers.states import made_shape


def setting(dataset="cola", head="sequence", epochs=256, **fixed) -> Setting:
    base = with_overrides(trial_config(), {**fixed, "epochs": epochs})
    return Setting(dataset, made_shape(head, layers=6, width=384), fixed, base, 2000)


planned = functools.partial(planning.planned, STUDY)


@pytest.mark.parametrize(
    ("dataset", "head"), [("imdb", "sequence"), ("cola", "sequence"), ("conll2003", "token")]
)
def test_arms_are_both_set_ups_whole_in_both_readings(dataset, head):
    found = planned(setting(dataset, head))
    assert [arm.name for arm in found.arms] == [
        *("roberta-large-setup as-written", "roberta-large-setup as-released"),
        *("bart-large-cnn-setup as-written", "bart-large-cnn-setup as-released"),
    ]
    assert found.control == "roberta-large-setup as-written"
    assert found.dropped == found.notes == []
    first = setups(dataset, head)[0]
    written, released = found.arms[0].config, found.arms[1].config
    assert {name: getattr(written, name) for name in first.run.config} == first.run.config
    assert written.mix_lr is None
    assert released.dropout == first.released_dropout
    assert released.hidden_states == "as-released"
    assert released.gelu_after_mix
    assert not written.gelu_after_mix


def test_a_dataset_without_set_ups_takes_those_of_its_kind_and_says_so():
    found = planned(setting("mine", "token"))
    assert found.arms[0].config.alpha == 128.0
    assert "no set-up for `mine`: these are its set-ups for `conll2003`" in found.notes[0]


def test_epochs_are_capped_and_what_is_fixed_goes_before():
    assert {arm.config.epochs for arm in planned(setting("imdb", epochs=200)).arms} == {128}
    assert {arm.config.epochs for arm in planned(setting("imdb", epochs=20)).arms} == {20}
    found = planned(setting("cola", batch_size=32, k=32))
    assert {(arm.config.batch_size, arm.config.k) for arm in found.arms} == {(32, 32)}
    assert found.notes == ["--set fixed `batch_size`, `k` in all arms, whatever the set-up says."]
    assert found.dropped == []


def test_readings_are_compared_within_a_set_up_and_set_ups_within_a_reading():
    found = planned(setting())
    arms = [PlannedArm(arm.name, arm.role, label=arm.label) for arm in found.arms]
    best = PlannedArm("best", "best", {})
    made = STUDY.design.comparisons([*arms, best], (), found.control)
    assert [(pair.arm, pair.control) for pair in made] == [
        ("roberta-large-setup as-released", "roberta-large-setup as-written"),
        ("bart-large-cnn-setup as-written", "roberta-large-setup as-written"),
        ("bart-large-cnn-setup as-released", "roberta-large-setup as-released"),
        ("bart-large-cnn-setup as-released", "bart-large-cnn-setup as-written"),
        ("best", "roberta-large-setup as-written"),
    ]
    assert all(pair.primary and pair.weights == {pair.arm: 1.0, pair.control: -1.0} for pair in made)
    assert STUDY.design.comparisons(arms[1:2], (), found.control) == []


def test_what_was_published_goes_with_every_arm():
    found = planned(setting("conll2003", "token"))
    assert [record.arm for record in found.published] == [arm.name for arm in found.arms]
    written, released = found.published[:2]
    assert (written.score, written.metric) == (0.894, "f1")
    assert (written.parameters, written.base_model) == (3.21e6, "roberta-large")
    assert {record.source for record in found.published} == {"Dremov 2024, figures 15 and 19"}
    assert planned(setting()).published[0].source == "Dremov 2024, figure 11"
    assert written.states == released.states == "embeddings and layers 1 to 23"
    assert (written.states_here, released.states_here) == ("layers 1 to 6", "embeddings and layers 1 to 6")
    assert found.published[2].states == "embeddings and layers 1 to 12"
    assert [score.predicted for score in written.classes] == [1697, 791, 1766, 1640]
    assert found.published[2].classes == ()
    some = planned(setting(hidden_states="layers:1,6"))
    assert {record.states_here for record in some.published} == {"layers 1, 6"}


def test_sequences_are_selected_by_the_thesiss_metric():
    assert STUDY.defaults.metrics == {"sequence": "f1_macro"}
    assert {setup.run.selects for setup in setups("cola", "sequence")} == {STUDY.defaults.metrics["sequence"]}
