"""The short form of `python -m tests.calibration`: false claims, planted effects, coverage."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from reports.evidence.statistics import difference_interval, paired_difference
from tests.calibration import DIFFERENCES, coverage, effects_found, false_claims, misses


def test_identical_arms_are_seldom_called_different():
    """Two comparisons, analyses at 3, 5 and 10 seeds: the interval of the share of false claims reaches below 5%."""
    share = false_claims(studies=120, comparisons=2)
    assert share.interval[0] <= 0.05, share


def test_uncorrected_analyses_would_be_caught(monkeypatch):
    """The same simulation with 5% for every comparison at every analysis: well over 5% of studies claim something."""
    monkeypatch.setattr("reports.evidence.claims.comparison_alpha", lambda analysis, comparisons: 0.05)
    share = false_claims(studies=60, comparisons=2)
    assert share.interval[0] > 0.05, share


def test_a_planted_effect_is_found_at_the_seeds_wanted():
    share, wanted = effects_found(studies=60, comparisons=2)
    assert wanted == 20  # 1 SD, 90%, at 0.0125 / 2: the alpha spent at analysis 2, for each of two
    assert share.interval[1] >= 0.9, share


@pytest.mark.parametrize("name", DIFFERENCES)
def test_misses_are_those_of_the_reports_own_interval(name):
    draw, truth = DIFFERENCES[name]
    differences = draw(np.random.default_rng(0), (300, 5))
    intervals = [
        difference_interval(paired_difference(pd.Series(row + 10), pd.Series(np.full(5, 10.0))), 0.05)
        for row in differences
    ]
    missed, none = misses(differences, truth, 0.05)
    assert none.hits == intervals.count(None)
    assert missed.hits == sum(not low <= truth <= high for low, high in filter(None, intervals))


def test_coverage_where_it_is_exact():
    rows = {(row[0], row[1]): row[2] for row in coverage(simulations=20_000, comparisons=3)}
    for n in ("3", "5", "13"):
        assert float(rows["normal", n].rstrip("%")) == pytest.approx(5, abs=0.6)
