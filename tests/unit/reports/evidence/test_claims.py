"""Claims of planned comparisons, against differences that were put in and intervals worked out otherwise."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from adalayers.results.interim_analyses import PLANNED, InterimAnalysis
from adalayers.results.study_file import RequestRecord
from reports.evidence.claims import Claim, claims, contrasts, differences, undecided, with_examples
from reports.evidence.evidence import Evidence
from reports.evidence.prediction_hashes import answers
from reports.reading.load import load
from reports.tables.convergence import BestSoFar
from tests.helpers.made_scores import GRID, METRIC, WEIGHTS, analysed, by_seed, request, trials
from tests.helpers.made_up import MadeUp

CELLS = request(GRID)
PAIR = request(("control", "a"))

Scores = Mapping[str, Mapping[int, float]]


def found(of: RequestRecord, scores: Scores, analyses: Sequence[InterimAnalysis], said=None) -> list[Claim]:
    """Return the claims of scores (arm -> seed -> score) after some analyses."""
    return claims(trials(scores), of, analyses, said or {}, PLANNED)


def pair(
    a: Sequence[float],
    control: Sequence[float] | None = None,
    of: RequestRecord = PAIR,
    analyses=None,
    **said,
) -> Claim:
    """Return the one claim of an arm against a control (0.4 on every seed, unless it is given)."""
    scores = by_seed({"control": [0.4] * len(a) if control is None else control, "a": a})
    analyses = analysed(scores, len(a)) if analyses is None else analyses
    (claim,) = found(of, scores, analyses, **said)
    return claim


def noise(seeds: int, arms=tuple(GRID), seed: int = 0) -> dict[str, dict[int, float]]:
    rng = np.random.default_rng(seed)
    luck = 0.02 * rng.normal(size=seeds)
    return by_seed({arm: 0.4 + luck + 0.01 * rng.normal(size=seeds) for arm in arms})


# One comparison by hand


def test_a_claim_by_hand():
    control, arm = [0.3, 0.4, 0.5] * 2, [0.4, 0.6, 0.8] * 2
    claim = pair(arm, control)
    assert (claim.kind, claim.arm, claim.control, claim.at) == ("arm", "a", "control", None)
    assert claim.primary
    assert (claim.metric, claim.split, claim.n, claim.level) == (METRIC, "test", 6, 0.04)
    assert (claim.comparisons, claim.analyses) == (1, 1)
    assert claim.difference == pytest.approx(0.2)
    error = math.sqrt(0.04 / 5) / math.sqrt(6)  # differences 0.1, 0.2, 0.3, twice
    half = stats.t.isf(0.04 / 2, 5) * error
    assert (claim.low, claim.high) == pytest.approx((0.2 - half, 0.2 + half))
    assert claim.at_most == pytest.approx(0.2 + stats.t.isf(0.04, 5) * error)
    assert claim.p_value == claim.p_adjusted == pytest.approx(stats.ttest_rel(arm, control).pvalue)
    assert claim.verdict == "better"
    assert claim.values == pytest.approx({1: 0.1, 2: 0.2, 3: 0.3, 4: 0.1, 5: 0.2, 6: 0.3})
    assert (claim.above, claim.sd) == (6, pytest.approx(math.sqrt(0.04 / 5)))


def test_fewer_than_six_pairs_give_no_verdict_and_no_interval():
    for n, verdict in ((5, "not enough evidence"), (6, "better")):
        claim = pair(np.linspace(0.5, 0.501, n), analyses=[] if n < 6 else None)
        assert (claim.n, claim.verdict, claim.low is None, claim.above) == (n, verdict, n < 6, n)
        assert claim.difference == pytest.approx(0.1005)
    lacking = analysed(("control", "a"), 6)[0]
    lacking = replace(lacking, covered={**lacking.covered, "a": [1, 2, 3, 4, 5]})
    assert pair(np.linspace(0.5, 0.501, 6), analyses=[lacking]).verdict == "not enough evidence"


def test_comparisons_that_are_not_primary_have_intervals_that_hold_together_and_no_verdict():
    scores = noise(6)
    for claim in found(CELLS, scores, analysed(GRID, 6)):
        if claim.primary:
            assert claim.comparisons == 5
            continue
        assert (claim.comparisons, claim.level, claim.verdict) == (23, pytest.approx(0.04 / 23), None)
        values = list(differences(scores, claim.weights).values())
        low, high = stats.t.interval(1 - 0.04 / 23, 5, np.mean(values), stats.sem(values))
        assert (claim.low, claim.high) == pytest.approx((low, high))
        assert claim.p_adjusted == pytest.approx(min(1, 23 * stats.ttest_1samp(values, 0).pvalue))
        assert (claim.shown in ("better", "worse")) == (low > 0 or high < 0)


@pytest.mark.parametrize(
    ("wobble", "shift", "verdict"),
    [
        (0.001, 0.1, "better"),
        (0.001, -0.1, "worse"),
        (0.001, 0.0, "no difference seen"),
        (0.03, 0.0, "not enough evidence"),
        (0.0, 0.1, "not enough evidence"),  # the same on every seed: no spread to compute from
    ],
)
def test_verdicts(wobble, shift, verdict):
    control = [0.40, 0.42, 0.38, 0.41, 0.39, 0.4]
    moved = np.array(control) + shift + wobble * np.array([1, -1, 0.5, -0.5, 0.0, 0.1])
    claim = pair(moved, control)
    assert claim.verdict == verdict
    if wobble == 0:
        assert {claim.low, claim.high, claim.p_value, claim.p_adjusted, claim.at_most} == {None}
        assert claim.n == 6
    else:
        assert (claim.p_value <= claim.level) == (verdict in ("better", "worse"))


def test_without_a_smallest_effect_no_difference_cannot_be_said():
    scores = [0.4001, 0.3999, 0.4001, 0.3999, 0.4, 0.4]
    assert pair(scores).verdict == "no difference seen"
    unknown = pair(scores, of=replace(PAIR, smallest_effect=None))
    assert (unknown.verdict, unknown.at_most < 0.001) == ("not enough evidence", True)


def test_no_difference_has_the_interval_of_two_one_sided_tests():
    """Mean 0.003, SD 0.005, six pairs; of differences that leave 0 out by one side the interval ends at 0."""
    error = 0.005 / math.sqrt(6)
    moved = 0.4 + 0.003 + 0.005 * math.sqrt(5 / 6) * np.array([1, -1, 1, -1, 1, -1])
    half = stats.t.isf(0.04, 5) * error
    claim = pair(moved, of=replace(PAIR, smallest_effect=0.003 + half + 1e-6))
    assert (claim.verdict, claim.level) == ("no difference seen", 0.04)
    assert (claim.low, claim.high) == pytest.approx((min(0, 0.003 - half), 0.003 + half))
    assert claim.at_most == pytest.approx(claim.high)
    assert pair(moved, of=replace(PAIR, smallest_effect=0.003 + half - 1e-6)).verdict == "not enough evidence"


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


def test_pairs_are_by_seed_and_a_seed_that_one_lacks_is_left_out():
    scores = {"control": {1: 0.1, 2: 0.2, 3: 0.3}, "a": {3: 0.45, 2: 0.25, 9: 0.9}}
    (claim,) = found(PAIR, scores, [])
    assert (claim.n, claim.values) == (2, pytest.approx({2: 0.05, 3: 0.15}))
    missing = {name: dict(row) for name, row in noise(7).items()}
    del missing["alpha=8 weight=0"][4]
    for claim in found(CELLS, missing, analysed(GRID, 7)):
        assert claim.n == (6 if "alpha=8 weight=0" in claim.weights else 7)


def test_differences_weigh_arms_on_the_seeds_that_all_have():
    values = {"a": {1: 1.0, 2: 2.0, 3: 3.0}, "b": {2: 10.0, 3: 20.0}, "c": {3: 1.0}}
    assert differences(values, {"a": 1.0, "b": 0.5, "c": -1.5}) == {3: 3.0 + 10.0 - 1.5}
    assert differences(values, {"a": 1.0, "nobody": -1.0}) == {}


@pytest.mark.parametrize("lost", ["control", "a"])
def test_an_arm_that_failed_throughout(lost):
    scores = {name: row for name, row in noise(6, ("control", "a")).items() if name != lost}
    (claim,) = found(PAIR, scores, analysed(("control", "a"), 6))
    assert (claim.n, claim.difference, claim.low, claim.verdict) == (0, None, None, "not enough evidence")


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
    looks = [*analysed(names[:2], 6, 9), *analysed(names, 9, extension=True)]
    looks[1].covered["new"] = [*range(1, 10)]
    looks[2] = replace(looks[2], level=0.005)
    before, after = (found(request(names), scores, looks[:count])[1] for count in (2, 3))
    assert (before.verdict, before.n, before.low) == ("not enough evidence", 9, None)
    assert (after.verdict, after.analyses, after.comparisons) == ("better", 3, 2)
    assert after.level == 0.005  # the other one was rejected before


@pytest.mark.parametrize("seed", range(2))
def test_a_verdict_never_contradicts_its_interval_nor_its_p_value(seed):
    scores = noise(15, seed=seed)
    for arm in list(GRID)[::5]:
        scores[arm] = {s: x + 0.02 for s, x in scores[arm].items()}
    for ends in ((6,), (6, 9, 15)):
        for claim in found(CELLS, scores, analysed(GRID, *ends)):
            if claim.primary:
                outside = claim.low > 0 or claim.high < 0
                assert outside == (claim.verdict in ("better", "worse"))
                assert (claim.p_value <= claim.level) == outside or claim.verdict == "no difference seen"
                if claim.verdict == "no difference seen":
                    assert -0.01 < claim.low <= 0 <= claim.high < 0.01
            assert claim.low <= claim.difference <= claim.high
            assert claim.at_most >= abs(claim.difference)


def test_an_interval_stays_within_what_the_metric_can_be():
    """Accuracy lies in 0 to 1: a difference of means within 1, an interaction within 2."""
    wild = by_seed({arm: np.random.default_rng(place).integers(2, size=6) for place, arm in enumerate(GRID)})
    table = trials(wild).rename(columns={f"test/{METRIC}": "test/accuracy"})
    made = claims(table, request(GRID, metric="accuracy"), analysed(GRID, 6), {}, PLANNED)
    reach = {"factor": 1.0, "simple": 1.0, "interaction": 2.0}
    assert all(-reach[claim.kind] <= claim.low <= claim.high <= reach[claim.kind] for claim in made)
    assert {claim.kind for claim in made if claim.high == reach[claim.kind]} >= {"simple"}


# Ties


def told(right: Mapping[str, Mapping[int, str]]) -> dict[tuple[str, int], str]:
    return {(arm, seed): text for arm, of_arm in right.items() for seed, text in of_arm.items()}


def same(seeds: int) -> dict[tuple[str, int], str]:
    """Return predictions on which both arms of a pair agree, others on each seed."""
    return told({arm: {s: f"seed {s}" for s in range(1, seeds + 1)} for arm in ("control", "a")})


def test_the_same_predictions_on_six_seeds_are_no_difference():
    level = [0.4, 0.41, 0.39, 0.42, 0.4, 0.4]
    claim = pair(level, level, said=same(6))
    assert (claim.verdict, claim.tie) == ("no difference seen", True)
    assert {claim.difference, claim.low, claim.high} == {0.0}
    assert pair(level, level, of=replace(PAIR, smallest_effect=None), said=same(6)).verdict == claim.verdict


def test_a_tie_holds_while_all_seeds_there_are_agree():
    """Identical for 6 seeds, then 0.05 worse, whether or not those seeds are analysed yet."""
    level = list(np.linspace(0.4, 0.41, 6))
    rng = np.random.default_rng(0)
    control = [*level, *(0.4 + 0.01 * rng.normal(size=14))]
    arm = [*level, *(np.array(control[6:]) - 0.05 + 0.001 * rng.normal(size=14))]
    said = same(6) | {(name, seed): f"{name} {seed}" for name in ("control", "a") for seed in range(7, 21)}
    names = ("control", "a")
    looks = analysed(names, 6, 12, 20)
    claim = pair(arm, control, analyses=looks, said=said)
    assert (claim.tie, claim.verdict) == (False, "worse")
    early = pair(arm, control, analyses=looks[:1], said=said)
    assert (early.tie, early.verdict, early.n) == (False, "not enough evidence", 6)


@pytest.mark.parametrize("kind", ["five seeds", "equal scores alone", "one seed otherwise", "one unknown"])
def test_what_is_not_enough_for_a_tie(kind):
    seeds = 5 if kind == "five seeds" else 6
    said = {} if kind == "equal scores alone" else same(seeds)
    said |= {("a", 6): "something else"} if kind == "one seed otherwise" else {}
    if kind == "one unknown":
        del said["a", 6]
    level = np.linspace(0.4, 0.41, seeds)
    claim = pair(level, level, analyses=None if seeds == 6 else [], said=said)
    assert (claim.tie, claim.verdict, claim.low) == (False, "not enough evidence", None)


def test_a_factor_whose_cells_agree_pair_by_pair_is_a_tie():
    scores = noise(6)
    for weight in WEIGHTS:
        scores[f"alpha=8 weight={weight:g}"] = scores[f"alpha=1 weight={weight:g}"]
    said = told({arm: {s: f"{x:.6f}" for s, x in row.items()} for arm, row in scores.items()})
    made = found(CELLS, scores, analysed(GRID, 6), said)
    ties = [(claim.kind, *claim.names[::2]) for claim in made if claim.tie]
    assert set(ties) == {
        ("factor", "alpha=8", ""),
        *(("simple", "alpha=8", f"weight={weight:g}") for weight in WEIGHTS),
        *(("interaction", f"alpha=8 weight={weight:g}", "") for weight in WEIGHTS[1:]),
    }
    said["alpha=8 weight=0.01", 5] = "another"
    again = found(CELLS, scores, analysed(GRID, 6), said)
    assert ("factor", "alpha=8") not in {(claim.kind, claim.names[0]) for claim in again if claim.tie}


def test_answers_are_those_of_confirmed_trials_that_have_any():
    table = trials(by_seed({"x": [0.1, 0.2], "y": [0.1, 0.2]})).assign(predictions=["p1", "p2", "", "p2"])
    assert answers(table) == {("x", 1): "p1", ("x", 2): "p2", ("y", 2): "p2"}


# What follows from claims


def test_undecided_arms_are_those_of_open_primary_comparisons_with_pairs():
    names = ("control", "sure", "open", "gone")
    rng = np.random.default_rng(0)
    scores = by_seed(
        {
            "control": 0.4 + 0.001 * rng.normal(size=6),
            "sure": 0.6 + 0.001 * rng.normal(size=6),
            "open": 0.4 + 0.05 * rng.normal(size=6),
        }
    )
    made = found(request(names), scores, analysed(names, 6))
    assert undecided(made, names) == {"control", "open"}
    # Without a pair of seeds it is given up once its arms were tried, not before.
    assert undecided(made, ("control", "sure", "open")) == undecided(made) == {"control", "open", "gone"}
    assert undecided([replace(claim, primary=False) for claim in made]) == undecided([]) == frozenset()
    assert undecided(made, names, {"control", "sure"}) == frozenset()  # an earlier search's arm gets no seeds


# Trials without a score


def test_a_trial_that_diverged_has_the_trivial_score_and_one_that_failed_withholds_the_verdict(tmp_path):
    """Of two equal arms, one loses the worse half of its seeds: the other half alone looks better."""
    made = MadeUp(seeds=12, search=0, noise=0.0)
    scores = {arm: made.of(arm) for arm in ("uniform", made.arms[0]["name"])}
    rng = np.random.default_rng(0)
    for rows in scores.values():
        for row in rows:
            row["test/matthews"] = float(0.4 + 0.01 * rng.normal())
    for row in sorted(scores["uniform"], key=lambda row: row["test/matthews"])[:3]:
        row |= {"status": "diverged", "test/matthews": math.nan, "val/matthews": math.nan}
    (claim,) = [claim for claim in Evidence(load(made.write(tmp_path))).claims if claim.arm == "uniform"]
    assert (claim.n, claim.verdict) == (12, "not enough evidence")
    assert sum(value < -0.3 for value in claim.values.values()) == 3
    for row in scores["uniform"]:
        row |= {"status": "completed", "test/matthews": 0.6 + 0.001 * row["seed"]}
    scores["uniform"][4]["status"] = "failed"
    (claim,) = [claim for claim in Evidence(load(made.write(tmp_path))).claims if claim.arm == "uniform"]
    assert (claim.n, claim.verdict, claim.low) == (11, "not enough evidence", None)


# Other measures


def test_entropy_is_compared_among_arms_that_learn_it():
    names = ("control", "a", "fixed")
    entropy = {"control": 1.7, "a": 0.5, "fixed": 0.0}
    rng = np.random.default_rng(0)
    table = trials(noise(6, names))
    table["mix/entropy"] = [entropy[arm] + 0.01 * rng.normal() for arm in table["arm"]]
    table.loc[table["arm"] == "fixed", "config/mix"] = "last"
    of = request(names)
    made = contrasts(table, speeds(table), of, analysed(names, 6), PLANNED)
    (entropy_claim, *others) = [(claim.metric, claim.arm) for claim in made]
    assert entropy_claim == ("mix/entropy", "a")
    assert others == [("convergence_step", arm) for arm in ("a", "fixed")]
    assert (made[0].verdict, made[0].comparisons, made[0].split) == ("lower", 1, "val")
    assert made[0].difference == pytest.approx(-1.2, abs=0.02)


def test_other_measures_are_of_the_last_analysis_whatever_an_earlier_one_said():
    """No study stops by them, so what was seen once does not end them."""
    table = trials(noise(9, ("control", "a")))
    late = [0, 0, 0, 0, 0, 0, 5, -5, 1]
    table["mix/entropy"] = [
        1.7 - (arm == "a") * (1 + 0.001 * seed) for arm, seed in zip(table["arm"], table["seed"], strict=True)
    ]
    table.loc[table["arm"] == "a", "mix/entropy"] += late
    made = analysed(("control", "a"), 6, 9)
    first, last = (contrasts(table, speeds(table), PAIR, made[:count], PLANNED)[0] for count in (1, 2))
    assert (first.verdict, first.n) == ("lower", 6)
    assert (last.verdict, last.n) == ("not enough evidence", 9)


def speeds(table, *, best=1.0, baseline=0.0, **own):
    """Return curves of scores that rise evenly over 200 steps to `best`, or an arm's `own`, and then stay."""
    grid = np.arange(10, 401, 10)
    curves = {}
    for arm, seed in zip(table["arm"], table["seed"], strict=True):
        at = 1.0 if arm == "control" else 1.0 / (1.5 + seed / 100)
        curves.setdefault(arm, {})[seed] = grid, own.get(arm, best) * np.minimum(1, at * grid / 200)
    return BestSoFar(curves, baseline)


def test_speed_is_steps_to_a_score_that_all_trials_of_both_sides_reach():
    """Control: its 95% after 190 of 200 steps. The other takes 1.51 to 1.57 times as long, seen every ten steps."""
    table = trials(noise(7, ("control", "a")))
    made = analysed(("control", "a"), 7)
    whole = contrasts(table, speeds(table), PAIR, made, PLANNED)[-1]
    later = np.ceil(19 * (1.5 + np.arange(1, 8) / 100)) * 10 - 190
    assert (whole.verdict, whole.difference) == ("higher", pytest.approx(later.mean()))
    # Of half the gain: the control is there after half of its steps, however much more it gains later.
    half = contrasts(table, speeds(table, a=0.5), PAIR, made, PLANNED)[-1]
    assert half.difference == pytest.approx((np.ceil(19 * (1.5 + np.arange(1, 8) / 100)) * 10 - 100).mean())


def test_nothing_is_fast_where_one_side_is_at_the_trivial_score():
    table = trials(noise(7, ("control", "a")))
    made = analysed(("control", "a"), 7)
    for best in (speeds(table, a=0.3, baseline=0.3), BestSoFar({}, 0.0), speeds(table, baseline=None)):
        none = contrasts(table, best, PAIR, made, PLANNED)[-1]
        assert (none.n, none.difference, none.verdict) == (0, None, "not enough evidence")
