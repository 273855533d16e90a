"""The short form of `python -m tests.calibration`: false claims, and effects found."""

import numpy as np
import pytest

from reports.evidence.holm import BETTER, OPEN, SAME, WORSE, decide, paired
from tests import calibration
from tests.calibration import (
    RUNS,
    against_control,
    decided,
    factorial,
    normal,
    of_effects,
    of_equal_arms,
    of_wholes,
    unequal,
)


@pytest.mark.parametrize("draw", [normal, unequal])
@pytest.mark.parametrize("how", RUNS)
@pytest.mark.parametrize("plan", [factorial, against_control])
def test_identical_arms_are_seldom_called_different(plan, how, draw):
    for share in of_equal_arms(60, plan(), draw, how):
        assert share.interval[0] <= 0.05, share


def test_analyses_that_do_not_share_the_error_would_be_caught(monkeypatch):
    """The same simulation with 5% for every comparison at every analysis: well over 5% of studies claim something."""

    def alone(analyses):
        return [(0.05 * len(family), family) for _, family in analyses]

    decide = calibration.decide
    monkeypatch.setattr(calibration, "decide", lambda analyses: decide(alone(analyses)))
    share, _ = of_equal_arms(40, against_control(), normal, "until decided to 20, then 30")
    assert share.interval[0] > 0.05, share


def test_a_difference_of_the_smallest_effect_is_seldom_called_none_and_a_clear_one_is_found():
    false, _ = of_effects(60, 1.0, 1.0, "until decided to 20, then 30")
    assert false.interval[0] <= 0.05, false
    _, found = of_effects(20, 2.0, 0.1, "until decided to 20, then 30")
    assert found.interval[1] >= 0.99, found


def test_many_studies_at_once_are_decided_as_one_by_one():
    rng = np.random.default_rng(0)
    drawn = rng.normal(
        rng.choice([0.0, 0.0, 0.5, 2.0], size=(40, 1, 7)), rng.choice([0.1, 1.0], size=7), (40, 6, 7)
    )
    signs, same = decided(drawn, 0.3, 0.04, 9)
    for one, of_signs, of_same in zip(drawn, signs, same, strict=True):
        family = {place: paired(row, 0.3, scale=1.0) for place, row in enumerate(one.T)}
        verdicts = decide([(0.04, {**family, "tie": None, "lost": None})])
        words = {(1, False): BETTER, (-1, False): WORSE, (0, True): SAME, (0, False): OPEN}
        assert [verdicts[place].verdict for place in family] == [
            words[key] for key in zip(of_signs, of_same, strict=True)
        ]
    assert {*signs.ravel()} == {-1, 0, 1}
    assert same.any()


@pytest.mark.parametrize("sizes", [(2, 2), (4, 3)])
def test_factors_that_do_not_matter_are_seldom_said_to(sizes):
    of_ratios = of_wholes(300, sizes, 6, "equal")
    assert all(share.interval[0] <= 0.01 for share in of_ratios)
    assert of_wholes(300, (4, 3), 6, "level 4")[-1].interval[0] > 0.01  # whatever the spreads: far too often
