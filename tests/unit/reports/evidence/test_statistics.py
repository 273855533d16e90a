"""Statistics against numbers worked out by hand, or by another formula or library."""

import math

import pytest

from adalayers.results.intervals import Interval, mean_interval
from reports.evidence.statistics import (
    Paired,
    differences,
    paired,
    share_interval,
    unpaired_critical,
    unpaired_p,
)


def pairs(a: dict[int, float], b: dict[int, float]) -> Paired:
    """Return the differences a - b, on the seeds that both have."""
    known = differences({"a": a, "b": b}, {"a": 1.0, "b": -1.0}, {*a, *b})
    largest = max((abs(value) for side in (a, b) for value in side.values() if value == value), default=0.0)
    return paired(known.values(), scale=largest)


def test_mean_interval_by_hand():
    # 1 to 5: mean 3, SD sqrt(2.5), and 2.776445 is the 97.5% point of t with 4 degrees of freedom in any table.
    interval = mean_interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert interval.n == 5
    assert interval.mean == 3.0
    assert interval.high == pytest.approx(3 + 2.776445 * math.sqrt(2.5 / 5), abs=1e-6)
    assert interval.low == pytest.approx(3 - 2.776445 * math.sqrt(2.5 / 5), abs=1e-6)


def test_an_interval_stays_within_the_limits_of_its_values():
    found = mean_interval([0.9, 0.95, 0.99, 0.999, 1.0, 0.2], limits=(0.0, 1.0))
    assert (found.high, found.low > 0) == (1.0, True)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], Interval(None, None, None, 0)),
        ([math.nan], Interval(None, None, None, 0)),
        ([0.5], Interval(0.5, None, None, 1)),
        ([0.5, math.nan], Interval(0.5, None, None, 1)),
        ([1.0, 2.0, 3.0, 4.0], Interval(2.5, None, None, 4)),  # four say more of the t distribution
        ([1.0, 2.0, 3.0, 4.0, math.nan], Interval(2.5, None, None, 4)),
        ([0.5] * 6, Interval(0.5, None, None, 6)),
    ],
)
def test_what_is_too_few_or_has_no_spread_has_no_interval(values, expected):
    assert mean_interval(values) == expected


def test_paired_differences_by_hand():
    # Differences 1, 2, 3 on the seeds that both have: t = 2 / (1 / sqrt 3) = 3.4641 with 2 degrees of
    # freedom, whose two-sided p is 1 - t / sqrt(t^2 + 2).
    found = pairs({1: 2.0, 2: 4.0, 3: 6.0, 9: 100.0}, {3: 3.0, 2: 2.0, 1: 1.0, 8: -100.0})
    assert (found.n, found.difference, found.sd, found.above) == (3, 2.0, 1.0, 3)
    t = 2 * math.sqrt(3)
    assert found.p_value == pytest.approx(1 - t / math.sqrt(t**2 + 2))


def test_differences_weigh_arms_on_the_seeds_that_all_have():
    values = {"a": {1: 1.0, 2: 2.0, 3: 3.0}, "b": {2: 10.0, 3: 20.0}, "c": {3: 1.0, 2: math.nan}}
    weights = {"a": 1.0, "b": 0.5, "c": -1.5}
    assert differences(values, weights, {1, 2, 3}) == {3: 3.0 + 10.0 - 1.5}
    assert list(differences(values, {"a": 1.0, "b": -1.0}, {3, 2, 1}).items()) == [(2, -8.0), (3, -17.0)]
    assert differences(values, {"a": 1.0, "b": -1.0}, {2}) == {2: -8.0}
    assert differences(values, {"a": 1.0, "nobody": -1.0}, {1, 2, 3}) == {}


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
    assert pairs(a, b) == expected


def test_differences_that_are_the_same_but_for_rounding_are_not_tested():
    assert 0.3 - 0.2 != 0.4 - 0.3
    assert pairs({1: 0.3, 2: 0.4}, {1: 0.2, 2: 0.3}).p_value is None


def test_seeds_won_and_their_exact_interval():
    found = pairs({1: 2.0, 2: 0.3 - 0.2, 3: 3.0, 4: 1.0}, {1: 1.0, 2: 0.4 - 0.3, 3: 1.0, 4: 2.0})
    assert (found.n, found.above, found.ties) == (4, 2, 1)  # 0.3 - 0.2 is 0.4 - 0.3, rounding apart
    # By hand: all of 3 won, two-sided at 0.05: low is the p with p^3 = 0.025.
    assert share_interval(3, 0, 3, 0.05) == pytest.approx((0.025 ** (1 / 3), 1.0))


@pytest.mark.parametrize(
    ("degrees", "at_5", "at_1"),
    [(0.01, 2.447, 3.707), (15, 2.440, 3.654), (30, 2.435, 3.557), (45, 2.435, 3.514)],
)
def test_unpaired_samples_by_the_table_of_behrens_and_fisher(degrees, at_5, at_1):
    """Fisher and Yates, Statistical Tables, table VI, six degrees of freedom each, by the angle of standard errors."""
    angle = math.radians(degrees)
    samples = [Paired(7, None, 7**0.5 * side, None) for side in (math.sin(angle), math.cos(angle))]
    assert unpaired_critical(0.05, *samples) == pytest.approx(at_5, abs=1.1e-3)
    assert unpaired_critical(0.01, *samples) == pytest.approx(at_1, abs=1.1e-3)
    for alpha in (0.05, 1e-5):  # one critical value for both orders, and its p value is alpha
        critical = unpaired_critical(alpha, *samples)
        assert unpaired_critical(alpha, *reversed(samples)) == pytest.approx(critical)
        assert unpaired_p(critical, *samples) == pytest.approx(alpha)
