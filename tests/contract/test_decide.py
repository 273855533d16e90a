"""`adalayers decide`, `adalayers noise` and `adalayers.decide`: scores made elsewhere, as a new user has them."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import adalayers
from adalayers.__main__ import main
from reports.decide import noise
from tests.helpers.refusing import refused

PUBLISHED = Path("docs/results/ablation/minilm-conll2003-whole")
EFFECTS = {"base": 0.0, "good": 0.03, "same": 0.0, "bad": -0.03, "open": 0.0}
SPREADS = dict.fromkeys(EFFECTS, 0.003) | {"open": 0.03}


def scores(seeds: int = 8, **columns) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    rows = [
        {"arm": arm, "seed": seed, "score": 0.8 + effect + SPREADS[arm] * rng.normal()}
        for arm, effect in EFFECTS.items()
        for seed in range(seeds)
    ]
    return pd.DataFrame(rows).assign(**columns)


@pytest.fixture
def ran(tmp_path, capsys):
    """Runs a command on a table, or on its text; returns its exit code, and what it printed on stdout and on stderr."""
    table = tmp_path / "scores.csv"

    def run(frame, command, *flags):
        table.write_text(frame if isinstance(frame, str) else frame.to_csv(index=False))
        return main([command, str(table), *flags]), *capsys.readouterr()

    return run


@pytest.mark.parametrize(("arm", "code"), [("good", 0), ("bad", 3), ("same", 4), ("open", 5), ("goood", 2)])
def test_a_gate_ends_with_the_verdict_as_its_exit_code(ran, arm, code):
    ended, _, said = ran(scores(), "decide", "--control", "base", "--smallest-effect", "0.01", "--gate", arm)
    assert ended == code, said
    assert ("did you mean 'good'" in said) == (code == 2)


def test_columns_scores_and_cases_by_flags_as_json_latex_and_page(ran):
    frame = pd.concat([scores(case=name) for name in ("x", "y")])
    frame = frame.rename(columns={"arm": "model", "seed": "run", "score": "loss"}).assign(time=1.0)
    flags = ["decide", "--pairs", "good:base", "bad:base", "--arm-column", "model", "--seed-column", "run"]
    flags += ["--score-columns", "loss", "time", "--case-columns", "case", "--lower-is-better"]
    rows = json.loads(ran(frame, *flags, "--format", "json")[1])
    assert [(row["case"], row["metric"], row["arm"], row["verdict"]) for row in rows] == [
        *((case, "loss", arm, word) for case in "xy" for arm, word in (("good", "worse"), ("bad", "better"))),
        *((case, "time", arm, "not enough evidence") for case in "xy" for arm in ("good", "bad")),
    ]
    assert {row["comparisons"] for row in rows} == {4}  # of each score, over all cases
    assert {row["why"] for row in rows[4:]} == {"the same difference on every seed"}
    assert "\\toprule" in ran(frame, *flags, "--format", "latex")[1]
    assert "| `x` | `loss` | `good` | `base` | worse |" in ran(frame, *flags)[1]


def test_a_published_page_has_the_same_verdicts():
    """Of a study with one analysis, whose comparisons are all of two arms."""
    claims = [claim for claim in json.loads((PUBLISHED / "claims.json").read_text()) if claim["primary"]]
    rows = pd.read_csv(PUBLISHED / "trials.csv").query("stage == 'confirm'")
    smallest = json.loads((PUBLISHED / "study.json").read_text())["request"]["smallest_effect"]
    pairs = [(claim["arm"], claim["control"]) for claim in claims]
    score = f"{claims[0]['split']}/{claims[0]['metric']}"
    found = adalayers.decide(rows, pairs=pairs, scores=[score], smallest_effect=smallest)
    assert {claim["analyses"] for claim in claims} == {1}
    assert [*found["verdict"]] == [claim["verdict"] for claim in claims]
    for name in ("difference", "low", "high", "p_value", "p_adjusted", "at_most"):
        assert [*found[name]] == pytest.approx([claim[name] for claim in claims]), name


def test_without_seeds_in_common_nothing_is_paired():
    frame = scores()
    frame["seed"] = range(len(frame))
    found = adalayers.decide(frame, control="base").set_index("arm")
    one, other = (frame.loc[frame["arm"] == name, "score"] for name in ("good", "base"))
    t = stats.ttest_ind(one, other, equal_var=False).statistic
    assert found.loc["good", "p_value"] == pytest.approx(2 * stats.t.sf(t, 7))
    assert not found["paired"].any()
    pd.testing.assert_frame_equal(adalayers.decide(frame, control="base", seed=None).set_index("arm"), found)


def test_what_gives_no_verdict_says_why():
    frame = scores()
    frame.loc[frame["arm"] == "good", "score"] = [*[np.nan], *[0.9] * 7]
    frame = frame[(frame["arm"] != "bad") | (frame["seed"] > 3)]
    found = adalayers.decide(frame, control="base", smallest_effect=0.01).set_index("arm")
    assert found[["verdict", "why"]].T.to_dict("list") == {
        "good": ["not enough evidence", "a run without a score"],
        "same": ["no difference seen", ""],
        "bad": ["not enough evidence", "4 of 6 pairs"],
        "open": ["not enough evidence", ""],
    }
    assert {*adalayers.decide(scores(1), control="base")["why"]} == {"1 of 6 pairs"}


def test_a_page_of_comparisons_without_an_interval(ran):
    few = scores(4)[lambda rows: rows["arm"].isin(["base", "good"])]
    for frame in (few, few.assign(arm=few["arm"] + " ")):
        ended, page, said = ran(frame, "decide", "--control", "base", "--gate", "good")
        assert (ended, "not enough evidence (4 of 6 pairs)" in page) == (5, True), said


@pytest.mark.parametrize(
    ("change", "how", "message"),
    [
        ({}, {"control": "bose"}, "did you mean 'base'"),
        ({}, {}, "wanted a control or pairs"),
        ({}, {"control": "base", "arm": "model"}, "'model'"),
        ({"score": "high"}, {"control": "base"}, "wanted numbers in column 'score', got 'high'"),
        ({"seed": 1}, {"control": "base"}, "wanted one run per arm and seed"),
        ({"x": ["a b", "a"] * 20, "y": ["c", "b c"] * 20}, {"control": "base", "cases": [*"xy"]}, "'a b c'"),
        ({"run": 1}, {"control": "base", "seed": "run", "scores": ["seed"]}, "another name than 'seed'"),
        ({}, {"control": "base", "smallest_effect": -1}, "a smallest effect above 0 and finite, got -1"),
    ],
)
def test_what_cannot_be_judged_is_bad_input(change, how, message):
    refused(message, adalayers.decide, scores().assign(**change), **how)


def test_a_table_is_read_as_it_is_written_or_refused(ran):
    rows = [(arm, seed, 1e-6 * (seed + gain)) for arm, gain in (("a", 0), ("b:1", 9)) for seed in range(6)]
    lines = [f"{arm}, {seed}, {score + seed * 1e-9 * (arm > 'b')}\n" for arm, seed, score in rows]
    ended, page, said = ran("arm, seed, score\n" + "".join(lines), "decide", "--pairs", "b:1:a")
    assert ended == 0, said
    assert "+0.00000900 [" in page  # three digits of the largest number
    more = [line.replace("\n", ",\n") for line in lines]  # fields than the header has
    assert ran("arm,seed,score\n" + "".join(more), "decide", "--control", "a")[0] == 2
    _, _, said = ran("arm,seed,score,score\na,1,2,3\n", "decide", "--control", "a")
    assert "one column 'score', got several" in said


def test_names_of_arms_are_texts_and_a_seed_is_one_however_it_is_written(ran):
    frame = scores()[lambda rows: rows["arm"].isin(["base", "good", "bad"])].astype({"seed": str})
    frame.loc[frame["arm"] != "base", "seed"] = "0" + frame["seed"] + " "
    frame["arm"] = frame["arm"].map({"base": "1.9", "good": "1.10", "bad": "1.1"})
    _, said, _ = ran(frame, "decide", "--control", "1.9", "--format", "json")
    found = [(row["arm"], row["verdict"], row["n"], row["paired"]) for row in json.loads(said)]
    assert found == [("1.10", "better", 8, True), ("1.1", "worse", 8, True)]
    two_ways = ran("arm,seed,score\na:b,1,2\na,1,2\nb:c,1,2\nc,1,2\n", "decide", "--pairs", "a:b:c")
    assert "wanted pairs that read one way" in two_ways[2]


def test_noise_of_no_spread_and_of_arms_with_few_seeds_in_common(ran):
    frame = scores(8)[lambda rows: rows["arm"] == "open"]
    moved = pd.concat([frame, frame.assign(arm="moved", score=frame["score"] + 0.25)])
    heads, row, *_ = map(str.split, ran(moved.round(3), "noise", "--smallest-effect", "0.01")[1].splitlines())
    assert dict(zip(heads, row, strict=True))["seeds_needed"] == "6"
    apart = frame.assign(arm="moved", seed=frame["seed"] + 6)  # two in common
    assert noise(pd.concat([frame, apart]))["sd"].item() == pytest.approx(frame["score"].std())
    assert "<NA>" not in ran(frame[:1], "noise", "--smallest-effect", "0.01")[1]


def test_names_that_are_no_texts_and_one_name_in_place_of_a_list_are_read():
    frame = scores(case="x")
    frame["arm"] = frame["arm"].map({arm: i for i, arm in enumerate(EFFECTS)})
    found = adalayers.decide(frame, control=0, scores="score", cases="case")
    assert [*found["arm"]] == ["1", "2", "3", "4"]
    assert found.equals(adalayers.decide(frame, pairs=[(i, 0) for i in range(1, 5)], cases=["case"]))
    assert len(noise(frame, scores="score")) == 1
    refused("wanted a row per run, got none", adalayers.decide, frame[:0], control=0)


def test_noise_is_the_spread_and_the_seeds_that_find_the_smallest_effect(ran):
    frame = scores(20)[lambda rows: rows["arm"].isin(["base", "good"])]
    _, said, _ = ran(frame, "noise", "--smallest-effect", "0.003")
    heads, row, *_ = (line.split() for line in said.splitlines())
    found = dict(zip(heads, row, strict=True))  # no case, as it has no name
    wide = frame.pivot(index="seed", columns="arm", values="score")
    assert float(found["sd"]) == pytest.approx((wide["good"] - wide["base"]).std() / 2**0.5, rel=1e-3)
    assert (found["arms"], found["seeds"], found["comparisons"]) == ("2", "20", "1")
    needed, sd = int(found["seeds_needed"]), float(found["sd"]) * 2**0.5
    effects = [(needed - 1, 0.003), (needed, 0.003), (20, float(found["finds"]))]
    power = [stats.nct.sf(stats.t.isf(0.02, n - 1), n - 1, effect / sd * n**0.5) for n, effect in effects]
    assert power[0] < 0.9 <= power[1]
    assert power[2] == pytest.approx(0.9, abs=0.01)
    cases = pd.concat([frame.assign(case=case) for case in ("cola", "sst2", "rte")])
    judged = adalayers.decide(cases, control="base", cases=["case"])
    assert [*noise(cases, cases=["case"])["comparisons"]] == [*judged["comparisons"]] == [3, 3, 3]
