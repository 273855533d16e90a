"""The interval of a mean, worked out by hand."""

import math

import pytest

from adalayers.results.intervals import mean_interval


def test_mean_interval_by_hand():
    # 1 to 5: mean 3, SD sqrt(2.5), and 2.776445 is the 97.5% point of t with 4 degrees of freedom in any table.
    half = 2.776445 * math.sqrt(2.5 / 5)
    assert mean_interval([1.0, 2.0, 3.0, 4.0, 5.0]) == pytest.approx((3, 3 - half, 3 + half, 5), abs=1e-6)
    _, low, high, _ = mean_interval([0.9, 0.95, 0.99, 0.999, 1.0, 0.2], limits=(0.0, 1.0))
    assert (high, low > 0) == (1.0, True)
    assert mean_interval([0.1, 0.05, 0.01, 0.0, 0.8], limits=(0.0, 1.0))[1] == 0.0


@pytest.mark.parametrize(
    ("values", "mean", "n"),
    [
        ([math.nan], math.nan, 0),
        ([0.5, math.nan], 0.5, 1),
        ([1.0, 2.0, 3.0, 4.0, math.nan], 2.5, 4),  # four say more of the t distribution
        ([0.5] * 6, 0.5, 6),
    ],
)
def test_what_is_too_few_or_has_no_spread_has_no_interval(values, mean, n):
    assert mean_interval(values) == pytest.approx((mean, math.nan, math.nan, n), nan_ok=True)
