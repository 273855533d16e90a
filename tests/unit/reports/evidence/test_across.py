"""Claims across cases: what is compared, at what error; against scores that were put in."""

import json
import shutil
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from adalayers.results import study_file as records
from adalayers.results.interim_analyses import PLANNED
from reports.evidence.across import ALL, DIFFERENCE, MEAN, SCORE, Case, across
from reports.evidence.claims import FIELDS
from reports.evidence.evidence import Evidence
from reports.evidence.holm import BETTER, OPEN, SAME, WORSE
from reports.page.cover import _of_both
from reports.reading.load import load
from reports.write import write_cover
from tests.helpers.made_scores import analysed, by_seed, request, trials
from tests.helpers.made_up import MadeUp

ARMS = ("control", "a", "b")
REQUEST = request(ARMS)


def case(name, scores, *, started="2026-05-01T12:00", data="", epochs=20, **changed) -> Case:
    """Return a case with one analysis, of as many seeds as there are scores; changed: of its evidence."""
    most, table = max(map(len, scores.values())), by_seed(scores)
    study = records.StudyFile(
        request=records.RequestRecord(epochs=epochs),
        environment=records.EnvironmentRecord(
            backbone=records.BackboneRecord(id=f"org/{name}"),
            dataset=records.DatasetRecord(fingerprint=data or name),
        ),
        runs=records.RunsRecord(history=(records.Run(started=started),)),
    )
    known = {"request": REQUEST, "trials": trials(table), "split": "test", "scores": table, "answers": {}}
    known |= {"analyses": analysed(scores, most) if most >= 6 else [], "learned_nothing": {}}
    evidence = SimpleNamespace(**{**known, "loaded": SimpleNamespace(study=study), **changed})
    evidence.family = Evidence.family.func(evidence)
    return Case(name, evidence)


def noisy(seeds, effects=(), seed=0) -> dict[str, np.ndarray]:
    rng, effects = np.random.default_rng(seed), dict(effects)
    return {arm: 0.4 + effects.get(arm, 0.0) + 0.01 * rng.normal(size=seeds) for arm in ARMS}


def of_a(found, what, case=ALL):
    """Return the one claim of an arm "a"."""
    (one,) = (c for c in found.claims if (c.what, c.names[0]) == (what, "a") and c.case in (case, ALL))
    return one


def test_a_mean_effect_over_common_seeds_and_a_difference_of_effects_over_all_by_hand():
    one, two = noisy(9, {"a": 0.1}, seed=1), noisy(6, {"a": 0.2}, seed=2)
    found = across([case("one", one), case("two", two)])
    effects = [scores["a"] - scores["control"] for scores in (one, two)]
    means = (effects[0][:6] + effects[1]) / 2
    mean = of_a(found, MEAN)  # paired, the first of two steps of Holm's procedure
    low, high = stats.t.interval(1 - PLANNED / 2, 5, means.mean(), stats.sem(means))
    assert (mean.low, mean.high) == pytest.approx((low, high))
    assert (mean.kind, mean.n, mean.comparisons, mean.verdict) == ("arm", 6, 2, BETTER)
    difference = of_a(found, DIFFERENCE, "two")  # not paired, one of two that are not primary
    welch = stats.ttest_ind(effects[1], effects[0], equal_var=False)
    between = effects[1].mean() - effects[0].mean()
    half = stats.t.isf(PLANNED / 4, 5) * between / welch.statistic
    assert (difference.difference, difference.high) == pytest.approx((between, between + half))
    assert (difference.n, difference.comparisons, difference.verdict) == (6, 2, None)


def test_backbones_on_the_same_data_are_compared_arm_by_arm():
    one, two = noisy(6, seed=1), noisy(6, dict.fromkeys(ARMS, -0.1), seed=2)
    found = across([case("one", one, data="same"), case("two", two, data="same")])
    scores = [claim for claim in found.claims if claim.what == SCORE]
    told = [(claim.case, claim.reference, claim.arm, claim.verdict) for claim in scores]
    assert told == [("two", "one", arm, WORSE if arm == "control" else None) for arm in ARMS]
    assert [claim.difference for claim in scores] == [pytest.approx((two[a] - one[a]).mean()) for a in ARMS]
    assert {claim.shown for claim in scores} == {WORSE}


def test_what_withholds_verdicts_across_cases():
    scores = [noisy(9, {"a": 0.2}, seed) for seed in (0, 1)]
    one, two = (case(name, own) for name, own in zip(("one", "two"), scores, strict=True))
    assert of_a(across([one, two]), MEAN).verdict == BETTER
    table = two.evidence.trials
    lost = table.assign(status=["failed" if trial == "a-003" else "completed" for trial in table["trial_id"]])
    failed = across([one, case("two", scores[1], trials=lost)])
    for what in (MEAN, DIFFERENCE):
        claim = of_a(failed, what, "two")
        assert (claim.shown, claim.low) == (OPEN, None)
    # Seeds beyond the last analysis wait for the next.
    early = across([one, case("two", scores[1], analyses=analysed(ARMS, 6))])
    assert {claim.n for claim in early.claims} == {6}
    none = across([one, case("two", scores[1], analyses=[])])
    assert {(claim.shown, claim.low, claim.n) for claim in none.claims} == {(OPEN, None, 9)}


def test_which_cases_are_compared():
    one, two = case("one", noisy(5)), case("two", noisy(5), epochs=4)
    assert across([one, case("two", noisy(5), request=replace(REQUEST, metric="accuracy"))]).claims == []
    other_arms = across([one, case("three", noisy(5, seed=3), request=request(("control", "b")))])
    assert {(claim.arm, claim.cases) for claim in other_arms.claims} == {("b", ("one", "three"))}
    most_alike = across([one, two, case("three", noisy(5), epochs=4)])
    assert [case_.name for case_ in most_alike.cases] == ["three", "two"]
    assert most_alike.left_out == [("one", "epochs is 20 there and 4 in three")]
    four = case("four", noisy(5)), case("five", noisy(5), epochs=7)
    pairs = across([one, two, case("three", noisy(5), epochs=4), *four])
    assert {claim.cases for claim in pairs.claims} == {("four", "one"), ("three", "two")}
    assert pairs.left_out == [("five", "epochs is 7 there and 20 in four")]
    # Each pair is a family of two means: cases of other flags change nothing that was claimed.
    assert {claim.comparisons for claim in pairs.claims if claim.primary} == {2}
    late, early = case("a", noisy(6), started="2026-05-01T13:00"), case("b", noisy(6, seed=2))
    for given in ([late, early], [early, late]):  # the first is the one that began first
        found = across(given)
        assert {claim.reference for claim in found.claims if claim.what == DIFFERENCE} == {"b"}


def test_equal_predictions_in_every_case_are_no_difference():
    scores = dict.fromkeys(ARMS, (0.4, 0.5, 0.6, 0.5, 0.4, 0.5))
    said = {(arm, seed): f"said {seed}" for arm in ARMS for seed in range(1, 7)}
    one, two = (case(name, scores, answers=said) for name in ("one", "two"))
    means = [claim for claim in across([one, two]).claims if claim.what == MEAN]
    assert {(claim.verdict, claim.tie) for claim in means} == {(SAME, True)}
    other = case("two", scores, answers={**said, ("a", 1): "another"})
    claim = of_a(across([one, other]), MEAN)
    assert (claim.verdict, claim.tie) == (OPEN, False)


def test_the_cover_writes_claims_in_the_order_in_which_cases_began_and_none_of_one_case(tmp_path):
    names = ("minilm-cola", "random-cola", "minilm-cola.20260501-101112")
    cola, random, aside = (tmp_path / name for name in names)
    for place, folder in enumerate((cola, random, aside)):
        made = MadeUp(seeds=6, search=0, evaluations=2, seed=place, effects={"uniform": 0.2})
        made.study["environment"]["backbone"] |= {"id": f"org/{folder.name}"}
        made.ran((6,)).write(folder)
    written, cases = [], [Case(folder.name, Evidence(load(folder))) for folder in (random, cola)]
    for _ in range(2):
        write_cover(tmp_path)
        written.append(json.loads((tmp_path / "claims.json").read_text()))
        shutil.rmtree(random, ignore_errors=True)
    kinds = {(claim["kind"], claim["what"]) for claim in written[0]}
    assert kinds == {("across", what) for what in (MEAN, DIFFERENCE, SCORE)}
    assert {*written[0][0]} == {*FIELDS, "case", "reference", "cases", "what"}
    assert [claim.as_json() for claim in across(cases).claims] == written[0], "whatever folder is read first"
    assert written[1] == []
    made.study["study"] = "ablation"
    made.write(random)
    write_cover(tmp_path)
    assert "random-cola is a study of another kind, ablation" in (tmp_path / "report.md").read_text()
    assert "20260501" not in (tmp_path / "report.md").read_text()


def test_a_layer_that_is_the_last_of_one_base_model_alone_is_not_called_so_over_both():
    assert _of_both("layer 6 (last)", "layer 6") == _of_both("layer 6", "layer 6 (last)") == "layer 6"
    assert _of_both("α = 8", "α = 8, λ = 0.01") == "α = 8, λ = 0.01"
    assert _of_both("layer 6 (last)", "layer 6 (last)") == "layer 6 (last)"


def test_a_cover_is_written_before_an_arm_has_any_score(tmp_path):
    folders = [tmp_path / name for name in ("minilm-cola", "random-cola")]
    for folder in folders:
        made = MadeUp(seeds=6, search=0, evaluations=2)
        made.study["environment"]["backbone"] |= {"id": f"org/{folder.name}"}
        made.trials = [row for row in made.trials if row["arm"] != "uniform"]
        made.write(folder)
    write_cover(tmp_path)
    assert "equal weights" in (tmp_path / "report.md").read_text()
