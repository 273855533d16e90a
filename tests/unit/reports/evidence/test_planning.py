"""How many seeds are needed: the pooled spread by hand, and the power of the test it is meant for."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from adalayers.comparisons import pair
from reports.evidence.analyses import Analysis
from reports.evidence.boundaries import critical_values
from reports.evidence.claims import Claim
from reports.evidence.planning import chance, seeds_for, spread
from reports.evidence.spending import HALF, next_budget

WEIGHTS = {"a": 1.0, "control": -1.0}


def scores(*rows: list[float]) -> dict[str, dict[int, float]]:
    return {f"arm{place}": dict(enumerate(row, start=1)) for place, row in enumerate(rows)}


def test_the_spread_is_that_of_what_arm_and_seed_leave():
    """Residuals of the rows 1, 2, 6 and 3, 2, 4 are -1, 0, 1 and the opposite, on (2 - 1)(3 - 1) degrees of freedom."""
    found = spread(scores([1, 2, 6], [3, 2, 4]), {})
    residuals = np.array([[1, 2, 6], [3, 2, 4]]) - np.array([[3], [3]]) - np.array([2, 2, 5]) + 3
    assert found == pytest.approx(math.sqrt((residuals**2).sum() / 2))
    assert found == pytest.approx(math.sqrt(2))


def test_levels_of_arms_and_luck_of_seeds_are_no_spread():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(5, 1)) + rng.normal(size=8)
    assert spread(scores(*rows), {}) == pytest.approx(0, abs=1e-12)
    noisy = spread(scores(*(rows + 0.01 * rng.normal(size=rows.shape))), {})
    assert noisy == pytest.approx(0.01, rel=0.3)


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
    assert spread(of, said) == spread(of, {})
    assert spread(scores([1, 2], [1, 2]), {(f"arm{i}", seed): "x" for i in (0, 1) for seed in (1, 2)}) is None


def test_the_chance_of_one_analysis_is_the_power_of_its_t_test():
    for effect, n, alpha in ((1.0, 13, 0.05), (0.4, 30, 0.001), (2.0, 6, 0.01)):
        critical, shift = stats.t.isf(alpha / 2, n - 1), effect * math.sqrt(n)
        power = stats.nct.sf(critical, n - 1, shift) + stats.nct.cdf(-critical, n - 1, shift)
        assert chance([(n, alpha)], effect) == pytest.approx(power, abs=0.02)
    assert chance([(3, 0.0), (6, 0.0)], 5.0) == 0 == chance([], 5.0)


def test_seeds_for_an_effect_find_it_nine_times_in_ten():
    """The schedule of a claim that is open after six pairs of six that were planned, a tenth of the error."""
    made = [Analysis(1, {}, next_budget(None, seeds=6, planned=6))]
    claim = Claim(**vars(pair("a", "control")), metric="f1", split="test", comparisons=9, analyses=1)
    claim = replace(claim, n=6, share=0.1, schedule=((6, 0.004),))
    needed = [seeds_for(effect, claim, made) for effect in (3.0, 2.2, 1.5, 1.0)]
    assert needed == sorted(needed)
    assert all(seeds % 3 == 0 for seeds in needed)
    assert seeds_for(0.1, claim, made) is None
    for effect, seeds in zip((2.2, 1.5, 1.0), needed[1:], strict=True):
        assert found_of_open(effect, seeds - 3) < 0.89 < found_of_open(effect, seeds), effect


def found_of_open(effect: float, seeds: int) -> float:
    """Return how many of the studies that are open at six pairs find the effect by then: chance left them behind."""
    blocks = list(range(6, seeds + 1, 3))
    spending = [0.1 * (0.04 + 0.01 * b / (b + HALF)) for b in range(len(blocks))]
    draws = np.random.default_rng(1).normal(effect, 1.0, size=(4000, seeds))
    t = np.stack([draws[:, :n].mean(axis=1) / stats.sem(draws[:, :n], axis=1) for n in blocks])
    found = t > np.array(critical_values(list(zip(blocks, spending, strict=True))))[:, None]
    return found[1:, ~found[0]].any(axis=0).mean()
