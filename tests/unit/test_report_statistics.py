"""Statistics against numbers worked out by hand, or by another formula or library."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from reports.statistics import (
    Interval,
    Paired,
    difference_interval,
    holm,
    mean_interval,
    paired_difference,
    power,
    sd_upper_limit,
    seeds_needed,
)


def test_mean_interval_by_hand():
    # 1, 2, 3: mean 2, SD 1, and 4.302653 is the 97.5% point of t with 2 degrees of freedom in any table.
    interval = mean_interval([1.0, 2.0, 3.0])
    assert interval.n == 3
    assert interval.mean == 2.0
    assert interval.high == pytest.approx(2 + 4.302653 / math.sqrt(3), abs=1e-6)
    assert interval.low == pytest.approx(2 - 4.302653 / math.sqrt(3), abs=1e-6)


def test_mean_interval_agrees_with_scipy_at_another_level():
    values = [0.41, 0.37, 0.44, 0.40]
    low, high = stats.t.interval(0.99, 3, loc=np.mean(values), scale=stats.sem(values))
    assert (mean_interval(values, 0.99).low, mean_interval(values, 0.99).high) == pytest.approx((low, high))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], Interval(None, None, None, 0)),
        ([math.nan], Interval(None, None, None, 0)),
        ([0.5], Interval(0.5, None, None, 1)),
        ([0.5, math.nan], Interval(0.5, None, None, 1)),
        ([0.5, 0.5, 0.5], Interval(0.5, None, None, 3)),
    ],
)
def test_what_has_no_spread_has_no_interval(values, expected):
    assert mean_interval(values) == expected


def test_paired_difference_by_hand():
    # Differences 1, 2, 3 on the seeds that both have: t = 2 / (1 / sqrt 3) = 3.4641 with 2 degrees of
    # freedom, whose two-sided p is 1 - t / sqrt(t^2 + 2).
    a, b = pd.Series({1: 2.0, 2: 4.0, 3: 6.0, 9: 100.0}), pd.Series({3: 3.0, 2: 2.0, 1: 1.0, 8: -100.0})
    paired = paired_difference(a, b)
    assert (paired.n, paired.difference, paired.sd) == (3, 2.0, 1.0)
    t = 2 * math.sqrt(3)
    assert paired.p_value == pytest.approx(1 - t / math.sqrt(t**2 + 2))


def test_paired_difference_agrees_with_scipys_related_t_test():
    rng = np.random.default_rng(0)
    a, b = pd.Series(rng.normal(size=7)), pd.Series(rng.normal(size=7))
    paired, test = paired_difference(a, b), stats.ttest_rel(a, b)
    assert paired.p_value == pytest.approx(test.pvalue)
    expected = test.confidence_interval(0.9)
    assert difference_interval(paired, 0.9) == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ({}, {}, Paired(0, None, None, None)),
        ({1: 0.5}, {2: 0.5}, Paired(0, None, None, None)),
        ({1: 0.5, 2: math.nan}, {1: 0.25, 2: 0.1}, Paired(1, 0.25, None, None)),
        ({1: 0.5, 2: 0.5}, {1: 0.5, 2: 0.5}, Paired(2, 0.0, 0.0, None)),
        ({1: 0.75, 2: 1.75}, {1: 0.5, 2: 1.5}, Paired(2, 0.25, 0.0, None)),
    ],
)
def test_differences_that_cannot_be_tested(a, b, expected):
    paired = paired_difference(pd.Series(a, dtype=float), pd.Series(b, dtype=float))
    assert paired == expected
    assert difference_interval(paired, 0.95) is None


def test_differences_that_are_the_same_but_for_rounding_are_not_tested():
    assert 0.3 - 0.2 != 0.4 - 0.3
    paired = paired_difference(pd.Series({1: 0.3, 2: 0.4}), pd.Series({1: 0.2, 2: 0.3}))
    assert paired.p_value is None


def test_holm_by_hand():
    # Sorted .01 .02 .03 .04 against .05/4, .05/3, .05/2, .05: only the first passes, .02 > .01667 stops.
    decisions = holm([0.02, 0.04, 0.01, 0.03])
    assert [decision.rejected for decision in decisions] == [False, False, True, False]
    assert [decision.p_adjusted for decision in decisions] == pytest.approx([0.06, 0.06, 0.04, 0.06])
    assert [decision.level for decision in decisions] == pytest.approx([1 - 0.05 / 4] * 4)


def test_holm_steps_down():
    # .001 against .05/3, .02 against .05/2, .06 against .05.
    decisions = holm([0.06, 0.001, 0.02])
    assert [decision.rejected for decision in decisions] == [False, True, True]
    assert [decision.p_adjusted for decision in decisions] == pytest.approx([0.06, 0.003, 0.04])
    assert [decision.level for decision in decisions] == pytest.approx([1 - 0.05 / 3, 1 - 0.05 / 3, 0.975])


def test_holm_counts_what_could_not_be_tested():
    first, untested = holm([0.03, None])
    assert not first.rejected  # 0.03 is above 0.05 / 2
    assert first.p_adjusted == pytest.approx(0.06)
    assert (untested.rejected, untested.p_adjusted) == (False, None)
    assert holm([]) == []


@pytest.mark.parametrize("seed", range(20))
def test_an_interval_leaves_out_zero_exactly_where_holm_rejects(seed):
    rng = np.random.default_rng(seed)
    pairs = [
        paired_difference(pd.Series(rng.normal(shift, 1, size=6)), pd.Series(rng.normal(0, 1, size=6)))
        for shift in rng.uniform(0, 5, size=8)
    ]
    for pair, decision in zip(pairs, holm([pair.p_value for pair in pairs]), strict=True):
        low, high = difference_interval(pair, decision.level)
        assert decision.rejected == (low > 0 or high < 0)


def test_sd_upper_limit_by_table():
    # The 5% point of chi-square with 4 degrees of freedom is 0.710723.
    assert sd_upper_limit(1.0, 5) == pytest.approx(math.sqrt(4 / 0.710723), rel=1e-6)


@pytest.mark.parametrize(
    ("n", "comparisons", "expected"), [(3, 1, 0.18), (13, 1, 0.91), (13, 15, 0.51), (20, 15, 0.85)]
)
def test_power_for_an_effect_of_one_sd(n, comparisons, expected):
    assert power(1.0, n, comparisons) == pytest.approx(expected, abs=0.01)


def test_power_agrees_with_simulation():
    rng = np.random.default_rng(1)
    found = stats.ttest_1samp(rng.normal(1.0, 1.0, size=(4000, 6)), 0.0, axis=1).pvalue <= 0.05
    assert power(1.0, 6) == pytest.approx(found.mean(), abs=0.025)


def test_seeds_needed_is_the_first_that_suffices():
    for effect, comparisons in ((1.0, 1), (1.0, 15), (0.3, 4), (5.0, 1)):
        n = seeds_needed(effect, comparisons)
        assert power(effect, n, comparisons) >= 0.9
        assert n == 2 or power(effect, n - 1, comparisons) < 0.9
    assert seeds_needed(0.01) is None
