"""Rank correlation, and how large it gets by chance against published tables and made orders."""

import pytest

from reports.tables.rank_agreement import critical, spearman


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
