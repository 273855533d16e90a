"""Claims of planned comparisons, against differences that were put in and intervals worked out otherwise."""

import math
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from adalayers.results.interim_analyses import PLANNED, InterimAnalysis
from adalayers.results.study_file import RequestRecord
from reports.evidence.claims import SPEED, Claim, contrasts, differences, undecided, with_examples
from reports.evidence.evidence import Evidence
from reports.tables.convergence import BestSoFar
from tests.helpers.made_scores import GRID, METRIC, WEIGHTS, analysed, by_seed, request, trials
from tests.helpers.made_up import MadeUp
from tests.helpers.pages import evidence_of

CELLS = request(GRID)
PAIR = request(("control", "a"))
LEVEL = [0.4, 0.41, 0.39, 0.42, 0.4, 0.4]


def claims(table, of: RequestRecord, analyses: Sequence[InterimAnalysis], said=None) -> list[Claim]:
    """Return the claims of trials after some analyses."""
    evidence = Evidence(SimpleNamespace(trials=table, study=SimpleNamespace(request=of)))
    evidence.__dict__.update(analyses=analyses, answers=said or {}, error=PLANNED)
    return evidence.over_seeds


def found(of: RequestRecord, scores, analyses: Sequence[InterimAnalysis], said=None) -> list[Claim]:
    """Return the claims of scores (arm -> seed -> score) after some analyses."""
    return claims(trials(scores), of, analyses, said)


def pair(a, control=None, of: RequestRecord = PAIR, analyses=None, **said) -> Claim:
    """Return the one claim of an arm against a control (0.4 on every seed, unless it is given)."""
    scores = by_seed({"control": [0.4] * len(a) if control is None else control, "a": a})
    analyses = analysed(scores, len(a)) if analyses is None else analyses
    (claim,) = found(of, scores, analyses, **said)
    return claim


def noise(seeds: int, arms=tuple(GRID)) -> dict[str, dict[int, float]]:
    rng = np.random.default_rng(0)
    luck = 0.02 * rng.normal(size=seeds)
    return by_seed({arm: 0.4 + luck + 0.01 * rng.normal(size=seeds) for arm in arms})


# One comparison by hand


def test_a_claim_by_hand():
    control, arm = [0.3, 0.4, 0.5] * 2, [0.4, 0.6, 0.8] * 2
    claim = pair(arm, control)
    assert (claim.kind, claim.arm, claim.control, claim.at) == ("arm", "a", "control", None)
    assert (claim.primary, claim.comparisons, claim.analyses) == (True, 1, 1)
    assert (claim.metric, claim.split, claim.n, claim.level) == (METRIC, "test", 6, 0.04)
    error = math.sqrt(0.04 / 5) / math.sqrt(6)  # differences 0.1, 0.2, 0.3, twice
    half = stats.t.isf(0.04 / 2, 5) * error
    assert (claim.difference, claim.low, claim.high) == pytest.approx((0.2, 0.2 - half, 0.2 + half))
    assert claim.at_most == pytest.approx(0.2 + stats.t.isf(0.04, 5) * error)
    assert claim.p_value == claim.p_adjusted == pytest.approx(stats.ttest_rel(arm, control).pvalue)
    assert (claim.verdict, pair(control, arm).verdict) == ("better", "worse")
    assert claim.values == pytest.approx({1: 0.1, 2: 0.2, 3: 0.3, 4: 0.1, 5: 0.2, 6: 0.3})
    assert (claim.above, claim.sd) == (6, pytest.approx(math.sqrt(0.04 / 5)))


def test_fewer_than_six_pairs_give_no_verdict_and_no_interval():
    for n, verdict in ((5, "not enough evidence"), (6, "better")):
        claim = pair(np.linspace(0.5, 0.501, n), analyses=[] if n < 6 else None)
        assert (claim.n, claim.verdict, claim.low is None, claim.above) == (n, verdict, n < 6, n)
        assert claim.difference == pytest.approx(0.1005)
    constant = pair([0.5] * 6)  # no spread to compute from
    assert (constant.n, constant.verdict) == (6, "not enough evidence")
    assert {constant.low, constant.high, constant.p_value, constant.at_most} == {None}
    lacking = analysed(("control", "a"), 6, covered={"control": [*range(1, 7)], "a": [*range(1, 6)]})
    assert pair(np.linspace(0.5, 0.501, 6), analyses=lacking).verdict == "not enough evidence"


def test_no_difference_has_the_interval_of_two_one_sided_tests():
    """Mean 0.003, SD 0.005, six pairs; of differences that leave 0 out by one side the interval ends at 0."""
    error = 0.005 / math.sqrt(6)
    moved = 0.4 + 0.003 + 0.005 * math.sqrt(5 / 6) * np.array([1, -1, 1, -1, 1, -1])
    half = stats.t.isf(0.04, 5) * error
    claim = pair(moved, of=replace(PAIR, smallest_effect=0.003 + half + 1e-6))
    assert (claim.verdict, claim.level) == ("no difference seen", 0.04)
    assert (claim.low, claim.high) == pytest.approx((min(0, 0.003 - half), 0.003 + half))
    assert claim.at_most == pytest.approx(claim.high)
    for smallest in (0.003 + half - 1e-6, None):
        claim = pair(moved, of=replace(PAIR, smallest_effect=smallest))
        assert (claim.verdict, claim.at_most) == ("not enough evidence", pytest.approx(0.003 + half))


@pytest.mark.parametrize(
    ("shift", "deviation", "stands"),
    [(0.02, 0.001, True), (0.02, 0.02, False), (0.0, 1e-4, True), (0.0, 0.006, False)],
)
def test_intervals_over_examples_add_their_variance_and_say_what_stands(shift, deviation, stands):
    moved = 0.4 + shift + 0.002 * np.array([1, -1, 1, -1, 1, -1])
    claim = pair(moved)
    (wide,) = with_examples([claim], {claim.key: deviation**2})
    level = claim.level / (1 if claim.verdict == "no difference seen" else 2)
    over_seeds = stats.t.isf(level, 5) * stats.sem(np.subtract(moved, 0.4))
    half = math.hypot(over_seeds, stats.norm.isf(level) * deviation)
    assert (wide.examples_low, wide.examples_high) == pytest.approx((shift - half, shift + half))
    assert wide.on_these_examples != stands
    assert with_examples([claim], {}) == [claim]


def test_pairs_are_by_seed_and_what_is_not_primary_has_an_interval_that_holds_with_the_others_and_no_verdict():
    scores = noise(7)
    del scores["alpha=8 weight=0"][4]
    made = found(CELLS, scores, analysed(GRID, 7))
    assert {claim.comparisons for claim in made if claim.primary} == {5}
    for claim in made:
        values = list(differences(scores, claim.weights).values())
        assert claim.n == len(values) == (6 if "alpha=8 weight=0" in claim.weights else 7)
        if not claim.primary:
            assert (claim.comparisons, claim.level, claim.verdict) == (23, pytest.approx(0.04 / 23), None)
            interval = stats.t.interval(1 - 0.04 / 23, claim.n - 1, np.mean(values), stats.sem(values))
            assert (claim.low, claim.high) == pytest.approx(interval)
            assert claim.p_adjusted == pytest.approx(min(1, 23 * stats.ttest_1samp(values, 0).pvalue))
    (lost,) = found(PAIR, noise(6, ("control",)), analysed(("control", "a"), 6))
    assert (lost.n, lost.difference, lost.low, lost.verdict) == (0, None, None, "not enough evidence")
    values = {"a": {1: 1.0, 2: 2.0, 3: 3.0}, "b": {2: 10.0, 3: 20.0}, "c": {3: 1.0}}
    assert differences(values, {"a": 1.0, "b": 0.5, "c": -1.5}) == {3: 3.0 + 10.0 - 1.5}


# Several analyses


def test_a_decided_claim_is_kept_whatever_comes_after():
    good = [0.5, 0.5001, 0.4999] * 2
    looks = analysed(("control", "a"), 6, 9)
    assert pair([*good, 0.1, 0.2, 0.1], analyses=looks) == pair(good, analyses=looks[:1])
    later = pair([0.5, 0.3, 0.1, 0.1, 0.3, 0.5, 0.5, 0.5, 0.5], analyses=looks)
    assert (later.n, later.analyses, later.level) == (9, 2, 0.02)


def test_what_joins_later_is_judged_by_extensions_alone():
    names = ("control", "a", "new")
    scores = by_seed({"control": np.linspace(0.4, 0.41, 9), "a": np.linspace(0.4, 0.6, 9)})
    scores["new"] = {seed: score + 0.1 + 0.001 * (seed % 3) for seed, score in scores["control"].items()}
    looks = [*analysed(names[:2], 6, 9), *analysed(names, 9, extension=True, level=0.005)]
    looks[1].covered["new"] = [*range(1, 10)]
    before, after = (found(request(names), scores, looks[:count])[1] for count in (2, 3))
    assert (before.verdict, before.n, before.low) == ("not enough evidence", 9, None)
    assert (after.verdict, after.analyses, after.comparisons) == ("better", 3, 2)
    assert after.level == 0.005  # the other one was rejected before


def test_an_interval_stays_within_what_the_metric_can_be():
    """Accuracy lies in 0 to 1: a difference of means within 1, an interaction within 2."""
    wild = by_seed({arm: np.random.default_rng(place).integers(2, size=6) for place, arm in enumerate(GRID)})
    table = trials(wild).rename(columns={f"test/{METRIC}": "test/accuracy"})
    made = claims(table, request(GRID, metric="accuracy"), analysed(GRID, 6))
    for kind, reach in (("simple", 1.0), ("interaction", 2.0)):
        ends = [end for claim in made if claim.kind == kind for end in (claim.low, claim.high)]
        assert (min(ends), max(ends)) == (-reach, reach)


# Ties


def same(seeds: int) -> dict[tuple[str, int], str]:
    """Return predictions on which both arms of a pair agree, others on each seed."""
    return {(arm, seed): f"seed {seed}" for arm in ("control", "a") for seed in range(1, seeds + 1)}


def test_the_same_predictions_on_six_seeds_are_no_difference():
    claim = pair(LEVEL, LEVEL, said=same(6))
    assert (claim.verdict, claim.tie) == ("no difference seen", True)
    assert {claim.difference, claim.low, claim.high} == {0.0}
    assert pair(LEVEL, LEVEL, of=replace(PAIR, smallest_effect=None), said=same(6)).verdict == claim.verdict
    five = pair(LEVEL[:5], LEVEL[:5], analyses=[], said=same(5))
    others = ({}, same(6) | {("a", 6): "something else"}, same(6) | {("a", 6): None})
    for claim in (five, *(pair(LEVEL, LEVEL, said=said) for said in others)):
        assert (claim.tie, claim.verdict, claim.low) == (False, "not enough evidence", None)


def test_a_tie_holds_while_all_seeds_there_are_agree():
    """Identical for 6 seeds, then 0.05 worse, whether or not those seeds are analysed yet."""
    later = 0.4 + 0.01 * np.random.default_rng(0).normal(size=14)
    control, arm = [*LEVEL, *later], [*LEVEL, *(later - 0.05 + 0.001 * np.arange(14))]
    said = same(6) | {(name, seed): f"{name} {seed}" for name in ("control", "a") for seed in range(7, 21)}
    looks = analysed(("control", "a"), 6, 12, 20)
    claim = pair(arm, control, analyses=looks, said=said)
    assert (claim.tie, claim.verdict) == (False, "worse")
    early = pair(arm, control, analyses=looks[:1], said=said)
    assert (early.tie, early.verdict, early.n) == (False, "not enough evidence", 6)


def test_a_factor_whose_cells_agree_pair_by_pair_is_a_tie():
    scores = noise(6)
    for weight in WEIGHTS:
        scores[f"alpha=8 weight={weight:g}"] = scores[f"alpha=1 weight={weight:g}"]
    said = {(arm, seed): f"{x:.6f}" for arm, row in scores.items() for seed, x in row.items()}
    ties = [claim for claim in found(CELLS, scores, analysed(GRID, 6), said) if claim.tie]
    assert [claim.kind for claim in ties] == ["factor", *["simple"] * 3, *["interaction"] * 2]
    said["alpha=8 weight=0.01", 5] = "another"
    ties = [claim for claim in found(CELLS, scores, analysed(GRID, 6), said) if claim.tie]
    assert [claim.kind for claim in ties] == ["simple", "simple", "interaction"]


# What follows from claims


def test_undecided_arms_are_those_of_open_primary_comparisons_with_pairs():
    names = ("control", "sure", "open", "gone")
    rng = np.random.default_rng(0)
    levels = {"control": (0.4, 0.001), "sure": (0.6, 0.001), "open": (0.4, 0.05)}
    scores = by_seed({arm: mean + sd * rng.normal(size=6) for arm, (mean, sd) in levels.items()})
    made = found(request(names), scores, analysed(names, 6))
    assert undecided(made, names) == {"control", "open"}
    # Without a pair of seeds it is given up once its arms were tried, not before.
    assert undecided(made, ("control", "sure", "open")) == undecided(made) == {"control", "open", "gone"}
    assert undecided([replace(claim, primary=False) for claim in made]) == frozenset()
    assert undecided(made, names, {"control", "sure"}) == frozenset()  # an earlier search's arm gets no seeds


def test_a_trial_that_diverged_has_the_trivial_score_and_one_that_failed_withholds_the_verdict(tmp_path):
    made = MadeUp(seeds=12, search=0, noise=0.0)
    for row in made.of("uniform"):
        row["test/matthews"] = 0.6 + 0.001 * row["seed"]
    diverged = {"status": "diverged", "test/matthews": math.nan}
    for lost, n, verdict in (
        ({}, 12, "better"),
        (diverged, 12, "not enough evidence"),
        ({"status": "failed"}, 11, "not enough evidence"),
    ):
        made.of("uniform")[4].update(lost)
        (claim,) = (one for one in evidence_of(made, tmp_path).claims if one.arm == "uniform")
        assert (claim.n, claim.verdict, claim.low is None) == (n, verdict, n == 11)
        assert (min(claim.values.values()) < -0.3) == (lost == diverged)


def test_a_failed_trial_beyond_the_last_analysis_withholds_nothing():
    table = trials(by_seed({"control": [*LEVEL, 0.4], "a": np.linspace(0.5, 0.501, 7)}))
    table.loc[table["trial_id"] == "a-007", "status"] = "failed"
    for seeds, withheld in ((6, False), (7, True)):
        (claim,) = claims(table, PAIR, analysed(("control", "a"), seeds))
        assert (claim.withheld, claim.verdict == "better") == (withheld, not withheld)


def test_what_had_failed_at_an_analysis_stays_withheld_there_when_it_has_run_again():
    """Of seven pairs without the one that failed it would be better; of all eight it is not."""
    scores = by_seed({"control": [0.4] * 8, "a": [0.42, 0.43] * 4})
    scores["a"][3] = 0.1
    (first,) = analysed(scores, 8)
    first = replace(first, covered={**first.covered, "a": [1, 2, 4, 5, 6, 7, 8]})
    assert found(PAIR, scores, [first])[0].verdict == "better"
    first = replace(first, failed={"a": [3]})
    (claim,) = found(PAIR, scores, [first])
    assert (claim.verdict, claim.withheld) == ("not enough evidence", True)
    (claim,) = found(PAIR, scores, [first, *analysed(scores, 8, extension=True, level=0.005)])
    assert (claim.n, claim.verdict, claim.withheld) == (8, "not enough evidence", False)


# Other measures


def speeds(table, *, best=1.0, baseline=0.0, **own):
    """Return curves of scores that rise evenly over 200 steps to `best`, or an arm's `own`, and then stay."""
    grid = np.arange(10, 401, 10)
    curves = {}
    for arm, seed in zip(table["arm"], table["seed"], strict=True):
        at = 1.0 if arm == "control" else 1.0 / (1.5 + seed / 100)
        curves.setdefault(arm, {})[seed] = grid, own.get(arm, best) * np.minimum(1, at * grid / 200)
    return BestSoFar(curves, baseline)


def test_entropy_is_compared_among_arms_that_learn_it_as_of_the_last_analysis():
    """No study stops by it, so what was seen once does not end it."""
    names = ("control", "a", "fixed")
    table = trials(noise(9, names))
    levels = table["arm"].map({"control": 1.7, "a": 0.5, "fixed": 0.0})
    table["mix/entropy"] = levels + 0.01 * table["seed"]
    table.loc[table["arm"] == "a", "mix/entropy"] += [0.01, 0, 0.01, 0, 0, 0, 5, -5, 1]
    table.loc[table["arm"] == "fixed", "config/mix"] = "last"
    looks = analysed(names, 6, 9)
    first, *others = contrasts(table, speeds(table), request(names), looks[:1], PLANNED)
    assert (first.metric, first.arm, first.split, first.comparisons) == ("mix/entropy", "a", "val", 1)
    assert [(claim.metric, claim.arm) for claim in others] == [(SPEED, "a"), (SPEED, "fixed")]
    assert (first.verdict, first.n) == ("lower", 6)
    assert first.difference == pytest.approx(-1.2, abs=0.02)
    last, speed, _ = contrasts(table, speeds(table), request(names), looks, PLANNED)
    assert (last.verdict, last.n, speed.n) == ("not enough evidence", 9, 9)


def test_speed_is_steps_to_a_score_that_all_trials_of_both_sides_reach():
    """Control: its 95% after 190 of 200 steps. The other takes 1.51 to 1.57 times as long, seen every ten steps."""
    table = trials(noise(7, ("control", "a")))
    made = analysed(("control", "a"), 7)
    whole = contrasts(table, speeds(table), PAIR, made, PLANNED)[-1]
    times = 1.5 + np.arange(1, 8) / 100
    reached = np.ceil(19 * times) * 10
    assert (whole.verdict, whole.difference) == ("higher", pytest.approx(reached.mean() - 190))
    # Of the gain over a trivial score of 0.5: at 0.975.
    gained = contrasts(table, speeds(table, baseline=0.5), PAIR, made, PLANNED)[-1]
    assert gained.difference == pytest.approx((np.ceil(19.5 * times) * 10).mean() - 200)
    # Of half the gain: the control is there after half of its steps, however much more it gains later.
    half = contrasts(table, speeds(table, a=0.5), PAIR, made, PLANNED)[-1]
    assert half.difference == pytest.approx(reached.mean() - 100)
    # Nothing is fast where one side is at the trivial score.
    for best in (speeds(table, a=0.3, baseline=0.3), BestSoFar({}, 0.0), speeds(table, baseline=None)):
        none = contrasts(table, best, PAIR, made, PLANNED)[-1]
        assert (none.n, none.difference, none.verdict) == (0, None, "not enough evidence")
