"""The short form of `python -m tests.calibration`: false claims, and effects found."""

import pytest

from tests import calibration
from tests.calibration import RUNS, against_control, factorial, normal, of_effects, of_equal_arms, unequal


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
