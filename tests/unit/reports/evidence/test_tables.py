"""Tables and claims of made-up studies, against the numbers that were put in."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from reports.evidence import claims, convergence, tables
from reports.evidence.evidence import Evidence
from reports.parts import next_run, search
from reports.reading.load import Loaded, load
from tests.helpers.made_up import CONTROL, CORE, MadeUp

OTHER = "alpha=8 entropy_weight=0"
OUTSIDE = "uniform"
"""An arm outside the core, which is compared with the control alone."""


def read(made: MadeUp, tmp_path) -> Loaded:
    return load(made.write(tmp_path / "study"))


def scored(made: MadeUp, scores: dict[str, list[float]]) -> MadeUp:
    """Set the test scores of arms, in the order of seeds."""
    for arm, values in scores.items():
        for row, value in zip(made.of(arm), values, strict=True):
            row["test/matthews"] = value
    return made


def claim_of(loaded: Loaded, arm: str = OUTSIDE) -> claims.Claim:
    return next(claim for claim in Evidence(loaded).claims if claim.arm == arm)


def test_arms_table(tmp_path):
    made = scored(MadeUp(seeds=5), {OTHER: [0.1, 0.2, 0.3, 0.1, 0.3]})
    loaded = read(made, tmp_path)
    table = tables.arms(loaded.results.trials, loaded.plan)
    assert list(table["arm"]) == [*CORE, "uniform", "last", "best"]
    row = table[table["arm"] == OTHER].iloc[0]
    assert (row["config/alpha"], row["config/entropy_weight"], row["mix"], row["split"], row["n"]) == (
        8,
        0,
        "learned",
        "test",
        5,
    )
    assert row["mean"] == pytest.approx(0.2)
    assert (row["low"], row["high"]) == pytest.approx(stats.t.interval(0.95, 4, 0.2, 0.1 / math.sqrt(5)))
    assert row["val_mean"] == pytest.approx(np.mean([trial["val/matthews"] for trial in made.of(OTHER)]))
    assert table.loc[table["arm"] == CORE[6], "aliases"].item() == "published"


def test_few_seeds_have_no_interval_and_intervals_end_where_the_metric_does(tmp_path):
    table = Evidence(read(scored(MadeUp(seeds=5), {OTHER: [0.99, 1.0, 0.2, 1.0, 1.0]}), tmp_path)).arms
    assert table.loc[table["arm"] == OTHER, "high"].item() == 1.0
    four = Evidence(read(MadeUp(seeds=4), tmp_path)).arms
    assert four[["low", "high", "val_low", "val_high"]].isna().all(axis=None)
    assert set(four["n"]) == {4}


def test_failed_and_search_trials_never_enter_a_mean(tmp_path):
    made = MadeUp(seeds=3, failed=((OTHER, 2),))
    for row in made.trials:
        if row["stage"] == "search":
            row |= {"val/matthews": 99.0, "test/matthews": 99.0}
    table = Evidence(read(made, tmp_path)).arms
    assert table["mean"].max() < 1
    assert table.loc[table["arm"] == OTHER, "n"].item() == 2


def test_without_test_scores_arms_are_compared_on_validation(tmp_path):
    loaded = read(MadeUp(test=False), tmp_path)
    assert claim_of(loaded).split == "val"
    assert claim_of(loaded).n == 3


def test_claim_by_hand(tmp_path):
    made = scored(MadeUp(seeds=3), {CONTROL: [0.3, 0.4, 0.5], OUTSIDE: [0.4, 0.6, 0.8]})
    claim = claim_of(read(made, tmp_path))
    assert (claim.control, claim.metric, claim.split, claim.n) == (CONTROL, "matthews", "test", 3)
    assert (claim.level, claim.comparisons, claim.analyses) == (0.95, 31, 1)
    assert claim.difference == pytest.approx(0.2)
    # Differences 0.1, 0.2, 0.3 have SD 0.1; eight primary comparisons share four fifths of 4%.
    half = stats.t.ppf(1 - 0.04 * 0.8 / 8 / 2, 2) * 0.1 / math.sqrt(3)
    assert (claim.low, claim.high) == pytest.approx((0.2 - half, 0.2 + half))
    assert claim.p_value == pytest.approx(stats.ttest_rel([0.4, 0.6, 0.8], [0.3, 0.4, 0.5]).pvalue)
    assert claim.verdict == "not enough evidence"


def test_an_effect_that_was_put_in_is_found_in_the_factor(tmp_path):
    """A level of alpha is better in every cell; one cell of lambda is not enough for an average over four."""
    effects = dict.fromkeys(CORE[3:6], 0.1)
    found = Evidence(read(MadeUp(seeds=6, effects=effects), tmp_path)).claims
    by_name = {(claim.kind, *claim.names[::2]): claim for claim in found}
    assert by_name["factor", "alpha=8", ""].verdict == "better"
    assert by_name["factor", "alpha=8", ""].difference == pytest.approx(0.1, abs=0.02)
    assert by_name["factor", "alpha=64", ""].verdict == "not enough evidence"
    assert {claim.verdict for claim in found if claim.kind == "interaction"} == {"not enough evidence"}


def test_mode_min_turns_better_into_worse(tmp_path):
    made = MadeUp(seeds=5, effects={OUTSIDE: 0.5})
    made.study["request"]["mode"] = "min"
    loaded = read(made, tmp_path)
    assert (claim_of(loaded).verdict, claim_of(loaded).improvement) == ("worse", 0.0)
    evidence = Evidence(loaded)
    assert evidence.best_arm != OUTSIDE
    assert OUTSIDE not in evidence.best_set.arms
    done = [row for row in made.trials if row["status"] == "completed"]
    assert (
        tables.best_trial(loaded.results.trials, loaded.plan)
        == min(done, key=lambda row: row["val/matthews"])["trial_id"]
    )


def test_seeds_for_the_smallest_effect_by_hand(tmp_path):
    """From the spread pooled over arms and each comparison's part of 4%; the differences seen play no part."""
    wobble = 0.01 * np.array([1.0, -1.0, 1.0, -1.0, 0.0])

    def words(difference: float) -> str:
        level = np.full(5, 0.4)
        scores = {
            arm: list(level + wobble * (-1) ** i) for i, arm in enumerate((*CORE, "uniform", "last", "best"))
        }
        made = scored(MadeUp(seeds=5), scores)
        for row in made.of(OUTSIDE):
            row["test/matthews"] += difference
        info = next_run.info(Evidence(read(made, tmp_path)))
        return next_run.section(replace(info, error=0.04))[0]

    # Eight arms go one way and seven the other: the mean of a seed is a fifteenth of the wobble.
    residuals = sum((wobble * (sign - 1 / 15)) ** 2 for sign in [1] * 8 + [-1] * 7)
    sd = math.sqrt(residuals.sum() / (14 * 4))

    def wanted(squares: float) -> int:
        """Return the seeds that find 0.01 nine times in ten, by the noncentral t."""
        effect, alpha = 0.01 / (sd * math.sqrt(squares)), 0.04 * 0.8 / 8
        return next(
            n
            for n in range(5, 1000)
            if stats.nct.sf(stats.t.isf(alpha / 2, n - 1), n - 1, effect * math.sqrt(n)) >= 0.9
        )

    # A level of alpha is averaged over three cells: its weights are 1/3, three times up and three times down; one of
    # lambda over four.
    assert f"about {wanted(2)} for one arm against another" in words(0.0)
    factor = f"about {wanted(8 / 16)} to {wanted(6 / 9)} for an averaged effect of a factor"
    assert factor in words(0.0)
    assert f"{sd:.3f} per score, pooled over arms" in words(0.0)
    assert words(0.0) == words(0.001)
    # A large difference of one arm decides its comparison; the seeds that the others take stay as they are.
    assert factor in words(0.3)


def test_pairs_are_by_seed_not_by_place(tmp_path):
    made = scored(MadeUp(seeds=3, failed=((OUTSIDE, 1),)), {CONTROL: [0.1, 0.2, 0.3]})
    for row in made.of(OUTSIDE):
        row["test/matthews"] = {1: None, 2: 0.25, 3: 0.45}[row["seed"]]
    claim = claim_of(read(made, tmp_path))
    assert claim.n == 2
    assert claim.difference == pytest.approx((0.05 + 0.15) / 2)


def test_an_arm_that_failed_throughout_and_a_missing_control(tmp_path):
    claim = claim_of(read(MadeUp(failed=tuple((OUTSIDE, seed) for seed in (1, 2, 3))), tmp_path))
    assert (claim.n, claim.difference, claim.low, claim.verdict) == (0, None, None, "not enough evidence")
    evidence = Evidence(read(MadeUp(failed=tuple((CONTROL, seed) for seed in (1, 2, 3))), tmp_path))
    assert {claim.n for claim in evidence.claims if CONTROL in claim.weights} == {0}
    made = MadeUp()
    made.study["request"]["control"] = "alpha=2 entropy_weight=0"
    loaded = read(made, tmp_path)
    assert Evidence(loaded).claims == []
    assert any("alpha=2 entropy_weight=0" in problem for problem in loaded.problems)


def test_core_grid_and_search(tmp_path):
    evidence = Evidence(read(MadeUp(search=6, stopped=2), tmp_path))
    assert list(zip(evidence.core["config/alpha"], evidence.core["config/entropy_weight"], strict=True)) == [
        (alpha, weight) for alpha in (1, 8, 64, 512) for weight in (0, 0.001, 0.01)
    ]
    assert list(evidence.search["status"]) == ["completed"] * 4 + ["stopped"] * 2
    done = evidence.search["score"].iloc[:4]
    assert done.is_monotonic_decreasing
    counts = search.info(evidence).counts
    assert (counts["completed"].sum(), counts["stopped"].sum()) == (4, 2)
    assert counts["best"].max() == done.max()  # a stopped trial is never the best


def test_bands_name_few_values_and_decades_of_many():
    assert list(tables.bands(pd.Series([0.0, 0.001, math.nan]))) == ["0", "0.001", "not given"]
    many = pd.Series([0.0, 2e-4, 3e-4, 2e-3, 3e-3, 2e-2, 3e-2])
    assert list(tables.bands(many).unique()) == ["0", "1e-4 to 1e-3", "1e-3 to 1e-2", "1e-2 to 1e-1"]


def curve(scores: list[float | None], trial_id: str) -> list[dict]:
    return [
        {"trial_id": trial_id, "epoch": place, "step": 10 * place, "val/matthews": score}
        for place, score in enumerate(scores, start=1)
    ]


def test_step_of_convergence(tmp_path):
    made = MadeUp(seeds=3, search=0)
    rows = made.of(CONTROL)
    made.history = [row for row in made.history if row["trial_id"] not in {row["trial_id"] for row in rows}]
    # Baseline 0.2, best 1.0: the threshold is 0.2 + 0.95 * 0.8 = 0.96, first reached at step 30.
    made.history += curve([0.5, None, 0.97, 1.0, 0.9], rows[0]["trial_id"])
    made.history += curve([0.1, 0.2, 0.15], rows[1]["trial_id"])  # never above the baseline
    made.study["environment"]["dataset"]["baseline"]["val"] = 0.2
    loaded = read(made, tmp_path)
    each = convergence.convergence(loaded.results.trials, loaded.results.history, loaded.plan)
    of_control = each[each["arm"] == CONTROL].set_index("seed")
    assert list(of_control["state"]) == ["reached", "censored", "no history"]
    assert of_control.loc[1, "step"] == 30
    assert of_control.loc[1, "threshold"] == pytest.approx(0.96)
    arm_table = tables.arms(loaded.results.trials, loaded.plan)
    summary = convergence.convergence_by_arm(each, arm_table).iloc[0]
    assert (summary["n"], summary["censored"], summary["without_history"]) == (2, 1, 1)
    assert (summary["low"], summary["high"], summary["median"]) == (30, math.inf, math.inf)
    assert any("no rows in `history.parquet`" in problem for problem in loaded.problems)
    # A censored trial leaves its arm without an interval; here it is the control's, so every arm.
    found = [claim for claim in Evidence(loaded).contrasts if claim.metric == "convergence_step"]
    assert {claim.verdict for claim in found} == {"not enough evidence"}
    assert {claim.low for claim in found} == {None}


def test_median_of_steps_counts_censored_as_last():
    each = pd.DataFrame(
        {"arm": ["a"] * 3, "step": [10.0, 30.0, math.nan], "state": ["reached", "reached", "censored"]}
    )
    arms = pd.DataFrame({"arm": ["a"], "role": ["core"], "config/alpha": [1.0]})
    assert convergence.convergence_by_arm(each, arms).iloc[0]["median"] == 30


def test_contrasts_compare_entropy_among_arms_that_learn_it(tmp_path):
    made = MadeUp(seeds=4)
    for arm, entropies in ((CONTROL, [1.7, 1.71, 1.69, 1.7]), (OTHER, [0.5, 0.52, 0.49, 0.51])):
        for row, entropy in zip(made.of(arm), entropies, strict=True):
            row["mix/entropy"] = entropy
    found = {
        claim.names[::2]: claim
        for claim in Evidence(read(made, tmp_path)).contrasts
        if claim.metric == "mix/entropy"
    }
    assert all(claim.weights.keys() <= {*CORE, "best"} for claim in found.values())
    assert len(found) == 31 - 2  # but for the arms that do not learn it
    assert ("best", "") in found
    simple = found["alpha=8", "entropy_weight=0"]
    assert (simple.verdict, simple.comparisons) == ("lower", 29)
    assert simple.difference == pytest.approx(0.505 - 1.7)


def test_ties_for_best_go_to_the_smallest_trial_id(tmp_path):
    made = MadeUp(seeds=2)
    for row in made.trials:
        if row["status"] == "completed":
            row["val/matthews"] = 0.5
    ids = sorted(row["trial_id"] for row in made.trials if row["status"] == "completed")
    loaded = read(made, tmp_path)
    assert tables.best_trial(loaded.results.trials, loaded.plan) == ids[0]


def test_the_same_seed_twice_counts_once_and_is_named(tmp_path):
    made = MadeUp(seeds=2)
    first = made.of(OUTSIDE)[0]
    made.trials.append({**first, "trial_id": "zz", "test/matthews": 99.0, "config/lr": 0.5})
    loaded = read(made, tmp_path)
    assert claim_of(loaded).n == 2
    assert abs(claim_of(loaded).difference) < 1
    assert any("more than one trial of seed 1" in problem for problem in loaded.problems)
    assert any("more than one configuration" in problem for problem in loaded.problems)
