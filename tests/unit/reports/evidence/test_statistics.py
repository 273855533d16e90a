"""Statistics against numbers worked out by hand, or by another formula or library."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from reports.evidence.statistics import (
    Interval,
    Paired,
    adjusted_p,
    analysis_alpha,
    analysis_cost,
    comparison_alpha,
    difference_interval,
    mean_interval,
    paired_difference,
    power,
    sd_upper_limit,
    seeds_needed,
    share_interval,
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
    assert difference_interval(paired, 0.1) == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ({}, {}, Paired(0, None, None, None)),
        ({1: 0.5}, {2: 0.5}, Paired(0, None, None, None)),
        ({1: 0.5, 2: math.nan}, {1: 0.25, 2: 0.1}, Paired(1, 0.25, None, None, above=1)),
        ({1: 0.5, 2: 0.5}, {1: 0.5, 2: 0.5}, Paired(2, 0.0, 0.0, None, ties=2)),
        ({1: 0.75, 2: 1.75}, {1: 0.5, 2: 1.5}, Paired(2, 0.25, 0.0, None, above=2)),
    ],
)
def test_differences_that_cannot_be_tested(a, b, expected):
    paired = paired_difference(pd.Series(a, dtype=float), pd.Series(b, dtype=float))
    assert paired == expected
    assert difference_interval(paired, 0.05) is None


def test_differences_that_are_the_same_but_for_rounding_are_not_tested():
    assert 0.3 - 0.2 != 0.4 - 0.3
    paired = paired_difference(pd.Series({1: 0.3, 2: 0.4}), pd.Series({1: 0.2, 2: 0.3}))
    assert paired.p_value is None


def test_looks_spend_half_of_what_is_left():
    assert [analysis_alpha(number) for number in (1, 2, 3)] == pytest.approx([0.025, 0.0125, 0.00625])
    assert sum(analysis_alpha(number) for number in range(1, 20)) < 0.05
    assert comparison_alpha(2, 5) == pytest.approx(0.0025)


def test_what_a_analysis_costs_in_width():
    # One comparison, very many seeds: 2.2414 (97.5%) against 1.9600 (95%), of the normal distribution.
    assert analysis_cost(1, 1, 10**6) == pytest.approx(2.2414 / 1.9600, abs=1e-4)
    assert analysis_cost(2, 14, 5) > analysis_cost(1, 14, 5) > 1


def test_bonferroni_agrees_with_a_table():
    # Bonferroni's t for 5 comparisons at 5%, 10 degrees of freedom: 3.1693 (Dunn 1961). Analysis 1 has half of
    # the level, so its 5 comparisons have the t of 10 at 5%: 3.5814.
    pair = Paired(11, 0.0, math.sqrt(11.0), 1.0)
    assert difference_interval(pair, 0.05 / 5)[1] == pytest.approx(3.1693, abs=1e-4)
    assert difference_interval(pair, comparison_alpha(1, 5))[1] == pytest.approx(3.5814, abs=1e-4)


@pytest.mark.parametrize("seed", range(20))
def test_an_interval_leaves_out_zero_exactly_where_its_adjusted_p_says_so(seed):
    rng = np.random.default_rng(seed)
    number, m = seed % 3 + 1, 8
    for shift in rng.uniform(0, 5, size=m):
        pair = paired_difference(pd.Series(rng.normal(shift, 1, size=6)), pd.Series(rng.normal(0, 1, size=6)))
        low, high = difference_interval(pair, comparison_alpha(number, m))
        assert (adjusted_p(pair.p_value, number, m) <= 0.05) == (low > 0 or high < 0)


def test_other_variance_is_added_to_that_of_seeds():
    # SD 3 over 9 seeds: variance of the mean 1. With 3 more, twice the width.
    pair = Paired(9, 1.0, 3.0, 0.5)
    low, high = difference_interval(pair, 0.05)
    wider = difference_interval(pair, 0.05, 3.0)
    assert wider == pytest.approx((1 - (high - low), 1 + (high - low)))


def test_seeds_won_and_their_exact_interval():
    a, b = pd.Series([2.0, 0.3 - 0.2, 3.0, 1.0]), pd.Series([1.0, 0.4 - 0.3, 1.0, 2.0])
    pair = paired_difference(a, b)
    assert (pair.n, pair.above, pair.ties) == (4, 2, 1)  # 0.3 - 0.2 is 0.4 - 0.3, rounding apart
    beta = (stats.beta.ppf(0.005, 7, 3), stats.beta.ppf(0.995, 8, 2))  # Clopper and Pearson's quantiles
    assert share_interval(7, 0, 9, 0.01) == pytest.approx(beta)
    # By hand: all of 3 won, two-sided at 0.05: low is the p with p^3 = 0.025.
    assert share_interval(3, 0, 3, 0.05) == pytest.approx((0.025 ** (1 / 3), 1.0))
    # A tie widens both ends: as a loss below, as a win above.
    assert share_interval(2, 1, 3, 0.05) == pytest.approx(
        (stats.binomtest(2, 3).proportion_ci(0.95, method="exact").low, 1.0)
    )


def test_sd_upper_limit_by_table():
    # The 5% point of chi-square with 4 degrees of freedom is 0.710723.
    assert sd_upper_limit(1.0, 5) == pytest.approx(math.sqrt(4 / 0.710723), rel=1e-6)


@pytest.mark.parametrize(
    ("n", "comparisons", "expected"), [(3, 1, 0.18), (13, 1, 0.91), (13, 15, 0.51), (20, 15, 0.85)]
)
def test_power_for_an_effect_of_one_sd(n, comparisons, expected):
    assert power(1.0, n, 0.05 / comparisons) == pytest.approx(expected, abs=0.005)


def test_power_agrees_with_the_noncentral_t():
    for effect, n, alpha in ((1.0, 13, 0.05), (0.4, 30, 0.001), (2.0, 4, 0.01)):
        critical, shift = stats.t.isf(alpha / 2, n - 1), effect * math.sqrt(n)
        expected = stats.nct.sf(critical, n - 1, shift) + stats.nct.cdf(-critical, n - 1, shift)
        assert power(effect, n, alpha) == pytest.approx(expected, abs=1e-4)
    assert power(50.0, 2, 1e-4) < 0.01  # where scipy's noncentral t has no number


def test_power_agrees_with_simulation():
    rng = np.random.default_rng(1)
    found = stats.ttest_1samp(rng.normal(1.0, 1.0, size=(4000, 6)), 0.0, axis=1).pvalue <= 0.05
    assert power(1.0, 6, 0.05) == pytest.approx(found.mean(), abs=0.025)


def test_seeds_needed_is_the_first_that_suffices():
    for effect, alpha in ((1.0, 0.05), (1.0, 0.05 / 15), (0.3, 0.01), (5.0, 0.05), (50.0, 1e-4)):
        n = seeds_needed(effect, alpha)
        assert power(effect, n, alpha) >= 0.9
        assert n == 2 or power(effect, n - 1, alpha) < 0.9
    assert seeds_needed(0.01, 0.05) is None
