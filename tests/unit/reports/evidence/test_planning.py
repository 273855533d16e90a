"""How many seeds are needed: the pooled spread by hand, and the power of the test it is meant for."""

import math

import numpy as np
import pytest
from scipy import stats

from reports.evidence.planning import chance, resolution, seeds_for, spread


def scores(*rows) -> dict[str, dict[int, float]]:
    return {f"arm{place}": dict(enumerate(row, start=1)) for place, row in enumerate(rows)}


def test_the_spread_is_that_of_what_arm_and_seed_leave():
    """Residuals of the rows 1, 2, 6 and 3, 2, 4 are -1, 0, 1 and the opposite, on (2 - 1)(3 - 1) degrees of freedom."""
    assert spread(scores([1, 2, 6], [3, 2, 4]), {}) == pytest.approx(math.sqrt(2))
    # Only shared seeds count, and an arm with hardly a seed does not take the others theirs.
    assert spread(scores([1, 2, 6, 9], [3, 2, 4]), {}) == pytest.approx(math.sqrt(2))
    assert spread(scores([1, 2, 6], [3, 2, 4], [1, 2]), {}) == pytest.approx(math.sqrt(2))
    for rows in ([], [[1.0, 2.0]], [[1.0], [2.0]]):
        assert spread(scores(*rows), {}) is None


def test_arms_with_the_same_predictions_count_once():
    of = scores([1, 2, 6], [3, 2, 4], [3, 2, 4])
    said = {(arm, seed): f"{of[arm][seed]} on {seed}" for arm in of for seed in (1, 2, 3)}
    assert spread(of, said) == spread(scores([1, 2, 6], [3, 2, 4]), {})
    said["arm2", 3] = "another"
    assert spread(of, said) == spread(of, {})


def test_the_chance_of_one_analysis_is_the_power_of_its_t_test():
    """Against simulated differences."""
    rng = np.random.default_rng(0)
    for effect, n, level in ((1.0, 13, 0.05), (2.0, 6, 0.01)):
        found = stats.ttest_1samp(rng.normal(effect, 1, size=(20_000, n)), 0, axis=1).pvalue <= level
        assert chance(n, effect, level) == pytest.approx(found.mean(), abs=0.01)


def test_seeds_for_an_effect_find_it_nine_times_in_ten():
    for effect, level in ((2.2, 0.004), (1.0, 0.04)):
        seeds = seeds_for(effect, 1.0, level)
        assert seeds_for(effect / 100, 0.01, level) == seeds
        assert chance(seeds - 1, effect, level) < 0.9 <= chance(seeds, effect, level)
    assert seeds_for(10.0, 1.0, 0.04) == 6  # no verdict comes of fewer
    assert seeds_for(0.1, 1.0, 0.004) is None


def test_what_the_choice_of_examples_leaves_open_no_number_of_seeds_closes():
    """A standard error of 0.02 over examples at 5%: 1.96 x 0.02 beside an effect of 0.03, which seeds alone find."""
    assert resolution(4e-4, 0.05) == pytest.approx(1.959964 * 0.02, rel=1e-6)
    assert seeds_for(0.03, 0.01, 0.05, 4e-4) is None
    few, more = seeds_for(0.03, 0.02, 0.05), seeds_for(0.03, 0.02, 0.05, 3e-5)
    assert few < more
    both = math.sqrt(0.02**2 / more + 3e-5)
    assert chance(more, 0.03 / both / math.sqrt(more), 0.05) >= 0.9
