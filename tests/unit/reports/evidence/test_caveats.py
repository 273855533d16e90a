"""The report judges itself: each check finds what was planted, and nothing where nothing was."""

import functools
import math
import operator
import re
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from reports.evidence.caveats import CAUTION, NOTE, SERIOUS, caveats
from reports.evidence.claims import undecided
from reports.parts import answer
from reports.reading.load import load
from reports.reading.space import Domain
from reports.tables import arms as tables
from reports.tables import rungs
from reports.tables.ranges import edges
from tests.helpers.made_up import CONTROL, CORE, MadeUp
from tests.helpers.pages import evidence_of


def sound(**how) -> MadeUp:
    """A study without caveats: many seeds, arms told apart, nothing at an edge."""
    levels = np.linspace(0, 2, 15)
    effects = dict(
        zip([arm for arm in (*CORE, "uniform", "last", "best") if arm != CORE[4]], levels, strict=False)
    )
    effects[CORE[4]] = 3.0  # alpha 8, lambda 1e-3: inside the core
    made = MadeUp(**{"seeds": 25, "search": 0, "evaluations": 2, "effects": effects, "examples": 0, **how})
    made.arms[-1]["role"] = "core"
    made.predictions.clear()
    for row in made.of(CONTROL):
        row["mix/entropy"] *= 0.9  # a mix that has moved
    return made


def found(made: MadeUp, tmp_path) -> list:
    return caveats(evidence_of(made, tmp_path))


def said(made: MadeUp, tmp_path, severity: str = "") -> str:
    return " ".join(f.finding for f in found(made, tmp_path) if severity in ("", f.severity))


def test_a_sound_study_raises_nothing_but_the_missing_interval(tmp_path):
    all_found = found(sound(), tmp_path)
    assert [f.severity for f in all_found] == [NOTE]
    assert "do not cover the choice of test examples" in all_found[0].finding


def same_seed(made: MadeUp, seed: int = 7) -> None:
    made.trials.append({**made.trials[0], "trial_id": "s", "stage": "search", "arm": "", "seed": seed})


def alike(made: MadeUp) -> None:
    for row, control in zip(made.of("uniform"), made.of(CONTROL), strict=True):
        row["test/matthews"] = control["test/matthews"] + 0.1


def of_arm(arm: str, **changed: object) -> Callable[[MadeUp], object]:
    return lambda made: [row.update(changed) for row in made.of(arm)]


def study(place: str, value: object) -> Callable[[MadeUp], None]:
    """Return what sets one value of `study.json`; place: the keys that lead to it."""
    *into, last = place.split()

    def change(made: MadeUp) -> None:
        functools.reduce(operator.getitem, into, made.study)[last] = value

    return change


RUN = {"confirmed": 1, "commit": "a", "dirty": False, "machine": "cpu, torch 2"}
OTHERS = [RUN, {**RUN, "machine": "H100, torch 2"}, {**RUN, "machine": "other", "confirmed": 0}]
CUT = {"train": {"examples": 385}, "test": {"examples": 10}}
UNSAVED = "uncommitted changes"
FAULTS = {
    "smoke": (study("runs smoke", True), SERIOUS, "A smoke run"),
    "unfinished": (study("runs state", "interrupted"), SERIOUS, "not known to have finished"),
    "dirty": (study("environment git dirty", True), SERIOUS, UNSAVED),
    "dirty run": (study("runs history", [{**RUN, "dirty": True}]), SERIOUS, UNSAVED),
    "commits": (
        study("runs history", [RUN, {**RUN, "commit": "b"}]),
        CAUTION,
        "2 commits are mixed (`a` and `b`)",
    ),
    "machines": (
        study("runs history", OTHERS),
        CAUTION,
        "2 machines are mixed (H100, torch 2; cpu, torch 2)",
    ),
    "same seed": (same_seed, SERIOUS, "Seed 7 of the search also confirms"),
    "diverged": (of_arm(CORE[2], status="diverged"), CAUTION, "25 confirmed trials failed or diverged"),
    "longer": (of_arm(CORE[3], epochs=9), NOTE, "on average 2.0 epochs"),
    "larger": (of_arm(CORE[3], parameters=400_000), CAUTION, f"(`{CONTROL}`) to 400,000 (`{CORE[3]}`)"),
    "alike": (alike, CAUTION, "no interval: `uniform`"),
    "edge": (of_arm(CORE[11], **{"val/matthews": 9.0}), CAUTION, "edge of the `alpha` tried, 512"),
    "cut": (study("environment dataset truncated", CUT), CAUTION, "5.0% (385 of 7,695 examples)."),
    "shared": (study("environment dataset shared", {"test": 16}), CAUTION, "test 16 of 1,043 examples."),
    "missing": (study("request seeds", None), CAUTION, "no `request.seeds`"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_found(tmp_path, name):
    change, severity, words = FAULTS[name]
    made = sound()
    assert words not in said(made, tmp_path)
    change(made)
    assert words in said(made, tmp_path, severity)


def test_more_seeds_than_are_planned_for_are_not_called_few(tmp_path):
    made = MadeUp(seeds=105, search=0, evaluations=1, between=0, noise=0.3)
    assert "Few seeds" not in said(made, tmp_path)


def test_pairs_that_failed_are_missed_and_those_that_were_not_asked_for_are_not(tmp_path):
    words = "Not all comparisons have 6 pairs of seeds; fewer have `last`."
    made = MadeUp(seeds=6, search=0, failed=(("last", 2),))
    assert words in said(made, tmp_path, CAUTION)
    # An arm all of whose primary comparisons are decided is given no more seeds: no pairs of it are missing.
    effects = {arm: 5.0 * ("alpha=64" in arm) + 9.0 * ("weight=0.0" in arm) for arm in CORE}
    made = MadeUp(seeds=9, search=0, effects=effects).ran((6, 9), planned=(20,))
    for arm in CORE[6:9]:
        made.trials = [row for row in made.trials if row["arm"] != arm or row["seed"] <= 6]
    found = evidence_of(made, tmp_path).claims
    assert not undecided(found) & {*CORE[6:9]}
    assert any(claim.n == 6 and not claim.decided for claim in found)
    assert "Not all comparisons" not in said(made, tmp_path)


@pytest.mark.parametrize("later", [0.2, -0.3])
def test_seeds_after_a_decision_that_disagree_with_it(tmp_path, later):
    made = MadeUp(seeds=12, search=0).ran((6,), (12,))
    wobble = (0.0, 0.0001, -0.0001)
    for row, control, place in zip(made.of("uniform"), made.of(CONTROL), range(12), strict=True):
        difference = (0.2 if place < 6 else later) + wobble[place % 3]
        row["test/matthews"] = control["test/matthews"] + difference
    claims = {claim.arm: claim for claim in evidence_of(made, tmp_path).claims}
    assert (claims["uniform"].verdict, claims["uniform"].n) == ("better", 6)
    words = "put its mean outside the interval of its claim: `uniform`."
    assert (words in said(made, tmp_path, CAUTION)) == (later < 0)


def test_the_power_of_few_seeds_is_that_of_the_studys_own_analyses(tmp_path):
    """Six seeds: a single t test at the step of Holm's procedure that stopped; of five no verdict comes."""
    made = MadeUp(seeds=6, search=0, evaluations=2, noise=0.05)
    claim = next(
        claim for claim in evidence_of(made, tmp_path / "six").claims if claim.primary and not claim.decided
    )
    critical = stats.t.isf(claim.level / 2, 5)
    power = stats.nct.sf(critical, 5, math.sqrt(6)) + stats.nct.cdf(-critical, 5, math.sqrt(6))
    (share,) = re.findall(
        r"6 find a true difference .* (\d+)% of the time", said(made, tmp_path / "again", SERIOUS)
    )
    assert int(share) == pytest.approx(100 * power, abs=2)
    made = MadeUp(seeds=5, search=0, evaluations=2)
    assert "a verdict takes 6, here are 5." in said(made, tmp_path / "five", SERIOUS)


def test_better_only_on_these_examples(tmp_path):
    """Seeds agree that the arm gets two or three more of twelve examples right; another twelve may say otherwise."""
    made = sound(effects={}, noise=0.0)
    made.metric = made.study["request"]["metric"] = "accuracy"
    for row in made.trials:
        right = 9 + int(row["seed"]) % 2 if row["arm"] == "uniform" else 7
        row |= {"test/accuracy": right / 12, "test/matthews": None}
        made.predictions += [
            {"trial_id": row["trial_id"], "split": "test", "index": i, "label": "a"}
            | {"prediction": "a" if i < right else "b", "score": 1.0}
            for i in range(12)
        ]
    text = said(made, tmp_path, CAUTION)
    assert "not beyond the chance of having drawn them: `uniform`" in text


def shifted(made: MadeUp, differences: list[float]) -> None:
    """Put the differences of one arm to the control, by seed."""
    for row, control, difference in zip(made.of("uniform"), made.of(CONTROL), differences, strict=True):
        row["test/matthews"] = control["test/matthews"] + difference


def test_a_seed_that_holds_most_of_a_comparisons_variance(tmp_path):
    """Of ten like the normal distribution's quantiles the largest holds 30%; one far off holds nearly all."""
    made = MadeUp(seeds=10, search=0, examples=0)
    even = [0.01 * value for value in (-1.5, -1.0, -0.7, -0.4, -0.1, 0.1, 0.4, 0.7, 1.0, 1.5)]
    shifted(made, even)
    words = "One seed holds most of the variance: `uniform` (seed 10, 88% of n = 10)"
    assert "`uniform` (seed" not in said(made, tmp_path)
    shifted(made, [*even[:-1], 0.15])
    assert words in said(made, tmp_path, CAUTION)


@pytest.mark.parametrize("metric", ["f1", "matthews"])
def test_arms_that_learned_nothing_and_averages_over_them(tmp_path, metric):
    made = MadeUp(seeds=6, search=0, tokens=metric == "f1", examples=0)
    assert "Nothing learned" not in said(made, tmp_path)
    for arm, severity in ((CORE[4], CAUTION), (CORE[1], SERIOUS)):
        for row in made.of(arm)[:3]:
            row[f"test/{metric}"] = 0.0
        assert f"`{arm}` (on 3 of 6 seeds)" in said(made, tmp_path, severity)
    assert "nothing can differ, and averages say so: `alpha=8`" in said(made, tmp_path, SERIOUS)
    told = "\n".join(answer.section(answer.info(evidence_of(made, tmp_path))))
    assert "(2 of 12 settings learned nothing): " in told


def test_one_answer_to_all_is_said_on_top_where_the_control_gives_it(tmp_path):
    made = MadeUp(seeds=6, search=0, effects={"uniform": 0.3})
    made.study["environment"]["dataset"]["kind"] = "another package's"
    made.predictions = [
        {
            "trial_id": row["trial_id"],
            "split": "test",
            "index": i,
            "label": i % 2,
            "prediction": 1,
            "score": 1.0,
        }
        for row in made.of(CONTROL)
        for i in range(2)
    ]
    (caveat,) = (caveat for caveat in found(made, tmp_path) if caveat.finding.startswith("Nothing learned"))
    assert caveat.on_top
    assert f"`{CONTROL}` (on 6 of 6 seeds). These verdicts say which arm was trained" in caveat.finding
    assert "`uniform`" in caveat.finding


@pytest.mark.parametrize("together", [1, 30])
def test_sentences_of_one_document_that_are_wrong_together(tmp_path, together):
    """Of 60 documents of 30 sentences an arm misses each sentence, or each document, three times in ten."""
    made = MadeUp(seeds=6, search=0, tokens=True, examples=0)
    made.predictions.clear()
    rng = np.random.default_rng(0)
    for row in made.of("uniform") + made.of(CONTROL):
        of_arm = 0.7 if row["arm"] == "uniform" else 1.1
        right = np.repeat(rng.random(1800 // together) < of_arm, together)
        row |= dict.fromkeys(("test/f1", "test/f1/PER"), 2 * right.sum() / (1800 + right.sum()))
        made.predictions += [
            {"trial_id": row["trial_id"], "split": "test", "index": i, "label": "B-PER", "score": 1.0}
            | {"prediction": "B-PER" if is_right else "O"}
            for i, is_right in enumerate(right)
        ]
    evidence = evidence_of(made, tmp_path)
    [(claim, ratio, blocks)] = evidence.widths_by_block
    assert (claim.arm, blocks) == ("uniform", 60)
    assert ratio == pytest.approx(np.sqrt(together), rel=0.25)
    text = " ".join(caveat.finding for caveat in caveats(evidence))
    assert ("Neighbouring sentences are not independent" in text) == (together > 1)


def search(values: list[float], scores: list[float], name: str = "lr") -> pd.DataFrame:
    rows = [
        {"trial_id": f"t{i}", "stage": "search", "arm": "", "status": "completed", f"config/{name}": value}
        | {"val/matthews": score}
        for i, (value, score) in enumerate(zip(values, scores, strict=True))
    ]
    return pd.DataFrame(rows)


RANGE, LINEAR = Domain("lr", "", 0.0001, 0.01, log=True), Domain("lr", "", 0.0, 1.0)


@pytest.mark.parametrize(
    ("domain", "best", "end"),
    [
        (RANGE, 0.00012, "low"),  # 100^0.05 is 1.26: the outer twentieth ends at 1.26e-4
        (RANGE, 0.00013, ""),
        (RANGE, 0.008, "high"),
        (LINEAR, 0.96, "high"),
        (LINEAR, 0.5, ""),
        (Domain("lr", "", choices=("0.0", "0.001", "0.01")), 0.01, "high"),
        (Domain("lr", "", choices=("0.0", "0.001", "0.01")), 0.0, ""),  # nothing lies below 0
        (Domain("lr", "", choices=("0.1", "0.2", "0.4")), 0.1, "low"),
        (Domain("lr", "", choices=("0.1", "0.4")), 0.1, ""),  # of two values either is an end
        (Domain("lr", "", choices=("yes", "no", "?")), 0.1, ""),
    ],
)
def test_the_best_at_the_edge_of_its_range(tmp_path, domain, best, end):
    plan = load(MadeUp(seeds=1).write(tmp_path)).plan
    trials = search([0.3, best, best, 0.2], [0.1, 0.9, 0.8, 0.2])
    ends = edges(trials, plan, [domain, Domain("alpha", "", 1, 2, log=True)], grid=False)
    assert [edge.end for edge in ends] == ([end] if end else [])
    assert all((edge.name, edge.value) == ("lr", best) for edge in ends)


def test_a_grid_has_the_ends_of_what_was_tried(tmp_path):
    plan = load(MadeUp(seeds=1).write(tmp_path)).plan
    trials = search([1.0, 8.0, 64.0], [0.1, 0.2, 0.9])
    assert edges(trials, plan, [Domain("lr", "", 0.5, 1024, log=True)], grid=False) == []
    (edge,) = edges(trials, plan, [Domain("lr", "", 0.5, 1024, log=True)], grid=True)
    assert (edge.value, edge.end, edge.n_at_edge, edge.n_best) == (64.0, "high", 1, 3)
    wider = pd.concat([trials.assign(search="a"), search([0.5, 512.0], [0.1, 0.2]).assign(search="b")])
    (edge,) = edges(wider, plan, [Domain("lr", "", 0.5, 1024, log=True)], grid=True, search="a")
    assert edge.value == 64.0


def test_stopped_trials_are_compared_where_all_still_ran(tmp_path):
    made = MadeUp(seeds=1, search=4, stopped=1)
    made.history = [
        {"trial_id": f"search{i:03d}", "epoch": epoch, "step": epoch, "val/matthews": score}
        for i, scores in enumerate([(0.5, 0.6), (0.1, 0.2, 0.9), (0.3, 0.2, 0.4), (0.4, 0.5, 0.7)])
        for epoch, score in enumerate(scores, start=1)
    ]
    loaded = load(made.write(tmp_path))
    table = tables.search(loaded.results.trials, loaded.plan)
    rung = rungs.last_common(table, loaded.results.history, loaded.plan)
    assert (rung.epoch, rung.without) == (2, 0)
    # The best up to epoch 2; the stopped trial leads there, whatever others reach later.
    assert rung.scores.to_dict() == {"search000": 0.6, "search001": 0.2, "search002": 0.3, "search003": 0.5}
    done = table[table["status"] == "completed"]
    at, end = done["trial_id"].map(rung.scores).rank(), done["score"].rank()
    expected = 1 - 6 * ((at - end) ** 2).sum() / (3 * (3**2 - 1))  # Spearman's own formula, without ties
    assert rungs.agreement(table, rung) == (pytest.approx(expected), 3)


def test_a_search_without_history_has_no_rung(tmp_path):
    made = MadeUp(seeds=1, search=3)
    made.history = []
    loaded = load(made.write(tmp_path))
    table = tables.search(loaded.results.trials, loaded.plan)
    rung = rungs.last_common(table, loaded.results.history, loaded.plan)
    assert (rung.epoch, len(rung.scores), rung.without) == (None, 0, 3)
    assert rungs.agreement(table, rung) == (None, 0)


@pytest.mark.parametrize(
    ("counts", "said"), [({"a": 81, "b": 19}, True), ({"a": 79, "b": 21}, False), ({}, False)]
)
def test_uneven_classes_are_named_where_accuracy_counts(tmp_path, counts, said):
    made = MadeUp(seeds=3, search=0, evaluations=2, examples=20)
    made.study["environment"]["dataset"]["distribution"] = {"test": counts}
    made.study["request"]["metric"] = made.metric = "accuracy"
    for row in made.trials:
        row |= {"val/accuracy": 0.9, "test/accuracy": 0.9}
    words = "81% of the labels of test are `a`"
    assert any(words in caveat.finding for caveat in found(made, tmp_path)) == said


def test_arms_that_still_improved_when_training_ended_are_named(tmp_path):
    made = sound()
    for row in made.trials:
        row |= {"config/epochs": 5, "best_epoch": 5 if row["arm"] == "last" else 3}
    words = "Possibly under-trained: the best epoch is the last of 5 in at least 80% of the trials of `last`"
    assert words in said(made, tmp_path / "some", CAUTION)
    for row in made.trials:
        row["best_epoch"] = 5  # all alike
    assert "Possibly under-trained" not in said(made, tmp_path / "all")


def test_several_searches_have_no_edge_in_common(tmp_path):
    made = sound(search=20)
    for place, row in enumerate(row for row in made.trials if row["stage"] == "search"):
        row["search"] = f"search {place % 2}"
    assert "end of its range" not in said(made, tmp_path)


@pytest.mark.parametrize(
    ("accuracy", "said_of_it"),
    [
        (0.68, "Accuracy: 0.680 to 0.680 by arm, none above the 0.690 of one answer to all"),
        (0.699, "next to the 0.690 of one answer to all"),
        (0.701, ""),
    ],
)
def test_accuracy_no_better_than_that_of_the_most_frequent_class_is_near_the_baseline(
    tmp_path, accuracy, said_of_it
):
    made = sound()
    for row in made.trials:
        row["test/accuracy"] = accuracy
    made.study["environment"]["dataset"] |= {
        "labels": ["no", "yes"],
        "distribution": {"test": {"no": 31, "yes": 69}},
    }
    near = [caveat for caveat in found(made, tmp_path) if caveat.finding.startswith("Near the baseline")]
    assert bool(near) == bool(said_of_it)
    assert all(said_of_it in caveat.finding and caveat.on_top for caveat in near)
