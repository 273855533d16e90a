"""The trainable in a user's own Ray code, and seeds that are added until all is decided."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest

import search_spaces
from tests.helpers.studying import RAYS_OWN, SMALL, flags, run_here

pytestmark = [*RAYS_OWN, pytest.mark.usefixtures("ray_here")]


def study(world, output, *more, report=False):
    """Run a small study; return its exit code. Without `report` it draws no page."""
    return run_here([*flags(world, output), *SMALL, *more], report=report).code


def test_the_trainable_serves_a_users_own_tuner(world, tmp_path, monkeypatch):
    """The documented code, over smaller data."""
    monkeypatch.setenv("ADALAYERS_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    text = (Path(search_spaces.__path__[0]) / "README.md").read_text().partition("own Ray code")[2]
    code = re.search(r"```python\n(.*?)```", text, re.DOTALL)[1]
    data = {"backbone": str(world["backbone"]), "dataset": str(world["dataset"]), "k": 8, "heads": 2}
    code = re.sub(r"^data = .*$", f"data = {data}", code, flags=re.M)
    names = {}
    exec(code.replace("num_samples=4", "num_samples=1"), names)
    results = names["results"]
    assert not results.errors
    assert [result.metrics["epoch"] for result in results] == [5.0]
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
