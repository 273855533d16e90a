"""Claims across cases: what is compared, when, at what error; against scores that were put in."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from adalayers.results.study_file import Run
from reports.evidence.across import (
    ALL,
    DIFFERENCE,
    MEAN,
    SCORE,
    Across,
    CaseEvidence,
    across,
    study_runs,
    undecided,
)
from reports.evidence.claims import BETTER, FIELDS, OPEN, SAME, WORSE
from reports.evidence.spending import HALF, PLANNED, PRIMARY, RESERVE
from reports.evidence.statistics import paired, unpaired_critical
from reports.parts.across import section
from reports.write import write_cover
from tests.calibration import Share
from tests.helpers.made_scores import by_seed, plan, run, trials
from tests.helpers.made_up import MadeUp

ARMS = ("control", "a", "b")
PLAN = plan(ARMS)


def case(
    name: str,
    scores: Mapping[str, Sequence[float]],
    runs: Sequence[Run] = (),
    *,
    of=PLAN,
    data: str = "",
    flags: Mapping[str, object] | None = None,
) -> CaseEvidence:
    """Return a case of one run at noon with as many seeds as there are scores, unless runs are given."""
    table = by_seed(scores)
    most = max(map(len, scores.values()))
    runs = runs or [at(12, run({arm: range(1, len(row) + 1) for arm, row in scores.items()}, most, most))]
    return CaseEvidence(
        name=name,
        plan=of,
        trials=trials(table),
        split="test",
        runs=tuple(runs),
        backbone=f"org/{name}",
        dataset=data or name,
        flags=flags or {},
    )


def at(hour: int, of: Run, minutes: int = 30) -> Run:
    """Return a run with its times."""
    return replace(
        of, started=f"2026-05-01T{hour:02d}:00:00.000", ended=f"2026-05-01T{hour:02d}:{minutes}:00.000"
    )


def noisy(seeds: int, effects: Mapping[str, float] | None = None, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    effects = effects or {}
    return {arm: 0.4 + effects.get(arm, 0.0) + 0.01 * rng.normal(size=seeds) for arm in ARMS}


def the(found: Across, what: str, arm: str, of: str = ALL):
    (one,) = (
        entry
        for entry in found.claims
        if (entry.what, entry.claim.names[0]) == (what, arm) and entry.case in (of, ALL)
    )
    return one.claim


# By hand


def test_a_mean_effect_and_a_difference_of_effects_by_hand():
    one, two = noisy(6, {"a": 0.1}, seed=1), noisy(6, {"a": 0.2}, seed=2)
    found = across([case("one", one), case("two", two)])
    effects = [scores["a"] - scores["control"] for scores in (one, two)]
    # Two means and nothing else is primary: they share 80% of the planned error.
    for what, values, share in (
        (MEAN, (effects[0] + effects[1]) / 2, PRIMARY / 2),
        (DIFFERENCE, effects[1] - effects[0], (1 - PRIMARY) / 2),
    ):
        claim = the(found, what, "a", "two")
        error = values.std(ddof=1) / math.sqrt(6)
        critical = stats.t.isf(PLANNED * share / 2, 5)
        if what == DIFFERENCE:  # of two cases, whose seeds are not paired
            samples = [paired(effect, scale=1.0) for effect in effects]
            error = math.sqrt(sum(effect.var(ddof=1) / 6 for effect in effects))
            critical = unpaired_critical(PLANNED * share, *samples)
        half = critical * error
        assert claim.difference == pytest.approx(values.mean())
        assert claim.low == pytest.approx(values.mean() - half)
        assert claim.high == pytest.approx(values.mean() + half)
        assert (claim.kind, claim.n, claim.comparisons, claim.verdict) == ("arm", 6, 4, BETTER)
    assert the(found, MEAN, "b").verdict == OPEN


def test_backbones_on_the_same_data_are_compared_arm_by_arm():
    one, two = noisy(6, seed=1), noisy(6, dict.fromkeys(ARMS, -0.1), seed=2)
    found = across([case("one", one, data="same"), case("two", two, data="same")])
    scores = [entry for entry in found.claims if entry.what == SCORE]
    assert [(entry.case, entry.reference, entry.claim.arm, entry.claim.primary) for entry in scores] == [
        ("two", "one", arm, arm == "control") for arm in ARMS
    ]
    assert [entry.claim.difference for entry in scores] == [
        pytest.approx((two[a] - one[a]).mean()) for a in ARMS
    ]
    assert {entry.claim.verdict for entry in scores} == {WORSE}
    assert not [entry for entry in across([case("one", one), case("two", two)]).claims if entry.what == SCORE]


def test_cases_are_compared_with_all_seeds_that_each_has_and_means_over_common_ones():
    one, two = noisy(12, seed=1), noisy(6, seed=2)
    found = across([case("one", one), case("two", two)])
    effects = [row["a"] - row["control"] for row in (one, two)]
    difference, mean = the(found, DIFFERENCE, "a", "two"), the(found, MEAN, "a")
    assert difference.difference == pytest.approx(effects[1].mean() - effects[0].mean())
    assert mean.difference == pytest.approx((effects[1] + effects[0][:6]).mean() / 2)
    # Twelve and six tell as much as eight and eight, of twelve planned: no pairs, so no share of them.
    assert [pairs for pairs, _ in difference.schedule] == [6, 8]
    assert (difference.n, difference.improvement, mean.improvement is None) == (6, None, False)
    fewer = across([case("one", {arm: row[:6] for arm, row in one.items()}), case("two", two)])
    narrow, wide = (claim.high - claim.low for claim in (difference, the(fewer, DIFFERENCE, "a", "two")))
    assert narrow < wide


def test_open_primary_comparisons_need_more_seeds_of_the_cases_with_fewest():
    effects = {"a": 0.2}  # decided; the mean effect of b is open
    cases = [case("one", noisy(9, effects, seed=1)), case("two", noisy(6, effects, seed=2))]
    found = across(cases)
    assert (the(found, MEAN, "a").decided, the(found, MEAN, "b").decided) == (True, False)
    assert undecided(found) == {"two": {"control", "b"}}
    both = across([replace(case_, runs=cases[0].runs) for case_ in cases])
    assert undecided(both) == {name: {"control", "b"} for name in ("one", "two")}
    assert undecided(across(cases[:1])) == {}


def test_a_failed_trial_of_one_case_withholds_verdicts_across_cases():
    cases = [case(name, noisy(6, {"a": 0.2}, seed)) for seed, name in enumerate(("one", "two"))]
    assert the(across(cases), MEAN, "a").verdict == BETTER
    table = cases[1].trials
    lost = table.assign(status=["failed" if trial == "a-003" else "completed" for trial in table["trial_id"]])
    for what in (MEAN, DIFFERENCE):
        claim = the(across([cases[0], replace(cases[1], trials=lost)]), what, "a", "two")
        assert (claim.verdict, claim.low) == (OPEN, None)


def test_a_diverged_trial_counts_across_cases_with_the_score_it_has():
    """A run's own seeds are those that completed; what its analyses cover are those that diverged too."""
    one, two = (case(name, noisy(6, {"a": 0.2}, seed)) for seed, name in enumerate(("one", "two")))
    whole, (ended,) = across([one, two]), two.runs
    diverged = two.trials.assign(
        status=["diverged" if trial == "a-003" else "completed" for trial in two.trials["trial_id"]]
    )
    completed = replace(ended, seeds={**ended.seeds, "a": [1, 2, 4, 5, 6]})
    found = across([one, replace(two, trials=diverged, runs=(completed,))])
    for what in (MEAN, DIFFERENCE):
        assert the(found, what, "a", "two").n == 6
        assert the(found, what, "a", "two").difference == the(whole, what, "a", "two").difference


def test_only_cases_of_one_metric_share_effects():
    other = replace(PLAN, metric="accuracy")
    one, two = case("one", noisy(5)), case("two", noisy(5), of=other)
    assert across([one, two]).claims == ()
    third = case("three", noisy(5, seed=3))
    claims = across([one, two, third]).claims
    assert {entry.cases for entry in claims} == {("one", "three")}


def test_a_comparison_that_one_case_lacks_is_left_out():
    found = across([case("one", noisy(5)), case("two", noisy(5), of=plan(("control", "b")))])
    assert {entry.claim.arm for entry in found.claims} == {"b"}


def test_the_most_cases_that_were_run_alike_are_compared_and_the_others_named():
    one, two = case("one", noisy(5)), case("two", noisy(5), flags={"epochs": 4, "backbone id": "x"})
    found = across([one, two, case("three", noisy(5), flags={"epochs": 4, "backbone id": "y"})])
    assert [case_.name for case_ in found.cases] == ["three", "two"]
    assert found.left_out == (("one", "epochs is None there and 4 in three"),)
    assert "`one` (epochs is None there and 4 in three)" in "\n".join(section(found))


# When


def test_the_first_case_is_the_one_that_began_first_whatever_the_order_given():
    late = case("a", noisy(5), [at(13, run(dict.fromkeys(ARMS, range(1, 6)), 5, 5))])
    early = case("b", noisy(5, seed=2))
    for given in ([late, early], [early, late]):
        found = across(given)
        assert [case_.name for case_ in found.cases] == ["b", "a"]
        assert {entry.reference for entry in found.claims if entry.what == DIFFERENCE} == {"b"}


def test_what_ran_before_the_second_case_is_no_analysis():
    first = at(9, run(dict.fromkeys(ARMS, range(1, 7)), 6, 6))
    second = at(12, run(dict.fromkeys(ARMS, range(1, 7)), 6, 6))
    found = across([case("one", noisy(6), [first]), case("two", noisy(6, seed=2), [second])])
    assert [(analysis.budget.planned, analysis.budget.seeds) for analysis in found.analyses] == [(6, 6)]
    together = across([case("one", noisy(6)), case("two", noisy(6, seed=2))])
    assert [entry.claim.low for entry in found.claims] == [entry.claim.low for entry in together.claims]


def test_a_case_that_joins_leaves_earlier_claims_as_they_were_and_has_the_error_of_an_extension():
    one, two = case("one", noisy(6, {"a": 0.2})), case("two", noisy(6, {"a": 0.1}, seed=2))
    later = [at(15, run(dict.fromkeys(ARMS, range(1, 7)), 6, 6))]
    three = case("three", noisy(6, {"a": 0.2}, seed=3), later)
    before, after = across([one, two]), across([one, two, three])
    assert len(after.analyses) == 2
    assert the(after, DIFFERENCE, "a", "two").values == the(before, DIFFERENCE, "a", "two").values
    assert the(after, DIFFERENCE, "a", "two").interval_level == pytest.approx(
        the(before, DIFFERENCE, "a", "two").interval_level
    )
    mean_of_two, joined = (
        entry.claim for entry in after.claims if (entry.what, entry.claim.arm) == (MEAN, "a")
    )
    assert mean_of_two.interval_level == pytest.approx(the(before, MEAN, "a").interval_level)
    assert (joined.n, joined.analyses) == (6, 2)
    assert joined.weights == pytest.approx(
        {
            f"{name}/{arm}": sign / 3
            for name in ("one", "two", "three")
            for arm, sign in (("a", 1), ("control", -1))
        }
    )
    # Four means, two of them of the first two cases, share 80% of what a block beyond the plan has.
    assert 1 - joined.interval_level == pytest.approx(RESERVE / (1 + HALF) * PRIMARY / 4, rel=1e-6)


def test_seeds_that_are_added_later_spend_the_reserve():
    first = at(9, run(dict.fromkeys(ARMS, range(1, 7)), 6, 6))
    second = at(12, run(dict.fromkeys(ARMS, range(7, 13)), 12, 12))
    cases = [case(name, noisy(12, seed=seed), [first, second]) for seed, name in enumerate(("one", "two"))]
    found = across(cases)
    assert [analysis.budget.seeds for analysis in found.analyses] == [6, 9, 12]
    assert PLANNED < found.analyses[-1].budget.spent(12) < PLANNED + RESERVE


def test_cases_that_stop_at_different_seeds_are_analysed_at_every_block():
    short = at(9, run(dict.fromkeys(ARMS, range(1, 7)), 12, 6, until_decided=True))
    long = at(9, run(dict.fromkeys(ARMS, range(1, 13)), 12, 6, 9, 12, until_decided=True))
    found = across([case("one", noisy(6), [short]), case("two", noisy(12, seed=2), [long])])
    assert [analysis.budget.seeds for analysis in found.analyses] == [6, 9, 12]
    claim = the(found, MEAN, "a")
    # Six of twelve planned seeds: their share of the error was spent on them.
    assert (claim.n, claim.analyses) == (6, 1)
    assert 1 - claim.interval_level == pytest.approx(PLANNED * PRIMARY / 2 * (6 / 12))


def test_runs_of_one_command_are_one_run():
    cases = [case(name, noisy(5)) for name in ("one", "two")]
    (together,) = study_runs(cases)
    assert (together.confirmed, together.planned, together.analyses) == (30, 5, (5,))
    assert together.seeds == {f"{name}/{arm}": [1, 2, 3, 4, 5] for name in ("one", "two") for arm in ARMS}


# How often it is right


def simulated(rng: np.random.Generator, planted: bool, cases: int = 3, spread: float = 1.0) -> Across:
    """Return what is claimed of cases on the same data, until decided to 9 seeds, then extended to 15.

    planted: arm a gains two SDs of a score in every case, and four more in the last one, which scores lower throughout
    spread: SDs in the last case over those in the others
    """
    found = []
    for place in range(cases):
        scores = 0.4 + 0.02 * rng.normal(size=(1, 15)) + 0.01 * rng.normal(size=(len(ARMS), 15))
        last = place == cases - 1
        if last:
            scores = 0.4 + spread * (scores - 0.4)
        if planted:
            scores[1] += 0.06 if last else 0.02
            scores -= 0.2 * last
        runs = [
            at(9, run(dict.fromkeys(ARMS, range(1, 10)), 9, 6, 9, until_decided=True)),
            at(12, run(dict.fromkeys(ARMS, range(10, 16)), 15, 15)),
        ]
        named = dict(zip(ARMS, scores, strict=True))
        found.append(case(f"case{place}", named, runs, data="same", of=replace(PLAN, smallest_effect=0.001)))
    return across(found)


def test_identical_cases_are_seldom_called_different():
    rng = np.random.default_rng(0)
    wrong = [
        any(
            entry.claim.verdict in (BETTER, WORSE)
            for entry in simulated(rng, planted=False, spread=4.0).claims
        )
        for _ in range(40)
    ]
    share = Share(sum(wrong), len(wrong))
    assert share.interval[0] <= 0.05, share


def test_differences_that_are_there_are_found():
    rng = np.random.default_rng(0)
    every = [simulated(rng, planted=True) for _ in range(20)]
    for what, arm, of, verdict in (
        (MEAN, "a", ALL, BETTER),
        (DIFFERENCE, "a", "case2", BETTER),
        (SCORE, "control", "case2", WORSE),
    ):
        hits = sum(the(found, what, arm, of).verdict == verdict for found in every)
        assert hits >= 16, (what, hits)
    assert "**Effects in `case2` minus those in `case0`**: `a` is **higher** by" in section(every[0])[0]


# Files and page


def made(tmp_path, *names: str, **how) -> None:
    for place, name in enumerate(names):
        folder = MadeUp(seeds=6, search=0, evaluations=2, seed=place, **how)
        folder.study["environment"]["backbone"] |= {"id": f"org/{name}"}
        folder.ran((6,))
        folder.write(tmp_path / name)


def test_the_cover_writes_claims_that_are_rebuilt_from_the_files_alone(tmp_path):
    made(tmp_path, "minilm-cola", "random-cola", effects={"uniform": 0.2})
    page = write_cover(tmp_path, [tmp_path / "minilm-cola", tmp_path / "random-cola"])
    written = (tmp_path / "claims.json").read_bytes()
    claims = json.loads(written)
    assert {claim["kind"] for claim in claims} == {"across"}
    assert {claim["what"] for claim in claims} == {MEAN, DIFFERENCE, SCORE}
    assert set(FIELDS) | {"case", "reference", "cases", "what"} == set(claims[0])
    uniform = next(c for c in claims if (c["what"], c["arm"], c["case"]) == (MEAN, "uniform", "all"))
    assert (uniform["verdict"], uniform["n"], uniform["cases"]) == (BETTER, 6, ["minilm-cola", "random-cola"])
    assert "- **`random-cola` against `minilm-cola`**" in Path(page).read_text()
    (tmp_path / "claims.json").unlink()
    write_cover(tmp_path, [tmp_path / "random-cola", tmp_path / "minilm-cola"])
    assert (tmp_path / "claims.json").read_bytes() == written


@pytest.mark.parametrize("aside", [(), ("minilm-cola.20260501-101112",)])
def test_one_case_has_no_claims_across_nor_with_one_that_was_set_aside(tmp_path, aside):
    made(tmp_path, "minilm-cola", *aside)
    page = write_cover(tmp_path, [tmp_path / name for name in ("minilm-cola", *aside)])
    assert "## Across cases" not in Path(page).read_text()
    assert json.loads((tmp_path / "claims.json").read_text()) == []


def test_equal_predictions_in_every_case_are_no_difference():
    scores = {"control": [0.4, 0.5, 0.6, 0.5, 0.4, 0.5]}
    cases = [
        replace(
            case(name, dict.fromkeys(ARMS, scores["control"])),
            answers={(arm, seed): f"said {seed}" for arm in ARMS for seed in range(1, 7)},
        )
        for name in ("one", "two")
    ]
    found = across(cases)
    assert {(entry.claim.verdict, entry.claim.tie) for entry in found.claims} == {(SAME, True)}
    other = replace(cases[1], answers={**cases[1].answers, ("a", 1): "another"})
    claim = the(across([cases[0], other]), MEAN, "a")
    assert (claim.verdict, claim.tie) == (OPEN, False)
