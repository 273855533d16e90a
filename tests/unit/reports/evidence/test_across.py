"""Claims across cases: what is compared, at what error; against scores that were put in."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from adalayers.results import study_file as records
from adalayers.results.interim_analyses import PLANNED
from reports.evidence.across import ALL, DIFFERENCE, MEAN, SCORE, Across, Case, across
from reports.evidence.claims import FIELDS
from reports.evidence.holm import BETTER, OPEN, SAME, WORSE
from reports.write import write_cover
from tests.helpers.made_scores import analysed, by_seed, request, trials
from tests.helpers.made_up import MadeUp

ARMS = ("control", "a", "b")
REQUEST = request(ARMS)


def case(
    name: str,
    scores: Mapping[str, Sequence[float]],
    *,
    started: str = "2026-05-01T12:00",
    of=REQUEST,
    data: str = "",
    epochs: int = 20,
    answers: Mapping[tuple[str, int], str] | None = None,
) -> Case:
    """Return a case with one analysis, of as many seeds as there are scores."""
    most, table = max(map(len, scores.values())), by_seed(scores)
    backbone, dataset = (
        records.BackboneRecord(id=f"org/{name}"),
        records.DatasetRecord(fingerprint=data or name),
    )
    study = records.StudyFile(
        request=records.RequestRecord(epochs=epochs),
        environment=records.EnvironmentRecord(backbone=backbone, dataset=dataset),
        runs=records.RunsRecord(history=(records.Run(started=started),)),
    )
    evidence = SimpleNamespace(
        request=of,
        trials=trials(table),
        split="test",
        scores=table,
        analyses=analysed(scores, most) if most >= 6 else [],
        answers=answers or {},
        learned_nothing={},
        loaded=SimpleNamespace(study=study),
    )
    return Case(name, evidence)


def changed(of: Case, **fields) -> Case:
    return Case(of.name, SimpleNamespace(**{**vars(of.evidence), **fields}))


def noisy(seeds: int, effects: Mapping[str, float] | None = None, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    effects = effects or {}
    return {arm: 0.4 + effects.get(arm, 0.0) + 0.01 * rng.normal(size=seeds) for arm in ARMS}


def the(found: Across, what: str, arm: str, of: str = ALL):
    (one,) = (
        entry
        for entry in found.claims
        if (entry.what, entry.names[0]) == (what, arm) and entry.case in (of, ALL)
    )
    return one


def test_a_mean_effect_and_a_difference_of_effects_by_hand():
    one, two = noisy(6, {"a": 0.1}, seed=1), noisy(6, {"a": 0.2}, seed=2)
    found = across([case("one", one), case("two", two)])
    effects = [scores["a"] - scores["control"] for scores in (one, two)]
    mean = the(found, MEAN, "a")  # paired, the first of two steps of Holm's procedure
    low, high = stats.t.interval(1 - PLANNED / 2, 5, sum(effects).mean() / 2, stats.sem(sum(effects) / 2))
    assert (mean.low, mean.high) == pytest.approx((low, high))
    assert (mean.kind, mean.n, mean.comparisons, mean.verdict) == ("arm", 6, 2, BETTER)
    assert the(found, MEAN, "b").verdict == OPEN
    difference = the(found, DIFFERENCE, "a", "two")  # not paired, one of two that are not primary
    welch = stats.ttest_ind(effects[1], effects[0], equal_var=False)
    half = stats.t.isf(PLANNED / 4, 5) * (effects[1].mean() - effects[0].mean()) / welch.statistic
    assert difference.difference == pytest.approx((effects[1] - effects[0]).mean())
    assert difference.high - difference.difference == pytest.approx(half)
    assert (difference.n, difference.comparisons, difference.verdict) == (6, 2, None)


def test_backbones_on_the_same_data_are_compared_arm_by_arm():
    one, two = noisy(6, seed=1), noisy(6, dict.fromkeys(ARMS, -0.1), seed=2)
    found = across([case("one", one, data="same"), case("two", two, data="same")])
    scores = [claim for claim in found.claims if claim.what == SCORE]
    assert [(claim.case, claim.reference, claim.arm, claim.verdict) for claim in scores] == [
        ("two", "one", arm, WORSE if arm == "control" else None) for arm in ARMS
    ]
    assert [claim.difference for claim in scores] == [pytest.approx((two[a] - one[a]).mean()) for a in ARMS]
    assert {claim.shown for claim in scores} == {WORSE}


def test_cases_are_compared_with_all_seeds_that_each_has_and_means_over_common_ones():
    one, two = noisy(12, seed=1), noisy(6, seed=2)
    found = across([case("one", one), case("two", two)])
    effects = [row["a"] - row["control"] for row in (one, two)]
    difference, mean = the(found, DIFFERENCE, "a", "two"), the(found, MEAN, "a")
    assert difference.difference == pytest.approx(effects[1].mean() - effects[0].mean())
    assert mean.difference == pytest.approx((effects[1] + effects[0][:6]).mean() / 2)
    assert (difference.n, mean.n) == (6, 6)
    fewer = across([case("one", {arm: row[:6] for arm, row in one.items()}), case("two", two)])
    narrow, wide = (claim.high - claim.low for claim in (difference, the(fewer, DIFFERENCE, "a", "two")))
    assert narrow < wide


def test_a_failed_trial_of_one_case_withholds_verdicts_across_cases():
    cases = [case(name, noisy(6, {"a": 0.2}, seed)) for seed, name in enumerate(("one", "two"))]
    assert the(across(cases), MEAN, "a").verdict == BETTER
    table = cases[1].evidence.trials
    lost = table.assign(status=["failed" if trial == "a-003" else "completed" for trial in table["trial_id"]])
    for what in (MEAN, DIFFERENCE):
        claim = the(across([cases[0], changed(cases[1], trials=lost)]), what, "a", "two")
        assert (claim.shown, claim.low) == (OPEN, None)


def test_only_what_all_cases_of_one_metric_have_is_compared():
    one, other = case("one", noisy(5)), case("two", noisy(5), of=replace(REQUEST, metric="accuracy"))
    assert across([one, other]).claims == ()
    third = case("three", noisy(5, seed=3), of=request(("control", "b")))
    assert {(claim.arm, claim.cases) for claim in across([one, other, third]).claims} == {
        ("b", ("one", "three"))
    }


def test_the_most_cases_that_were_run_alike_are_compared_and_the_others_named():
    one, two = case("one", noisy(5)), case("two", noisy(5), epochs=4)
    found = across([one, two, case("three", noisy(5), epochs=4)])
    assert [case_.name for case_ in found.cases] == ["three", "two"]
    assert found.left_out == (("one", "epochs is 20 there and 4 in three"),)


def test_the_first_case_is_the_one_that_began_first_whatever_the_order_given():
    late, early = case("a", noisy(6), started="2026-05-01T13:00"), case("b", noisy(6, seed=2))
    for given in ([late, early], [early, late]):
        found = across(given)
        assert [case_.name for case_ in found.cases] == ["b", "a"]
        assert {entry.reference for entry in found.claims if entry.what == DIFFERENCE} == {"b"}


def test_seeds_beyond_the_last_analysis_wait_for_the_next():
    one, two = case("one", noisy(9)), case("two", noisy(9, seed=2))
    early = changed(two, analyses=analysed(ARMS, 6))
    assert {entry.n for entry in across([one, early]).claims} == {6}
    none = across([one, changed(two, analyses=[])])
    assert {(entry.shown, entry.low, entry.n) for entry in none.claims} == {(OPEN, None, 9)}


def test_identical_cases_are_seldom_called_different():
    """The last of three varies four times as much."""
    rng, wrong = np.random.default_rng(0), 0
    for _ in range(40):
        cases = []
        for name, spread in (("one", 1.0), ("two", 1.0), ("three", 4.0)):
            noise = 0.02 * rng.normal(size=(1, 9)) + 0.01 * rng.normal(size=(len(ARMS), 9))
            scores = dict(zip(ARMS, 0.4 + spread * noise, strict=True))
            cases.append(case(name, scores, data="same", of=replace(REQUEST, smallest_effect=0.001)))
        wrong += any(claim.shown in (BETTER, WORSE) for claim in across(cases).claims)
    assert stats.binomtest(wrong, 40).proportion_ci().low <= 0.05


# Files


def made(tmp_path, *names: str, **how) -> None:
    for place, name in enumerate(names):
        folder = MadeUp(seeds=6, search=0, evaluations=2, seed=place, **how)
        folder.study["environment"]["backbone"] |= {"id": f"org/{name}"}
        folder.ran((6,))
        folder.write(tmp_path / name)


def test_the_cover_writes_claims_that_are_rebuilt_from_the_files_alone(tmp_path):
    made(tmp_path, "minilm-cola", "random-cola", effects={"uniform": 0.2})
    write_cover(tmp_path, [tmp_path / "minilm-cola", tmp_path / "random-cola"])
    written = (tmp_path / "claims.json").read_bytes()
    claims = json.loads(written)
    assert {claim["kind"] for claim in claims} == {"across"}
    assert {claim["what"] for claim in claims} == {MEAN, DIFFERENCE, SCORE}
    assert set(FIELDS) | {"case", "reference", "cases", "what"} == set(claims[0])
    uniform = next(c for c in claims if (c["what"], c["arm"], c["case"]) == (MEAN, "uniform", "all"))
    assert (uniform["verdict"], uniform["n"], uniform["cases"]) == (BETTER, 6, ["minilm-cola", "random-cola"])
    (tmp_path / "claims.json").unlink()
    write_cover(tmp_path, [tmp_path / "random-cola", tmp_path / "minilm-cola"])
    assert (tmp_path / "claims.json").read_bytes() == written


@pytest.mark.parametrize("aside", [(), ("minilm-cola.20260501-101112",)])
def test_one_case_has_no_claims_across_nor_with_one_that_was_set_aside(tmp_path, aside):
    made(tmp_path, "minilm-cola", *aside)
    write_cover(tmp_path, [tmp_path / name for name in ("minilm-cola", *aside)])
    assert json.loads((tmp_path / "claims.json").read_text()) == []


def test_equal_predictions_in_every_case_are_no_difference():
    scores = {"control": [0.4, 0.5, 0.6, 0.5, 0.4, 0.5]}
    said = {(arm, seed): f"said {seed}" for arm in ARMS for seed in range(1, 7)}
    cases = [
        case(name, dict.fromkeys(ARMS, scores["control"]), answers=said, data=name) for name in ("one", "two")
    ]
    found = across(cases)
    means = [entry for entry in found.claims if entry.what == MEAN]
    assert {(claim.verdict, claim.tie) for claim in means} == {(SAME, True)}
    other = changed(cases[1], answers={**said, ("a", 1): "another"})
    claim = the(across([cases[0], other]), MEAN, "a")
    assert (claim.verdict, claim.tie) == (OPEN, False)
