"""Analyses and openings of the test split, as the files say them."""

from reports.evidence.evidence import Evidence
from reports.reading.load import load
from tests.helpers.made_up import MadeUp
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
