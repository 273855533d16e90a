"""Critical values as if every analysis of every comparison were the only one: what calibration must catch."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from scipy import stats


def each_alone(schedule: Sequence[tuple[int, float]]) -> list[float]:
    """Return for each analysis (n pairs, error spent) the |t| of a test at 5%, whatever the error."""
    return [_at_five_percent(n) for n, _ in schedule]


@functools.cache
def _at_five_percent(n: int) -> float:
    return float(stats.t.isf(0.025, n - 1))
