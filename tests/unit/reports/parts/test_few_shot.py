"""Methods under numbers of examples and epochs, frozen and fine-tuned, against the numbers that were put in."""

import numpy as np
import pytest

from reports.evidence.claims import BETTER
from reports.evidence.evidence import Evidence
from reports.parts import answer, caveats, few_shot, fine_tuning, next_run, settings
from reports.reading.load import load
from tests.helpers.made_few_shot import EPOCHS, METHODS, SIZES, with_few_shot
from tests.helpers.made_up import MadeUp


def made_up(gain: float = 0.2, **how) -> MadeUp:
    return with_few_shot(MadeUp(**{"seeds": 5, "search": 0, "evaluations": 4, "between": 0, **how}), gain)


def evidence_of(made: MadeUp, tmp_path) -> Evidence:
    return Evidence(load(made.write(tmp_path)))


def test_other_studies_have_no_such_parts(tmp_path):
    evidence = evidence_of(MadeUp(seeds=2, search=0, evaluations=2), tmp_path)
    assert few_shot.info(evidence) is fine_tuning.info(evidence) is None


def test_every_arm_has_its_method_examples_epochs_and_scores(tmp_path):
    made = made_up()
    found = few_shot.info(evidence_of(made, tmp_path))
    assert found.methods == METHODS
    assert (found.epochs, found.ends, found.tested) == (50, (32, 512), True)
    assert len(found.core) == len(METHODS) * len(SIZES) * len(EPOCHS)
    assert len(found.scores) == len(found.core) + 10
    name = "concat train_examples=128 epochs=25"
    (row,) = found.scores[found.scores["arm"] == name].to_dict("records")
    assert (row["method"], row["base_model"], row["examples"], row["epochs"]) == ("concat", "frozen", 128, 25)
    for prefix, column in (("val_", "val/matthews"), ("", "test/matthews")):
        scores = [trial[column] for trial in made.of(name)]
        assert (row[f"{prefix}mean"], row[f"{prefix}n"]) == (pytest.approx(np.mean(scores)), 5)
    fine = found.scores[found.scores["base_model"] == "fine-tuned"]
    assert set(fine["method"]) == {"last-layer", *METHODS[:3]}


def test_curves_are_scores_as_they_are_at_the_middle_number_of_epochs(tmp_path):
    made = made_up()
    found = few_shot.info(evidence_of(made, tmp_path))
    assert set(found.curves["arm"]) == {
        f"{method} train_examples={size} epochs=50" for method in METHODS for size in (32, 512)
    }
    curve = found.curves[found.curves["arm"] == "concat train_examples=32 epochs=50"]
    trials = {row["trial_id"] for row in made.of("concat train_examples=32 epochs=50")}
    for row in curve.to_dict("records"):
        points = [
            point["val/matthews"]
            for point in made.history
            if point["trial_id"] in trials and point["step"] == row["step"]
        ]
        assert row["mean"] == pytest.approx(np.mean(points))
    assert curve["mean"].iloc[-1] < curve["mean"].iloc[-2]  # a late loss shows


def test_the_answer_names_every_method_at_both_ends(tmp_path):
    made = made_up()
    evidence = evidence_of(made, tmp_path)
    best, effects = few_shot.answer(few_shot.info(evidence))
    means = {
        arm["name"]: np.mean([trial["val/matthews"] for trial in made.of(arm["name"])]) for arm in made.arms
    }
    for size in (32, 512):
        for epochs in (25, 100):
            told = best[best.index(f"{size} examples, {epochs} epochs: ") :].split(": ", 1)[1].split("; ")[0]
            wanted = sorted(
                METHODS, key=lambda method: -means[f"{method} train_examples={size} epochs={epochs}"]
            )
            assert [part.split()[0] for part in told.rstrip(".").split(", ")] == wanted
    assert effects.index("with 128 examples") < effects.index("with 512 examples")
    assert "method = layer-mix instead of extra-layers is **better** (+0.0" in effects
    assert all(
        f"{'**'}{text}" in answer.section(answer.info(evidence))[0] for text in ("By examples", "method")
    )


def test_fine_tuning_is_compared_with_the_same_method_frozen(tmp_path):
    made = made_up()
    found = fine_tuning.info(evidence_of(made, tmp_path))
    assert set(found.trained["arm"]) == set(found.gains)
    assert len(found.scores) == 10 + 2 * 4  # of as many examples and epochs, frozen ones next to them
    for arm, claim in found.gains.items():
        assert claim.control == arm.replace(" fine-tuned", "")
        assert claim.difference == pytest.approx(0.2, abs=0.03)
        assert claim.verdict == BETTER
        assert not claim.primary
    assert set(found.beyond) == {arm for arm in found.gains if not arm.startswith("last-layer")}
    assert {claim.control.split()[0] for claim in found.beyond.values()} == {"last-layer"}
    text = "\n".join(fine_tuning.section(found))
    scores = [row["val/matthews"] for row in made.of("concat fine-tuned train_examples=32 epochs=50")]
    (line,) = (row for row in text.splitlines() if row.startswith("| concat | 32 |"))
    assert f" | {np.mean(scores):.3f} [" in line
    (told,) = fine_tuning.answer(found)
    assert told.index("with 32 examples, last-layer +0.") < told.index("with 512 examples")
    assert told.count("**better**") == 8


def test_without_fine_tuned_arms_there_is_no_such_part(tmp_path):
    made = made_up()
    made.arms[:] = [arm for arm in made.arms if arm["role"] == "core"]
    names = {arm["name"] for arm in made.arms}
    made.trials = [row for row in made.trials if row["arm"] in names]
    evidence = evidence_of(made, tmp_path)
    assert fine_tuning.info(evidence) is None
    assert few_shot.info(evidence) is not None


def test_a_condition_is_neither_a_choice_nor_unequal_treatment(tmp_path):
    evidence = evidence_of(made_up(), tmp_path)
    found = [caveat.finding for caveat in caveats.info(evidence).caveats]
    assert not any("edge of the" in text or "unequal times" in text for text in found)
    assert "one draw" not in next_run.section(next_run.info(evidence))[0]
    assert "The mix" not in answer.section(answer.info(evidence))[0]
    assert "`fusion=concat, epochs=50, base_model=fine-tuned`" in "\n".join(
        settings.section(settings.info(evidence))
    )


@pytest.mark.parametrize(("seeds", "legend"), [(3, "mean, n = 3 seeds"), (5, "mean and 95% interval")])
def test_legends_say_whether_there_are_intervals(tmp_path, seeds, legend):
    figure = few_shot.draw_scores(few_shot.info(evidence_of(made_up(seeds=seeds), tmp_path)))
    assert figure.legends[0].get_title().get_text().startswith(legend)
    assert [axes.get_title(loc="left") for axes in figure.axes[:3]] == [
        "25 epochs",
        "50 epochs",
        "100 epochs",
    ]


def test_without_a_test_split_validation_is_shown_once(tmp_path):
    found = few_shot.info(evidence_of(made_up(), tmp_path))
    made = made_up()
    for row in made.trials:
        del row["test/matthews"]
    without = few_shot.info(evidence_of(made, tmp_path / "without"))
    assert (found.tested, without.tested) == (True, False)
    assert [len(few_shot.draw_scores(info).axes) for info in (found, without)] == [6, 3]
    assert "of that epoch" not in "\n".join(few_shot.section(without))
