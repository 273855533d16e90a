"""Tables of made-up studies, against the numbers that were put in."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from reports.evidence import claims
from reports.evidence.evidence import Evidence
from reports.reading.load import Loaded, load
from reports.tables import arms as tables
from reports.tables import convergence
from tests.helpers.made_scores import request
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
    table = tables.arms(loaded.trials, loaded.study.request)
    assert list(table["arm"]) == [*CORE, "uniform", "last", "best"]
    row = table[table["arm"] == OTHER].iloc[0]
    known = ["config/alpha", "config/entropy_weight", "mix", "split", "n"]
    assert row[known].tolist() == [8, 0, "learned", "test", 5]
    assert row["mean"] == pytest.approx(0.2)
    assert (row["low"], row["high"]) == pytest.approx(stats.t.interval(0.95, 4, 0.2, 0.1 / math.sqrt(5)))
    assert row["val_mean"] == pytest.approx(np.mean([trial["val/matthews"] for trial in made.of(OTHER)]))
    assert table.loc[table["arm"] == CORE[6], "aliases"].item() == "published"


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


def test_a_missing_control_leaves_no_claims_and_is_named(tmp_path):
    made = MadeUp()
    made.study["request"]["control"] = "alpha=2 entropy_weight=0"
    loaded = read(made, tmp_path)
    assert Evidence(loaded).claims == []
    assert any("alpha=2 entropy_weight=0" in problem for problem in loaded.problems)


def test_a_search_has_its_best_first_and_stopped_trials_last(tmp_path):
    evidence = Evidence(read(MadeUp(search=6, stopped=2), tmp_path))
    assert list(evidence.search["status"]) == ["completed"] * 4 + ["stopped"] * 2
    done = evidence.search["score"].iloc[:4]
    assert done.is_monotonic_decreasing


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
    evidence = Evidence(loaded)
    summary = evidence.convergence.set_index("arm").loc[CONTROL]
    assert (summary["n"], summary["censored"], summary["without_history"]) == (2, 1, 1)
    assert (summary["low"], summary["high"], summary["median"]) == (30, math.inf, math.inf)
    assert any("no rows in `history.parquet`" in problem for problem in loaded.problems)
    # A trial no better than the trivial model leaves no score to be reached; here it is the control's, so nowhere.
    found = [claim for claim in evidence.contrasts if claim.metric == "convergence_step"]
    assert {claim.n for claim in found if CONTROL in claim.arms} == {0}


def test_a_diverged_trial_has_the_trivial_score_and_reaches_none(tmp_path):
    made = MadeUp(seeds=2, search=0)
    made.study["environment"]["dataset"]["baseline"]["val"] = 0.2
    last = made.of("last")[1]
    assert best_steps(made, tmp_path / "whole")["last"].keys() == {1, 2}
    last["status"] = "diverged"
    assert best_steps(made, tmp_path / "diverged") == {}


def best_steps(made, folder):
    return Evidence(read(made, folder)).best_so_far.steps(["last", CONTROL])


def test_median_of_steps_counts_censored_as_last():
    curves = {1: ([10.0, 20.0], [0.5, 0.5]), 2: ([10.0, 30.0], [0.1, 0.5]), 3: ([10.0], [0.0])}
    best = convergence.BestSoFar({"a": {seed: tuple(map(np.array, of)) for seed, of in curves.items()}}, 0.0)
    rows = {"trial_id": list("xyz"), "arm": "a", "seed": [1, 2, 3], "stage": "confirm", "status": "completed"}
    table = convergence.convergence(best, pd.DataFrame(rows), request(["a"]))
    assert table.iloc[0].tolist() == ["a", 30, 10, math.inf, 3, 1, 0]


def test_ties_for_best_go_to_the_smallest_trial_id(tmp_path):
    made = MadeUp(seeds=2)
    for row in made.trials:
        if row["status"] == "completed":
            row["val/matthews"] = 0.5
    ids = sorted(row["trial_id"] for row in made.trials if row["status"] == "completed")
    loaded = read(made, tmp_path)
    assert tables.best_trial(loaded.trials, loaded.study.request) == ids[0]


def test_two_configurations_of_an_arm_are_named(tmp_path):
    made = MadeUp(seeds=2)
    made.of(OUTSIDE)[0]["config/lr"] = 0.5
    assert any("more than one configuration" in problem for problem in read(made, tmp_path).problems)
