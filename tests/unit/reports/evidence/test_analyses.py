"""Analyses and openings of the test split, as the files say them."""

import numpy as np
import pytest
from scipy import stats

from reports.evidence.evidence import Evidence
from reports.reading.load import load
from reports.tables.arms import optimism
from tests.helpers.made_up import CORE, MadeUp
from tests.helpers.pages import details, evidence_of, page


def test_rebuilding_is_no_analysis(tmp_path):
    made = MadeUp(seeds=6, search=0, effects={"uniform": 0.1}).ran((6,), (), planned=(20, 20))
    before, again = evidence_of(made, tmp_path), Evidence(load(tmp_path))
    assert [(analysis.after, analysis.level) for analysis in before.analyses] == [(6, 0.03)]
    assert before.analyses == again.analyses
    assert before.claims == again.claims
    assert page(before) == page(again)
    assert "| 1 | 6 | 3.00% |" in details(before)


def test_no_analysis_is_said(tmp_path):
    evidence = evidence_of(MadeUp(seeds=2, search=0).ran((2,)), tmp_path)
    assert evidence.analyses == []
    assert {claim.n for claim in evidence.claims} == {2}


def test_openings_and_optimism(tmp_path):
    made = MadeUp(seeds=5, search=0).ran((3,), (5,))
    gaps = (0.01, 0.02, 0.03, 0.01, 0.03)
    for row, gap in zip(made.of(CORE[1]), gaps, strict=True):
        row["test/matthews"] = row["val/matthews"] - gap
    evidence = evidence_of(made, tmp_path)
    table = optimism(evidence.trials, evidence.plan).set_index("arm")
    low, high = stats.t.interval(0.95, 4, 0.02, 0.01 / np.sqrt(5))
    assert tuple(table.loc[CORE[1], ["mean", "low", "high", "n"]]) == pytest.approx((0.02, low, high, 5))
    assert [run.test_scored for run in evidence.loaded.study.runs.history] == [45, 30]
    made = MadeUp(seeds=2, search=0, test=False)
    evidence = evidence_of(made, tmp_path)
    assert optimism(evidence.trials, evidence.plan).empty
