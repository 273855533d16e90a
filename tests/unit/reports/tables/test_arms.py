"""Tables of made-up studies, against the numbers that were put in."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from reports.tables import arms as tables
from reports.tables import convergence
from tests.helpers.made_scores import request
from tests.helpers.made_up import CONTROL, CORE, MadeUp
from tests.helpers.pages import evidence_of

OTHER = "alpha=8 entropy_weight=0"
OUTSIDE = "uniform"
"""An arm outside the core, which is compared with the control alone."""


def test_arms_table(tmp_path):
    made = MadeUp(seeds=5, failed=(("last", 2),))
    for row, score in zip(made.of(OTHER), [0.1, 0.2, 0.3, 0.1, 0.3], strict=True):
        row["test/matthews"] = score
    for row in made.trials:  # search and failed trials never enter a mean
        if row["stage"] == "search":
            row |= {"val/matthews": 99.0, "test/matthews": 99.0}
    made.of(OUTSIDE)[0]["config/lr"] = 0.5
    evidence = evidence_of(made, tmp_path)
    assert list(evidence.arms["arm"]) == [*CORE, "uniform", "last", "best"]
    table = evidence.arms.set_index("arm")
    row = table.loc[OTHER]
    known = ["config/alpha", "config/entropy_weight", "mix", "split", "n"]
    assert row[known].tolist() == [8, 0, "learned", "test", 5]
    assert row["mean"] == pytest.approx(0.2)
    assert (row["low"], row["high"]) == pytest.approx(stats.t.interval(0.95, 4, 0.2, 0.1 / math.sqrt(5)))
    assert row["val_mean"] == pytest.approx(np.mean([trial["val/matthews"] for trial in made.of(OTHER)]))
    assert table.loc[CORE[6], "aliases"] == "published"
    assert table["mean"].max() < 1
    assert table.loc["last", "n"] == 4
    assert any("more than one configuration" in problem for problem in evidence.loaded.problems)


def test_arms_are_compared_on_validation_without_test_scores_and_not_at_all_without_the_control(tmp_path):
    made = MadeUp(test=False)
    claim = next(claim for claim in evidence_of(made, tmp_path).claims if claim.arm == OUTSIDE)
    assert (claim.split, claim.n) == ("val", 3)
    made.study["request"]["control"] = "alpha=2 entropy_weight=0"
    evidence = evidence_of(made, tmp_path)
    assert evidence.claims == []
    assert any("alpha=2 entropy_weight=0" in problem for problem in evidence.loaded.problems)


def test_the_best_scores_so_far_of_trials_with_history_and_of_diverged_ones(tmp_path):
    made = MadeUp(seeds=3, search=0)
    made.study["environment"]["dataset"]["baseline"]["val"] = 0.2
    one, _, gone = made.of(CONTROL)
    made.history = [row for row in made.history if row["trial_id"] not in (one["trial_id"], gone["trial_id"])]
    for step, score in ((10, 0.5), (20, None), (30, 0.97), (40, 1.0), (50, 0.9)):
        made.history.append({"trial_id": one["trial_id"], "step": step, "val/matthews": score})
    evidence = evidence_of(made, tmp_path)
    steps, best = evidence.best_so_far.curves[CONTROL][1]
    assert (steps.tolist(), best.tolist()) == ([10, 30, 40, 50], [0.5, 0.97, 1.0, 1.0])
    of_arms = convergence.convergence(evidence.best_so_far, evidence.request)
    assert of_arms.set_index("arm").loc[CONTROL, ["n", "low"]].tolist() == [2, 30]
    assert any("no rows in `history.parquet`" in problem for problem in evidence.loaded.problems)
    # A trial no better than the trivial model leaves no score to be reached.
    assert evidence.best_so_far.steps(["last", CONTROL])["last"].keys() == {1, 2, 3}
    made.of("last")[1]["status"] = "diverged"
    assert evidence_of(made, tmp_path).best_so_far.steps(["last", CONTROL]) == {}


def test_the_step_of_convergence_is_that_of_a_trials_own_gain_and_a_censored_one_counts_as_last():
    """Baseline 0.2, best 1.0: the threshold is 0.2 + 0.95 x 0.8 = 0.96."""
    curves = {1: ([10.0, 20.0], [0.955, 1.0]), 2: ([10.0, 30.0], [0.5, 0.97]), 3: ([10.0], [0.2])}
    best = convergence.BestSoFar({"a": {seed: tuple(map(np.array, of)) for seed, of in curves.items()}}, 0.2)
    table = convergence.convergence(best, request(["a"]))
    assert table.iloc[0].tolist() == ["a", 30, 20, math.inf, 3, 1]


def test_one_answer_is_less_than_what_finds_a_rare_class():
    labels = ["spam"] * 5 + ["ham"] * 995
    answers = {"finds": labels, "one": ["ham"] * 1000, "nearly": ["spam"] + ["ham"] * 999}
    rows = [
        {"trial_id": name, "split": "test", "label": x, "prediction": y}
        for name in answers
        for x, y in zip(labels, answers[name], strict=True)
    ]
    assert tables.one_answer(pd.DataFrame(rows), [*answers], "test") == {"one"}


def test_ties_for_best_go_to_the_smallest_trial_id(tmp_path):
    made = MadeUp(seeds=2)
    completed = [row for row in made.trials if (row["status"], row["config/mix"]) == ("completed", "learned")]
    for row in completed:
        row["val/matthews"] = 0.5
    evidence = evidence_of(made, tmp_path)
    assert tables.best_trial(evidence.trials, evidence.request) == min(row["trial_id"] for row in completed)
