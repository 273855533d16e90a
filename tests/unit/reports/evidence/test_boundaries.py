"""Critical values of repeated t tests, against tables of t, simulated studies and the normal theory."""

import math

import numpy as np
import pytest
from scipy import optimize, stats

from reports.evidence.boundaries import critical_values

STUDIES = 200_000


def rejections(schedule, seed):
    """Yield for each analysis the error spent up to it, and the share of studies of a true null that rejected it."""
    draws = np.random.default_rng(seed).normal(size=(STUDIES, schedule[-1][0]))
    rejected = np.zeros(STUDIES, dtype=bool)
    for (n, error), critical in zip(schedule, critical_values(schedule), strict=True):
        seen = draws[:, :n]
        rejected |= np.abs(seen.mean(axis=1)) > critical * seen.std(axis=1, ddof=1) / math.sqrt(n)
        yield error, rejected.mean()


def margin(error):
    return 4 * math.sqrt(error * (1 - error) / STUDIES)


@pytest.mark.parametrize("n", [2, 3, 5, 20, 200])
@pytest.mark.parametrize("error", [0.05, 0.001])
def test_one_analysis_has_the_quantile_of_t(n, error):
    assert critical_values([(n, error)]) == pytest.approx([stats.t.isf(error / 2, n - 1)], rel=1e-6)


@pytest.mark.parametrize(
    "schedule",
    [
        [(3, 0.005), (6, 0.015), (9, 0.03), (10, 0.05)],
        [(4, 0.02), (5, 0.03), (12, 0.2)],
        [(3, 0.0), (6, 0.05), (9, 0.05), (10, 0.1)],
    ],
)
def test_true_nulls_are_rejected_as_often_as_the_error_says(schedule):
    for error, share in rejections(schedule, seed=0):
        assert share == pytest.approx(error, abs=margin(error))


@pytest.mark.parametrize(
    "schedule",
    [[(2, 0.02), (3, 0.03), (12, 0.2)], [(3, 1e-5), (6, 5e-5), (9, 0.02), (12, 0.02001), (13, 0.05)]],
)
def test_where_errors_or_pairs_are_few_true_nulls_are_not_rejected_too_often(schedule):
    shares = []
    for error, share in rejections(schedule, seed=1):
        assert share <= error + margin(error)
        shares.append(share)
    assert shares[-1] > 0.9 * schedule[-1][1]


@pytest.mark.parametrize(
    ("schedule", "values"),
    [
        (
            [(6 + 3 * b, 0.1 * (0.04 + 0.01 * b / (b + 4))) for b in range(6)],
            [5.0302444, 5.6794612, 5.3468488, 5.0859026, 4.9133211, 4.7973347],
        ),
        (
            [(n, 0.04 * n / 20 * 0.2) for n in (6, 9, 12, 15, 18, 20)],
            [5.6562428, 4.7024212, 4.1287552, 3.8124179, 3.610321, 3.5537355],
        ),
    ],
)
def test_the_values_are_those_of_published_pages(schedule, values):
    """Of Student's t in finite sums, exact to 1e-15: what is computed faster since may differ by 1e-6."""
    assert critical_values(schedule) == pytest.approx(values, abs=1e-6)


def test_what_spends_nothing_rejects_nothing():
    assert critical_values([(3, 0.0), (6, 0.01), (9, 0.01)])[::2] == [math.inf, math.inf]
    assert critical_values([(1, 0.01)]) == [math.inf]
    assert critical_values([]) == []


def test_an_analysis_that_spent_nothing_costs_nothing():
    assert critical_values([(3, 0.0), (6, 0.05)])[1] == pytest.approx(stats.t.isf(0.025, 5), abs=1e-3)


@pytest.mark.parametrize("schedule", [[(3, 0.01), (3, 0.02)], [(6, 0.01), (3, 0.02)], [(3, 0.02), (6, 0.01)]])
def test_numbers_of_pairs_grow_and_errors_do_not_fall(schedule):
    with pytest.raises(ValueError, match="growing numbers of pairs"):
        critical_values(schedule)


def test_with_many_pairs_they_are_those_of_the_normal_theory():
    """Pocock's: the same value at both of two analyses of equal size, 2.178 (Pocock 1977)."""
    both = stats.multivariate_normal([0, 0], [[1, math.sqrt(0.5)], [math.sqrt(0.5), 1]])

    def rejected(value: float) -> float:
        return 1 - both.cdf([value, value], lower_limit=[-value, -value])

    pocock = optimize.brentq(lambda value: rejected(value) - 0.05, 1.9, 2.5)
    assert pocock == pytest.approx(2.178, abs=1e-3)
    found = critical_values([(2000, 2 * stats.norm.sf(pocock)), (4000, 0.05)])
    assert found == pytest.approx([pocock, pocock], abs=1e-2)
