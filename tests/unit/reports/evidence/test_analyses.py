"""Analyses and openings of the test split: worked out again from the files, or said not to be."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from reports.evidence.analyses import analyses
from reports.evidence.boundaries import critical_values
from reports.evidence.claims import claims
from reports.evidence.evidence import Evidence
from reports.evidence.spending import HALF
from reports.page.report import details_page, short_page
from reports.parts import caveats
from reports.reading.load import load
from tests.helpers.made_scores import by_seed, plan, run, trials, whole_runs
from tests.helpers.made_up import CORE, MadeUp
from tests.helpers.pages import evidence_of, section

FIRST = "uniform"
ARMS = ("control", "a", "b")


def had(seeds: int, arms=ARMS):
    """Return trials in which every arm has so many seeds."""
    return trials(by_seed({arm: np.linspace(0.4, 0.5, seeds) for arm in arms}))


# From runs to analyses


def test_a_run_until_decided_has_an_analysis_after_each_block():
    runs = [run(dict.fromkeys(ARMS, range(1, 10)), 20, 6, 9, until_decided=True)]
    one, two = analyses(runs, had(9), plan(ARMS))
    assert (one.number, two.number) == (1, 2)
    assert one.seeds == {arm: {*range(1, 7)} for arm in ARMS}
    assert two.seeds == {arm: {*range(1, 10)} for arm in ARMS}
    assert [budget.spent(budget.seeds) for budget in (one.budget, two.budget)] == pytest.approx(
        [0.04 * 6 / 20, 0.04 * 9 / 20]
    )
    assert (one.before, two.before) == (None, one.budget)
    assert one.ended == two.ended == "after (6, 9)"


def test_a_fixed_run_and_its_extension():
    """Beyond what was first planned, every block has its analysis, looked at or not."""
    found = analyses(whole_runs(ARMS, 6, 13), had(13), plan(ARMS))
    assert [analysis.number for analysis in found] == [1, 2, 3, 4]
    assert [len(analysis.seeds["a"]) for analysis in found] == [6, 9, 12, 13]
    spent = [analysis.budget.spent(analysis.budget.seeds) for analysis in found]
    assert spent == pytest.approx([0.04 + 0.01 * b / (b + HALF) for b in (0, 1, 2, 7 / 3)])
    assert [analysis.before for analysis in found] == [None, *(analysis.budget for analysis in found[:-1])]


def test_what_an_analysis_covered_is_what_its_run_says():
    """A trial that failed and was run again later is no part of the analyses made before."""
    six = {arm: [*range(1, 7)] for arm in ARMS}
    first = run(six | {"a": [1, 3, 4, 5, 6]}, 6, 6)
    again = run({"a": [2]}, 6, 6, before=six | {"a": [1, 3, 4, 5, 6]})
    one, two = analyses([first, again], had(6), plan(ARMS))
    assert (one.seeds["a"], two.seeds["a"]) == ({1, 3, 4, 5, 6}, {*range(1, 7)})
    assert (one.budget.spent(6), two.budget.spent(6)) == (0.04, 0.04 + 0.01 / (1 + HALF))


def test_a_run_that_goes_on_for_some_arms_alone():
    three = dict.fromkeys(ARMS, range(1, 4))
    runs = [
        run(three, 20, 3, until_decided=True),
        run({"control": [4, 5, 6], "a": [4, 5, 6]}, 20, 6, until_decided=True, before=three),
    ]
    table = had(6)
    last = analyses(runs, table[(table["arm"] != "b") | (table["seed"] <= 3)], plan(ARMS))[-1]
    assert {arm: len(seeds) for arm, seeds in last.seeds.items()} == {"control": 6, "a": 6, "b": 3}
    assert last.budget.spent(3) == 0


def test_a_block_that_is_not_whole_is_no_analysis_and_no_part_of_one():
    runs = [run(dict.fromkeys(ARMS, range(1, 5)), 10, 3)]
    (one,) = analyses(runs, had(4), plan(ARMS))
    assert one.seeds["a"] == {1, 2, 3}
    assert analyses([run(dict.fromkeys(ARMS, (1, 2)), 10)], had(2), plan(ARMS)) == []


def test_seeds_count_from_the_studys_own():
    runs = [run(dict.fromkeys(ARMS, range(101, 107)), 6, 3, 6, until_decided=True)]
    table = had(6).assign(seed=lambda rows: rows["seed"] + 100)
    one, two = analyses(runs, table, plan(ARMS, seed=100))
    assert (one.seeds["a"], two.seeds["a"]) == ({101, 102, 103}, {*range(101, 107)})


def test_a_row_that_is_gone_is_gone_from_every_analysis():
    table = had(6)
    gone = (table["arm"] == "a") & (table["seed"] == 2)
    found = analyses(whole_runs(ARMS, 3, 6), table[~gone], plan(ARMS))
    assert [analysis.seeds["a"] for analysis in found] == [{1, 3}, {1, 3, 4, 5, 6}]


def test_an_arm_that_joined_later_has_no_error_of_earlier_analyses():
    """At the first analysis two comparisons have half of 4% each; the third one has a third of what came later."""
    runs = whole_runs(ARMS, 6, 12)
    later = replace(runs[1], covered=({**runs[1].covered[0], "new": [*range(1, 13)]},))
    rng = np.random.default_rng(0)
    names = (*ARMS, "new")
    table = trials(by_seed({arm: rng.normal(0.4, 0.01, 12) for arm in names}))
    found = analyses([runs[0], later], table, plan(names))
    assert [sorted(analysis.seeds) for analysis in found] == [sorted(ARMS), sorted(names), sorted(names)]
    criticals = {claim.arm: claim.critical for claim in claims(table, plan(names), found, {})}
    thirds = [(6 + 3 * b, 0.01 * b / (b + HALF) / 3) for b in (1, 2)]
    assert criticals["new"] == pytest.approx(critical_values(thirds)[-1])
    halves = [(6, 0.04 / 2), *((n, 0.04 / 2 + error) for n, error in thirds)]
    assert criticals["a"] == pytest.approx(critical_values(halves)[-1])


# On the page


def test_rebuilding_is_no_analysis(tmp_path):
    made = MadeUp(seeds=6, search=0, effects={FIRST: 0.1}).ran((3, 6), (), planned=(20, 20))
    before, again = evidence_of(made, tmp_path), Evidence(load(tmp_path))
    assert [analysis.number for analysis in before.analyses] == [1, 2]
    assert before.analyses == again.analyses
    assert before.claims == again.claims
    assert short_page(before).text() == short_page(again).text()


def test_no_whole_block_is_said(tmp_path):
    made = MadeUp(seeds=2, search=0).ran((2,))
    made.study["runs"]["history"][0] |= {"analyses": [], "planned": 20}
    evidence = evidence_of(made, tmp_path)
    assert evidence.analyses == []
    assert {claim.n for claim in evidence.claims} == {0}
    assert "No whole block of seeds has ended" in section(details_page(evidence).text(), "Analyses")
    assert "**There is no answer yet**" in section(short_page(evidence).text(), "Answer")


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
