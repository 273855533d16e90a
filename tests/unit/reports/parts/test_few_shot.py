"""Methods under numbers of examples and epochs, frozen and fine-tuned, against the numbers that were put in."""

from dataclasses import replace

import pytest

from reports.evidence.holm import BETTER, SAME
from reports.parts import few_shot
from tests.helpers.made_few_shot import METHODS, with_few_shot
from tests.helpers.made_up import MadeUp
from tests.helpers.pages import evidence_of


def made_up(gain: float = 0.2, **how) -> MadeUp:
    return with_few_shot(MadeUp(**{"seeds": 6, "search": 0, "evaluations": 4, "between": 0, **how}), gain)


def test_curves_are_scores_as_they_are_at_the_middle_number_of_epochs(tmp_path):
    made = made_up()
    found = few_shot.info(evidence_of(made, tmp_path))
    assert set(found.curves["arm"]) == {
        f"{method} train_examples={size} epochs=50" for method in METHODS for size in (32, 512)
    }
    curve = found.curves[found.curves["arm"] == "concat train_examples=32 epochs=50"]
    assert curve["mean"].iloc[-1] < curve["mean"].iloc[-2]  # a late loss shows


def test_fine_tuning_is_compared_with_the_same_method_frozen(tmp_path):
    found = few_shot.info(evidence_of(made_up(), tmp_path))
    assert len(found.beside) == 10 + 2 * 4  # of as many examples and epochs, frozen ones next to them
    assert {arm for arm in found.beside["arm"] if "fine-tuned" in arm} == set(found.gains)
    for arm, claim in found.gains.items():
        assert claim.control == arm.replace(" fine-tuned", "")
        assert claim.difference == pytest.approx(0.2, abs=0.03)
        assert claim.shown == BETTER
        assert not claim.primary


def test_without_fine_tuned_arms_nothing_is_said_of_them(tmp_path):
    made = made_up()
    made.arms[:] = [arm for arm in made.arms if arm["role"] == "core"]
    names = {arm["name"] for arm in made.arms}
    made.trials = [row for row in made.trials if row["arm"] in names]
    found = few_shot.info(evidence_of(made, tmp_path))
    assert "uned" not in "\n".join([*few_shot.section(found), *few_shot.answer(found)])
    assert few_shot.draw_fine_tuning(found) is None


def test_no_difference_is_a_decision(tmp_path):
    found = few_shot.info(evidence_of(made_up(), tmp_path))
    same = tuple(replace(claim, verdict=SAME, difference=0.0) for claim in found.effects)
    gains = {arm: replace(claim, verdict=SAME) for arm, claim in found.gains.items()}
    _, effects, gained = few_shot.answer(replace(found, effects=same, gains=gains))
    assert "makes **no difference**" in effects
    assert "Nothing is decided" not in effects
    assert "(**no difference seen**)" in gained


def test_without_a_test_split_validation_is_shown_once(tmp_path):
    found = few_shot.info(evidence_of(made_up(), tmp_path))
    made = made_up()
    for row in made.trials:
        del row["test/matthews"]
    without = few_shot.info(evidence_of(made, tmp_path / "without"))
    assert (found.tested, without.tested) == (True, False)
    assert [len(few_shot.draw_scores(info).axes) for info in (found, without)] == [6, 3]
    assert "of that epoch" not in "\n".join(few_shot.section(without))
