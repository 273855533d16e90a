"""Flags that change how a study runs or what it leaves, in one process over one Ray session."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest

import search_spaces
from tests.helpers.documented import undocumented
from tests.helpers.studying import RAYS_OWN, SMALL, flags, run_here

pytestmark = [*RAYS_OWN, pytest.mark.usefixtures("ray_here")]


@dataclass(frozen=True)
class Runs:
    """One study over the commands that a user might give, each with what it left.

    stopped:  its runs, after `--max-hours` ended it
    finished: its folder, kept aside by `--fresh`, with its page and, as `--show-text` asks, texts
    rows:     of its trials.csv then
    live:     the folder of the study that `--fresh` began, with a base model that runs in every trial
    """

    stopped: dict
    finished: Path
    rows: bytes
    live: Path


@pytest.fixture(scope="module")
def runs(world, tmp_path_factory):
    output = tmp_path_factory.mktemp("runs") / "results"
    folder = output / "alpha_lambda/tiny-echo"
    assert study(world, output, "--features", "disk", "--max-hours", "0.0001") == 0
    stopped = runs_of(folder)
    assert study(world, output, "--features", "disk", "--show-text", report=True) == 0
    rows = (folder / "trials.csv").read_bytes()
    assert study(world, output, "--fresh", "--features", "live") == 0
    (aside,) = [path for path in folder.parent.iterdir() if path.name.startswith("tiny-echo.")]
    return Runs(stopped, aside, rows, folder)


def study(world, output, *more, report=False):
    """Run a small study; return its exit code. Without `report` it draws no page."""
    return run_here([*flags(world, output), *SMALL, *more], report=report).code


def runs_of(folder):
    return json.loads((folder / "study.json").read_text())["runs"]


def test_every_file_and_column_is_explained(runs):
    assert (runs.finished / "examples.md").exists()
    assert undocumented(runs.finished) == []


def test_fresh_sets_the_earlier_study_aside(runs):
    assert (runs.finished / "trials.csv").read_bytes() == runs.rows
    ids = {json.loads((folder / "study.json").read_text())["id"] for folder in (runs.finished, runs.live)}
    assert len(ids) == 2
    assert len(runs_of(runs.live)["history"]) == 1


def test_texts_are_shown_only_when_asked_for(world, runs):
    texts = pd.read_parquet(world["dataset"] / "test-00000-of-00001.parquet")["text"]
    examples = (runs.finished / "examples.md").read_text()
    assert any(text in examples for text in texts)
    for folder in (runs.finished, runs.live):
        for path in folder.rglob("*"):
            if path.is_file() and path.name != "examples.md":
                content = path.read_bytes()
                assert not any(text.encode() in content for text in texts if len(text) > 12), path
    assert not (runs.live / "examples.md").exists()


def test_time_is_up_ends_in_good_order_and_goes_on_later(runs):
    assert runs.stopped["state"] == "time is up"
    later = runs_of(runs.finished)
    assert later["state"] == "finished"
    assert "unfinished" not in json.dumps(later["counts"])
    assert len(later["history"]) == 2


def test_a_fixed_factor_keeps_that_value_alone_and_the_report_says_so(runs):
    """SMALL fixes alpha."""
    trials = pd.read_csv(runs.finished / "trials.csv")
    assert set(trials["config/alpha"].dropna()) == {8.0}
    document = json.loads((runs.finished / "study.json").read_text())
    assert document["request"]["control"] == "alpha=8 entropy_weight=0"
    dropped = {arm["arm"]: arm["reason"] for arm in document["request"]["dropped_arms"]}
    assert "alpha" in dropped["published-mix"]
    assert "fixed" in (runs.finished / "report.md").read_text()


def test_the_trainable_serves_a_users_own_tuner(world, tmp_path, monkeypatch):
    """The documented code, over smaller data."""
    monkeypatch.setenv("ADALAYERS_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    text = (Path(search_spaces.__path__[0]) / "README.md").read_text().partition("own Ray code")[2]
    code = re.search(r"```python\n(.*?)```", text, re.DOTALL)[1]
    data = {"backbone": str(world["backbone"]), "dataset": str(world["dataset"]), "k": 8, "heads": 2}
    code = re.sub(r"^data = .*$", f"data = {data}", code, flags=re.M)
    names = {}
    exec(code.replace("num_samples=4", "num_samples=2"), names)
    results = names["results"]
    assert not results.errors
    assert [result.metrics["epoch"] for result in results] == [5.0, 5.0]
    assert Path(results.experiment_path).is_relative_to(tmp_path / "results")


def test_until_decided_adds_blocks_of_seeds_and_says_so(world, tmp_path):
    """Analyses after 6 and 7 seeds, then after 8 of an extension; arms that nothing undecided compares get no more.

    Trials run in groups, over stored features.
    """
    more = (
        *("--seeds", "7", "--until-decided", "--smallest-effect", "0.000001"),
        *("--trials", "0", "--epochs", "1", "--group", "4"),
    )
    assert study(world, tmp_path / "results", *more) == 0
    folder = tmp_path / "results/alpha_lambda/tiny-echo"

    def runs():
        return json.loads((folder / "study.json").read_text())["runs"]["history"]

    def analyses():
        return [[analysis["after"] for analysis in run["analyses"]] for run in runs()]

    assert (analyses(), runs()[0]["until_decided"]) == ([[6, 7]], True)
    trials = pd.read_csv(folder / "trials.csv")
    assert trials["group"].str.endswith("/3").any(), "three arms are a seed"
    assert set(trials.groupby("arm")["seed"].max()) <= {6, 7}
    assert trials.groupby("arm")["seed"].max().max() == 7, (
        "an effect of a millionth is not decided by six seeds"
    )
    before = (folder / "trials.csv").read_bytes()
    assert study(world, tmp_path / "results", *more) == 0
    assert (folder / "trials.csv").read_bytes() == before, "a study that is done runs nothing"
    assert study(world, tmp_path / "results", *more, "--seeds", "8", report=True) == 0
    assert analyses() == [[6, 7], [], [8]]
    extended = pd.read_csv(folder / "trials.csv")
    pd.testing.assert_frame_equal(extended[: len(trials)], trials)
    assert set(extended["seed"][len(trials) :]) == {8}
    claims = json.loads((folder / "claims.json").read_text())
    assert {claim["analyses"] for claim in claims} <= {1, 2, 3}
    assert max(claim["n"] for claim in claims) == 8
