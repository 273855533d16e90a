"""Analyses and openings of the test split, as the files say them."""

import numpy as np
import pytest
from scipy import stats

from reports.evidence.evidence import Evidence
from reports.page.report import details_page, short_page
from reports.parts import caveats
from reports.reading.load import load
from tests.helpers.made_up import CORE, MadeUp
from tests.helpers.pages import evidence_of, section


def test_rebuilding_is_no_analysis(tmp_path):
    made = MadeUp(seeds=6, search=0, effects={"uniform": 0.1}).ran((6,), (), planned=(20, 20))
    before, again = evidence_of(made, tmp_path), Evidence(load(tmp_path))
    assert [(analysis.after, analysis.level) for analysis in before.analyses] == [(6, 0.03)]
    assert before.analyses == again.analyses
    assert before.claims == again.claims
    assert short_page(before).text() == short_page(again).text()
    assert "| 1 | 6 | 3.00% |" in section(details_page(before).text(), "Analyses")


def test_no_analysis_is_said(tmp_path):
    evidence = evidence_of(MadeUp(seeds=2, search=0).ran((2,)), tmp_path)
    assert evidence.analyses == []
    assert {claim.n for claim in evidence.claims} == {2}
    assert "There was no analysis yet: it takes 6 seeds" in section(details_page(evidence).text(), "Analyses")


def test_openings_and_optimism(tmp_path):
    made = MadeUp(seeds=5, search=0).ran((3,), (5,))
    gaps = (0.01, 0.02, 0.03, 0.01, 0.03)
    for row, gap in zip(made.of(CORE[1]), gaps, strict=True):
        row["test/matthews"] = row["val/matthews"] - gap
    info = caveats.info(evidence_of(made, tmp_path))
    table = info.optimism.set_index("arm")
    low, high = stats.t.interval(0.95, 4, 0.02, 0.01 / np.sqrt(5))
    assert tuple(table.loc[CORE[1], ["mean", "low", "high", "n"]]) == pytest.approx((0.02, low, high, 5))
    assert info.opened == 2
    assert [run.test_scored for run in info.runs] == [45, 30]
    made = MadeUp(seeds=2, search=0, test=False)
    assert caveats.info(evidence_of(made, tmp_path)).optimism.empty
