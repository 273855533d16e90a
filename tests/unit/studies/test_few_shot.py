"""The few-shot study's arms, notes and comparisons, on shapes without a backbone."""

import functools

import pytest

from adalayers.command.flags import parse
from adalayers.comparisons import PlannedArm
from adalayers.errors import BadInput
from adalayers.study import Setting
from studies.few_shot import STUDY
from tests.helpers import planning
from tests.helpers.planning import setting_of
from tests.helpers.states import made_shape

WHOLE = {"protocol": "whole"}


def setting(head="token", n_outputs=9, pool=14_000, epochs=100, own=None, **fixed) -> Setting:
    shape = made_shape(head, n_outputs, 6, 384)
    return setting_of(STUDY, shape, epochs=epochs, pool=pool, own=own, **fixed)


planned = functools.partial(planning.planned, STUDY)


def levels(made, name: str) -> list[int]:
    return sorted({getattr(arm.config, name) for arm in made.arms if arm.role == "core"})


def test_the_whole_protocol_is_the_papers():
    made = planned(setting(own=WHOLE))
    assert levels(made, "train_examples") == [32, 64, 128, 256, 512]
    assert levels(made, "epochs") == [25, 50, 75, 100]
    assert len(made.arms) == 4 * 5 * 4 + 10
    assert made.control == "extra-layers train_examples=512 epochs=100"
    for arm in made.arms:
        config = arm.config
        assert (config.lr, config.optimiser, config.schedule, config.warmup) == (5e-5, "adamw", "linear", 0.0)
        assert config.batch_size == 16
        assert config.draw is None  # each seed's own
        if arm.config.fusion != "layer-mix":
            assert (config.own_width, config.read_out) == (True, "linear")


def test_texts_are_read_by_a_linear_layer_of_their_mean():
    own = {arm.config.read_out for arm in planned(setting("sequence", 2)).arms if arm.label != "layer-mix"}
    assert own == {"mean"}


def test_a_part_of_it_is_what_runs_where_nothing_is_said():
    made = planned(setting())
    assert levels(made, "train_examples") == [32, 128, 512]
    assert levels(made, "epochs") == [25, 50, 100]
    assert len(made.arms) == 46
    assert {arm.name for arm in made.arms} < {arm.name for arm in planned(setting(own=WHOLE)).arms}
    assert levels(planned(setting(epochs=8)), "epochs") == [2, 4, 8]
    assert levels(planned(setting(epochs=4)), "epochs") == [2, 4]
    assert levels(planned(setting(epochs=1)), "epochs") == [1]


def test_the_command_line_reaches_the_arms():
    for argv, arms in (([], 46), (["--protocol", "whole"], 90)):
        flags = parse(STUDY, argv)
        assert len(planned(setting(epochs=flags.study.epochs, own=flags.own_identity)).arms) == arms
    with pytest.raises(BadInput, match=r"--protocol: invalid choice: .all."):
        parse(STUDY, ["--protocol", "all"])


@pytest.mark.parametrize(
    ("head", "n_outputs", "classes"), [("token", 9, 4), ("token", 3, 1), ("token", 2, 1), ("sequence", 3, 3)]
)
def test_shots_are_for_each_class(head, n_outputs, classes):
    made = planned(setting(head, n_outputs))
    assert levels(made, "train_examples") == [classes * shots for shots in (8, 32, 128)]
    assert f"(N = 8: {8 * classes}, N = 32: {32 * classes}, N = 128: {128 * classes})" in made.notes[0]


def test_what_the_pool_does_not_hold_is_left_out_and_said():
    made = planned(setting(pool=200))
    assert levels(made, "train_examples") == [32, 128]
    assert made.notes[1] == "N = 128 left out: the pool has 200 examples."
    assert levels(planned(setting(pool=20)), "train_examples") == [20]
    assert not any("left out" in note for note in planned(setting()).notes)


def test_fine_tuning_is_at_both_ends_for_half_of_the_epochs():
    made = planned(setting(own=WHOLE))
    fine = [arm for arm in made.arms if arm.role == "fine-tuned"]
    assert {(arm.config.train_examples, arm.config.epochs) for arm in fine} == {(32, 50), (512, 50)}
    assert [arm.name.split()[0] for arm in fine[:4]] == ["last-layer", "extra-layers", "concat", "dwatt"]
    assert {arm.config.base_model for arm in fine} == {"fine-tuned"}
    assert {arm.config.base_model for arm in made.arms if arm not in fine} == {"frozen"}
    frozen = {arm.name: arm.config for arm in made.arms}
    for arm in fine:
        other = frozen[arm.name.replace(" fine-tuned", "")]
        one, two = (config.resolved(made_shape("token", 9, 6, 384)) for config in (arm.config, other))
        assert {name for name in one if one[name] != two[name]} == {"base_model"}


def test_a_study_that_is_tried_out_fine_tunes_at_the_fewest_examples():
    for epochs, sizes in ((2, {32}), (6, {32, 512})):
        tuned = [arm for arm in planned(setting(epochs=epochs)).arms if "tuned" in arm.name]
        assert {arm.config.train_examples for arm in tuned} == sizes


def compared(made, tuned=()):
    arms = [
        PlannedArm(arm.name, arm.role, vars(arm.config), label=arm.label, fusion=arm.config.fusion)
        for arm in made.arms
    ]
    arms += [PlannedArm(f"{name}, tuned", "tuned", tunes=(name,)) for name in tuned]
    return STUDY.design.comparisons(arms, [factor.name for factor in STUDY.design.factors], made.control)


def test_methods_are_compared_with_the_deeper_baseline_and_pairs_next_to_them():
    made = planned(setting())
    found = compared(made)
    primary = [pair for pair in found if pair.primary]
    assert [(pair.kind, *pair.names[:2]) for pair in primary] == [
        ("factor", f"fusion={name}", "fusion=extra-layers") for name in ("concat", "dwatt", "layer-mix")
    ]
    assert {len(pair.weights) for pair in primary} == {2 * 9}
    simple = {pair.names[2] for pair in found if pair.kind == "simple"}
    assert simple == {f"train_examples={n}" for n in (32, 128, 512)} | {f"epochs={n}" for n in (25, 50, 100)}
    pairs = [(pair.arm, pair.control) for pair in found if pair.kind == "arm"]
    at = "train_examples=32 epochs=50"
    assert (f"dwatt fine-tuned {at}", f"dwatt {at}") in pairs
    assert (f"last-layer fine-tuned {at}", f"last-layer {at}") in pairs
    assert (f"dwatt fine-tuned {at}", f"last-layer fine-tuned {at}") in pairs
    assert len(pairs) == 8 + 6


def test_tuned_methods_are_compared_with_the_tuned_baseline():
    made = planned(setting())
    tuned = [search.name for search in made.searches]
    names = [search.becomes for search in made.searches]
    methods = ("extra-layers", "concat", "dwatt", "layer-mix")
    assert names == [f"{name} train_examples=512 epochs=100, tuned" for name in methods]
    found = [(pair.arm, pair.control, pair.primary) for pair in compared(made, tuned) if pair.arm in names]
    assert found == [(name, names[0], True) for name in names[1:]]


def test_what_is_fixed_is_the_only_level():
    assert levels(planned(setting(train_examples=64)), "train_examples") == [64]
    made = planned(setting(epochs=10, own=WHOLE))
    assert levels(made, "epochs") == [2, 5, 8, 10]
    alone = planned(setting(fusion="dwatt"))
    assert {arm.config.fusion for arm in alone.arms} == {"dwatt"}
