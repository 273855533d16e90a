"""Rank correlation, and how large it gets by chance against published tables and made orders."""

import itertools

import numpy as np
import pytest

from reports.evidence.rank_agreement import critical, spearman


def test_ties_have_their_mean_rank():
    # Ranks 1.5, 1.5, 3 against 1, 2, 3
    assert spearman([1.0, 1.0, 2.0], [1.0, 3.0, 9.0]) == pytest.approx(0.75**0.5)


@pytest.mark.parametrize(
    ("a", "b"), [([], []), ([1, 2], [1, 2]), ([1, 2, float("nan")], [1, 2, 3]), ([1, 1, 1], [1, 2, 3])]
)
def test_no_order_no_correlation(a, b):
    assert spearman(a, b) is None
    assert spearman(b, a) is None


def test_critical_values_are_those_of_published_tables():
    """Two-sided 5% (Zar 1984, table B.20); up to four there is none."""
    assert [critical(n) for n in (0, 2, 3, 4)] == [None] * 4
    known = {5: 1.0, 6: 0.886, 7: 0.786, 8: 0.738}
    for n, value in known.items():
        assert critical(n) == pytest.approx(value, abs=5e-4)
    for n, value in {12: 0.587, 24: 0.406}.items():  # approximated: a little below
        assert critical(n) == pytest.approx(value, abs=0.012)


@pytest.mark.parametrize("n", [5, 6, 7])
def test_by_chance_it_is_reached_as_often_as_said_and_no_more(n):
    first = np.arange(n, dtype=float)
    sizes = [abs(spearman(first, order)) for order in itertools.permutations(range(n))]
    reached = np.array(sizes) >= critical(n) - 1e-9
    assert 0 < reached.mean() <= 0.05
    below = max(size for size in sizes if size < critical(n) - 1e-9)
    assert (np.array(sizes) >= below - 1e-9).mean() > 0.05
