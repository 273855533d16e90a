"""The settings that may be best: what is ruled out by hand, and how often the best one is kept."""

import json
import math

import numpy as np
import pytest
from scipy import stats

from reports.evidence.analyses import Analysis, analyses
from reports.evidence.best_set import BestSet, best_set
from reports.evidence.evidence import Evidence
from reports.evidence.spending import Budget
from reports.page.report import details_page
from reports.reading.load import load
from tests.helpers.made_scores import by_seed, first, plan, run, trials, whole_runs
from tests.helpers.made_up import CORE, MadeUp
from tests.helpers.pages import rebuild_claims

ARMS = ("control", "a", "b", "c")
WOBBLE = np.array([0.01, -0.01, 0.02, -0.02, 0.005, -0.005])


def judged(scores: dict[str, dict[int, float]], **changed) -> BestSet:
    """Return the set after a run of six seeds of each arm."""
    table, known = trials(scores), plan(ARMS, **changed)
    return best_set(table, known, analyses(whole_runs(ARMS, 6), table, known))


def of(levels: dict[str, float], **changed) -> BestSet:
    """Return the set of arms at these levels over six seeds, each with a wobble of its own."""
    rolled = {arm: level + np.roll(WOBBLE, place) for place, (arm, level) in enumerate(levels.items())}
    return judged(by_seed(rolled), **changed)


def test_a_clearly_best_arm_rules_out_the_others():
    found = of({"control": 0.4, "a": 0.7, "b": 0.41, "c": 0.42})
    assert found.arms == ("a",)
    assert [(loser.arm, loser.by, loser.n) for loser in found.excluded] == [
        (arm, "a", 6) for arm in ("control", "b", "c")
    ]
    assert [loser.difference for loser in found.excluded] == pytest.approx([0.3, 0.29, 0.28])
    assert (found.metric, found.split, found.analyses, found.cheapest) == ("matthews", "test", 1, "")


def test_arms_that_cannot_be_told_apart_all_stay_best_mean_first():
    found = of({"control": 0.4, "a": 0.405, "b": 0.401, "c": 0.403})
    assert (found.arms, found.excluded) == (("a", "c", "b", "control"), ())


def test_the_critical_value_is_one_sided_and_shared_by_the_other_arms():
    """4% over three other arms, one side: ruled out just beyond that quantile of t and the smallest effect."""
    critical = stats.t.isf(0.04 / 3, 5)
    size = critical * stats.sem(WOBBLE)
    for factor, kept in ((1.01, False), (0.99, True)):
        scores = by_seed(
            {
                "control": [0.4] * 6,
                "a": 0.4 + 0.01 + factor * size + WOBBLE,
                **dict.fromkeys(("b", "c"), [0.4] * 6),
            }
        )
        assert ("control" in judged(scores).arms) == kept


@pytest.mark.parametrize(
    ("later", "out"),
    [
        ([0.47, 0.43, 0.45], True),
        ([0.368, 0.367, 0.368], False),  # the plain interval begins at 0.005, within the smallest effect
        ([0.2, 0.2, 0.2], False),
    ],
)
def test_what_was_ruled_out_stays_out_while_later_seeds_bear_it_out(later, out):
    rng = np.random.default_rng(0)
    scores = by_seed({"control": 0.4 + 0.001 * rng.normal(size=9), "a": [*[0.5, 0.501, 0.499] * 2, *later]})
    known, table = plan(("control", "a")), trials(scores)
    runs = [run(dict.fromkeys(scores, range(1, 10)), 9, 6, 9, until_decided=True)]
    found = best_set(table, known, analyses(runs, table, known))
    early = trials(first(scores, 6))
    before = best_set(early, known, analyses(runs, early, known)[:1]).excluded
    assert [(loser.arm, loser.by, loser.n) for loser in before] == [("control", "a", 6)]
    assert [(loser.arm, loser.by, loser.n) for loser in found.excluded] == (
        [("control", "a", 9)] if out else []
    )


def test_arms_with_fewer_than_six_seeds_are_not_judged():
    table = trials(by_seed({"control": [0.1], "a": [0.9], "b": [0.5]}))
    found = best_set(table, plan(ARMS), [])
    assert (found.arms, found.not_judged, found.excluded) == ((), ("control", "a", "b"), ())
    scores = by_seed({"control": 0.4 + WOBBLE, "a": 0.7 - WOBBLE, "b": [0.1, 0.2, 0.1]})
    found = judged(scores)
    assert (found.arms, found.not_judged, [loser.arm for loser in found.excluded]) == (
        ("a",),
        ("b",),
        ["control"],
    )


def test_an_arm_within_the_smallest_effect_of_the_best_is_not_ruled_out():
    """Worse by 0.005 on every seed, but for a thousandth of that."""
    levels = {"control": 0.4, "a": 0.405, "b": 0.2, "c": 0.2}
    for smallest, arms in ((0.01, ("a", "control")), (0.002, ("a",))):
        scores = by_seed(
            {arm: level + WOBBLE * (1 if arm < "b" else 1.01) / 1000 for arm, level in levels.items()}
        )
        scores["a"] = {seed: value + 5e-6 * seed for seed, value in scores["a"].items()}
        found = judged(scores, smallest_effect=smallest)
        assert (found.arms, found.within) == (arms, smallest)


def test_the_cheapest_has_the_fewest_parameters_and_saves_where_the_best_has_more():
    scores = by_seed({arm: 0.4 + np.roll(WOBBLE, place) for place, arm in enumerate(ARMS)})
    scores["c"] = dict.fromkeys(range(1, 7), 0.1)  # ruled out, though it is the smallest
    known = plan(ARMS)
    for parameters, cheapest, saves in (
        ({"control": 900, "a": 800, "b": 700, "c": 1}, "b", True),
        ({"control": 700, "a": 700, "b": 700, "c": 1}, "a", False),
        ({"control": 700, "a": 703, "b": 702, "c": 1}, "a", False),
    ):
        table = trials(scores, parameters=parameters, seconds={"control": 9, "a": 3, "b": 5, "c": 1})
        found = best_set(table, known, analyses(whole_runs(ARMS, 6), table, known))
        assert "c" not in found.arms
        assert (found.cheapest, found.saves) == (cheapest, saves)


def test_the_best_is_kept_in_nineteen_of_twenty_studies():
    """Of four that are alike, the hard case, any is the best: some studies lose it, at most one in twenty."""
    rng, studies, known = np.random.default_rng(3), 300, plan(ARMS, smallest_effect=None)
    made = [
        Analysis(number, dict.fromkeys(ARMS, frozenset(range(1, seeds + 1))), Budget(9, seeds), before)
        for number, seeds, before in ((1, 6, None), (2, 9, Budget(9, 6)))
    ]
    kept = 0
    for _ in range(studies):
        scores = 0.4 + 0.02 * rng.normal(size=9) + 0.01 * rng.normal(size=(4, 9))
        table = trials(by_seed(dict(zip(ARMS, scores, strict=True))))
        kept += "a" in best_set(table, known, made).arms
    assert 0.95 * studies <= kept < studies


def test_the_file_and_the_page(tmp_path):
    made = MadeUp(seeds=6, search=0, effects={CORE[4]: 0.3})
    evidence = Evidence(load(made.write(tmp_path)))
    rebuild_claims(tmp_path)
    written = json.loads((tmp_path / "best_set.json").read_text())
    names = ["metric", "split", "level", "analyses", "within", "arms", "not_judged", "cheapest", "excluded"]
    assert list(written) == names
    assert (written["arms"], written["level"], written["cheapest"]) == ([CORE[4]], 0.95, CORE[4])
    assert len(written["excluded"]) == 14
    assert all(math.isfinite(loser["difference"]) and loser["by"] == CORE[4] for loser in written["excluded"])
    assert written == json.loads(json.dumps(evidence.best_set.as_json()))
    assert f"The best setting is with 95% one of `{CORE[4]}`" in details_page(evidence).text()
