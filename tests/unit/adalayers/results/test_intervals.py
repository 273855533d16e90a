"""The interval of a mean, worked out by hand."""

import math

import pytest

from adalayers.results.intervals import Interval, mean_interval


def test_mean_interval_by_hand():
    # 1 to 5: mean 3, SD sqrt(2.5), and 2.776445 is the 97.5% point of t with 4 degrees of freedom in any table.
    interval = mean_interval([1.0, 2.0, 3.0, 4.0, 5.0])
    half = 2.776445 * math.sqrt(2.5 / 5)
    assert (interval.n, interval.mean) == (5, 3.0)
    assert (interval.low, interval.high) == pytest.approx((3 - half, 3 + half), abs=1e-6)
    cut = mean_interval([0.9, 0.95, 0.99, 0.999, 1.0, 0.2], limits=(0.0, 1.0))
    assert (cut.high, cut.low > 0) == (1.0, True)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([math.nan], Interval(None, None, None, 0)),
        ([0.5, math.nan], Interval(0.5, None, None, 1)),
        ([1.0, 2.0, 3.0, 4.0, math.nan], Interval(2.5, None, None, 4)),  # four say more of the t distribution
        ([0.5] * 6, Interval(0.5, None, None, 6)),
    ],
)
def test_what_is_too_few_or_has_no_spread_has_no_interval(values, expected):
    assert mean_interval(values) == expected
