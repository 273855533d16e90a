"""The short form of what docs/evidence/ was made by: false claims, effects found."""

import numpy as np
import pytest

from docs.evidence import calibration
from reports.evidence.holm import BETTER, OPEN, SAME, WORSE, decide, paired


@pytest.mark.parametrize("draw", [calibration.normal, calibration.unequal])
@pytest.mark.parametrize("how", calibration.RUNS)
@pytest.mark.parametrize("plan", [calibration.factorial, calibration.against_control])
def test_identical_arms_are_seldom_called_different(plan, how, draw):
    for share in calibration.of_equal_arms(25, plan(), draw, how):
        assert share.interval[0] <= 0.05, share


def test_a_difference_of_the_smallest_effect_is_seldom_called_none_and_a_clear_one_is_found():
    false, _ = calibration.of_effects(25, 1.0, 1.0, "until decided to 20, then 30")
    assert false.interval[0] <= 0.05, false
    _, found = calibration.of_effects(10, 2.0, 0.1, "until decided to 20, then 30")
    assert found.interval[1] >= 0.99, found


def test_many_studies_at_once_are_decided_as_one_by_one():
    rng = np.random.default_rng(0)
    means, sds = rng.choice([0.0, 0.0, 0.5, 2.0], size=(40, 1, 7)), rng.choice([0.1, 1.0], size=7)
    drawn = rng.normal(means, sds, (40, 6, 7))
    signs, same = calibration.decided(drawn, 0.3, 0.04, 9)
    for one, of_signs, of_same in zip(drawn, signs, same, strict=True):
        family = {place: paired(row, 0.3, scale=1.0) for place, row in enumerate(one.T)}
        verdicts = decide([(0.04, {**family, "tie": None, "lost": None})])
        words = {(1, False): BETTER, (-1, False): WORSE, (0, True): SAME, (0, False): OPEN}
        found = [verdicts[place].verdict for place in family]
        assert found == [words[key] for key in zip(of_signs, of_same, strict=True)]
    assert {*signs.ravel()} == {-1, 0, 1}
    assert same.any()
