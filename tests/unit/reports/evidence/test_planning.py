"""How many seeds are needed: the pooled spread by hand, and the power of the test it is meant for."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from reports.evidence.analyses import Analysis
from reports.evidence.planning import Spread, error_to_come, seeds_for, spread
from reports.evidence.spending import Budget
from reports.evidence.statistics import power

WEIGHTS = {"a": 1.0, "control": -1.0}


def scores(*rows: list[float]) -> dict[str, pd.Series]:
    return {f"arm{place}": pd.Series(row, index=range(1, len(row) + 1)) for place, row in enumerate(rows)}


def test_the_spread_is_that_of_what_arm_and_seed_leave():
    """Residuals of the rows 1, 2, 6 and 3, 2, 4 are -1, 0, 1 and the opposite, on (2 - 1)(3 - 1) degrees of freedom."""
    found = spread(scores([1, 2, 6], [3, 2, 4]), {})
    residuals = np.array([[1, 2, 6], [3, 2, 4]]) - np.array([[3], [3]]) - np.array([2, 2, 5]) + 3
    assert found.sd == pytest.approx(math.sqrt((residuals**2).sum() / 2))
    assert found.sd == pytest.approx(math.sqrt(2))
    assert (found.arms, found.seeds) == (2, 3)


def test_levels_of_arms_and_luck_of_seeds_are_no_spread():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(5, 1)) + rng.normal(size=8)
    assert spread(scores(*rows), {}).sd == pytest.approx(0, abs=1e-12)
    noisy = spread(scores(*(rows + 0.01 * rng.normal(size=rows.shape))), {})
    assert noisy.sd == pytest.approx(0.01, rel=0.3)


def test_only_shared_seeds_count():
    of = scores([1, 2, 6, 9], [3, 2, 4])
    assert spread(of, {}) == spread(scores([1, 2, 6], [3, 2, 4]), {})


def test_an_arm_with_hardly_a_seed_does_not_take_the_others_theirs():
    of = scores([1, 2, 6, 9], [3, 2, 4, 4], [1, 2])
    assert spread(of, {}) == spread(scores([1, 2, 6, 9], [3, 2, 4, 4]), {})


@pytest.mark.parametrize("rows", [[], [[1.0, 2.0]], [[1.0], [2.0]]])
def test_too_little_for_a_spread(rows):
    assert spread(scores(*rows), {}) is None


def test_arms_with_the_same_predictions_count_once():
    of = scores([1, 2, 6], [3, 2, 4], [3, 2, 4])
    said = {(arm, seed): f"{of[arm][seed]} on {seed}" for arm in of for seed in (1, 2, 3)}
    assert spread(of, said) == spread(scores([1, 2, 6], [3, 2, 4]), {})
    said["arm2", 3] = "another"
    assert spread(of, said).arms == 3
    assert spread(scores([1, 2], [1, 2]), {(f"arm{i}", seed): "x" for i in (0, 1) for seed in (1, 2)}) is None


def test_the_spread_of_a_comparison_follows_from_its_weights():
    known = Spread(0.01, 4, 5)
    assert known.of(WEIGHTS) == pytest.approx(0.01 * math.sqrt(2))
    thirds = {**{f"a{i}": 1 / 3 for i in range(3)}, **{f"b{i}": -1 / 3 for i in range(3)}}
    assert known.of(thirds) == pytest.approx(0.01 * math.sqrt(2 / 3))


def test_seeds_for_an_effect_have_power_and_grow_with_the_spread():
    found = [seeds_for(0.01, WEIGHTS, 0.1, Spread(sd, 4, 5)) for sd in (0.002, 0.005, 0.01, 0.02)]
    assert found == sorted(set(found))
    for sd, n in zip((0.002, 0.005, 0.01, 0.02), found, strict=True):
        effect = 0.01 / (sd * math.sqrt(2))
        assert power(effect, n, 0.004) >= 0.9 > power(effect, n - 1, 0.004)  # a tenth of 4%
    assert seeds_for(0.01, WEIGHTS, 0.1, Spread(0.0, 4, 5)) == 2
    assert seeds_for(0.01, WEIGHTS, 0.1, Spread(1.0, 4, 5)) is None
    assert seeds_for(0.01, WEIGHTS, 0.05, Spread(0.01, 4, 5)) > found[2]


def test_the_error_to_come_is_what_the_plan_has_left_or_the_next_extension_has():
    def made(*stages: tuple[int, int], seeds: int) -> list[Analysis]:
        return [Analysis(1, {}, Budget(stages, seeds))]

    assert error_to_come([], 20) == 0.04
    assert error_to_come(made((0, 20), seeds=6), 20) == 0.04
    assert error_to_come(made((0, 20), seeds=20), 20) == 0.005
    assert error_to_come(made((0, 20), (20, 40), seeds=40), 40) == 0.0025
