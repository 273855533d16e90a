"""Interim analyses and openings of the test split: worked out again from the files, or said not to be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from adalayers.results.study_file import parse
from reports.evidence.analyses import changed, recorded
from reports.evidence.evidence import Evidence
from reports.page.report import Page
from reports.parts import openings
from reports.reading.load import Loaded, load
from tests.helpers.made_up import CONTROL, CORE, MadeUp

FIRST, SECOND = CORE[1], CORE[2]


def analysed(made: MadeUp, *seeds: list[int]) -> MadeUp:
    """Record a run per list of seeds, which every arm completed in it."""
    names = [arm["arm"] for arm in made.arms]
    runs: list[dict[str, Any]] = [
        {"started": f"2026-05-0{day}", "ended": f"2026-05-0{day}T12:00", "commit": "abc", "dirty": False}
        | {"confirmed": len(names) * len(added), "test_scored": len(names) * len(added)}
        | {"seeds": {name: list(added) for name in names}}
        for day, added in enumerate(seeds, start=1)
    ]
    idle = {
        "started": "2026-05-09",
        "ended": "2026-05-09",
        "confirmed": 0,
        "seeds": {name: [] for name in names},
    }
    made.study["happened"] |= {"looks": len(seeds), "test_opened": len(seeds), "runs": [*runs, idle]}
    return made


def scored(made: MadeUp, arm: str, differences: list[float]) -> MadeUp:
    """Set an arm's test scores to the control's plus these differences."""
    for row, control, difference in zip(made.of(arm), made.of(CONTROL), differences, strict=True):
        row["test/matthews"] = control["test/matthews"] + difference
    return made


def read(made: MadeUp, tmp_path) -> Loaded:
    return load(made.write(tmp_path))


def test_an_earlier_analysis_is_that_of_its_seeds_at_its_level(tmp_path):
    differences = [0.2, 0.21, 0.19, -0.3, 0.5, 0.1]
    made = analysed(scored(MadeUp(seeds=6, search=0), FIRST, differences), [1, 2, 3], [4, 5, 6])
    first, second = Evidence(read(made, tmp_path)).analyses
    claim = next(claim for claim in first.claims if claim.arm == FIRST)
    assert (claim.n, claim.looks, claim.comparisons) == (3, 1, 14)
    half = stats.t.isf(0.025 / 14 / 2, 2) * 0.01 / np.sqrt(3)
    assert (claim.low, claim.high) == pytest.approx((0.2 - half, 0.2 + half))
    assert second.seeds[FIRST] == {1, 2, 3, 4, 5, 6}
    assert list(second.claims) == Evidence(read(made, tmp_path)).claims


def test_a_claim_that_no_longer_holds_is_said_plainly(tmp_path):
    made = MadeUp(seeds=6, search=0)
    scored(made, FIRST, [0.2, 0.2001, 0.1999, -0.3, 0.5, 0.1])  # certain at analysis 1, open at 2
    scored(made, SECOND, [0.2, 0.2001, 0.1999, 0.2, 0.2001, 0.1999])  # at both
    loaded = read(analysed(made, [1, 2, 3], [4, 5, 6]), tmp_path)
    evidence = Evidence(loaded)
    verdicts = {claim.arm: claim.verdict for claim in evidence.claims}
    assert (verdicts[FIRST], verdicts[SECOND]) == ("not enough evidence", "better")
    assert changed(evidence.analyses[0], evidence.claims) == [FIRST]
    page = Page(evidence).text()
    assert f"**A claim of an earlier interim analysis no longer holds**: `{FIRST}`" in page
    assert f"| serious | A claim of an earlier interim analysis no longer holds: `{FIRST}`" in page


def test_an_arm_that_joined_later_is_no_comparison_of_the_first_analysis(tmp_path):
    made = analysed(MadeUp(seeds=4, search=0), [1, 2], [3, 4])
    del made.study["happened"]["runs"][0]["seeds"]["best"]
    first, second = Evidence(read(made, tmp_path)).analyses
    assert {claim.comparisons for claim in first.claims} == {13}
    assert {claim.comparisons for claim in second.claims} == {14}


def test_analyses_without_a_record_of_seeds(tmp_path):
    made = analysed(MadeUp(seeds=2, search=0), [1], [2])
    del made.study["happened"]["runs"][0]["seeds"]
    assert [one.seeds for one in recorded(parse(made.study)[0].happened.runs)] == [None, None]
    loaded = read(made, tmp_path)
    assert "not known" in Page(Evidence(loaded)).text()
    made.study["happened"]["looks"] = 5  # more than are recorded: nothing is known of any
    assert Evidence(read(made, tmp_path)).analyses == []


def test_openings_and_optimism(tmp_path):
    made = analysed(MadeUp(seeds=3, search=0), [1, 2], [3])
    for row, gap in zip(made.of(FIRST), (0.01, 0.02, 0.03), strict=True):
        row["test/matthews"] = row["val/matthews"] - gap
    loaded = read(made, tmp_path)
    table = openings.info(Evidence(loaded)).optimism.set_index("arm")
    low, high = stats.t.interval(0.95, 2, 0.02, 0.01 / np.sqrt(3))
    assert tuple(table.loc[FIRST, ["mean", "low", "high", "n"]]) == pytest.approx((0.02, low, high, 3))
    page = Page(Evidence(loaded)).text()
    assert "opened in 2 runs" in page
    assert "| 2026-05-01T12:00 | 30 | `abc` |" in page
    made = MadeUp(seeds=2, search=0, test=False)
    assert openings.info(Evidence(read(made, tmp_path))).optimism.empty


def test_the_alpha_spent_is_on_the_page(tmp_path):
    loaded = read(analysed(MadeUp(seeds=2, search=0), [1], [2]), tmp_path)
    text = Page(Evidence(loaded)).text()
    assert "this one 1.250%, shared by 14 comparisons" in text
    assert {claim.interval_level for claim in Evidence(loaded).claims} == {1 - 0.0125 / 14}
