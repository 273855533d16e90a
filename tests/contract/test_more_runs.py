"""A study that a ranking selects, on texts that come in groups, and whose seeds are added until all is decided."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import adalayers
from studies import methods
from tests.helpers.documented import fenced
from tests.helpers.studying import RAYS_OWN, ROOT, SMALL, flags, run_here
from tests.helpers.tiny import WORDS
from tests.helpers.trials_here import trials_here

pytestmark = RAYS_OWN
RANKINGS = ["auroc", "average_precision", "recall@fpr=0.01"]


@pytest.fixture(scope="module")
def ran(world, tmp_path_factory):
    """The results folder of a study of seven seeds, and its trials before it was given an eighth."""
    root, rng = tmp_path_factory.mktemp("rankings"), np.random.default_rng(0)
    words = [word for word in WORDS if word.isalpha()]
    folder = root / "letters"
    folder.mkdir()
    for split, n in {"train": 200, "test": 80}.items():
        chosen = rng.choice(len(words), (n, 5))
        good = (chosen < len(words) / 2).mean(axis=1) > 0.5
        texts = [" ".join(words[place] for place in row) for row in chosen]
        authors = [f"{split} {place // 8}" for place in range(n)]
        frame = pd.DataFrame({"text": texts, "mood": np.where(good, "good", "bad"), "author": authors})
        frame.to_json(folder / f"{split}.jsonl", orient="records", lines=True)
    columns = "--text-column text --label-column mood --group-column author --metric auroc"
    added = "--trials 0 --seeds 7 --until-decided --smallest-effect 0.000001 --group 4"
    argv = flags(world | {"dataset": folder}, root / "results", *columns.split(), *SMALL, *added.split())
    with trials_here():
        run_here(argv, report=False)
        (table,) = root.glob("results/*/*/trials.csv")
        before, trials = table.read_bytes(), pd.read_csv(table)
        run_here(argv, report=False)
        assert table.read_bytes() == before, "a study that is done runs nothing"
        run_here([*argv, "--seeds", "8"])
    return table.parent, trials


def test_claims_are_of_the_ranking_and_its_interval_over_groups(ran):
    results = adalayers.results(ran[0])
    primary = results.claims.query("primary")
    assert {*primary["metric"]} == {"auroc"}
    assert primary["examples_low"].notna().all()
    assert (primary["examples_low"] < primary["low"]).all()
    assert {f"val/{name}" for name in RANKINGS} <= {*results.curves.columns}
    page = (ran[0] / "report.md").read_text()
    groups = results.predictions.query("split == 'test'").groupby("group")["index"]
    assert groups.agg(lambda index: (index // 8).nunique()).eq(1).all()
    assert "AUROC" in page
    assert "drawn by whole groups of author" in page
    assert "train 23, validation 2, test 10" in (ran[0] / "details.md").read_text()


def test_until_decided_adds_blocks_of_seeds_and_says_so(ran):
    """Analyses after 6 and 7 seeds, then after 8 of an extension; arms that nothing undecided compares get no more."""
    folder, trials = ran
    runs = json.loads((folder / "study.json").read_text())["runs"]["history"]
    assert [[analysis["after"] for analysis in run["analyses"]] for run in runs] == [[6, 7], [], [8]]
    assert runs[0]["until_decided"] is True
    assert trials["group"].str.endswith("/3").any(), "three arms are a seed"
    assert {7} <= set(trials.groupby("arm")["seed"].max()) <= {6, 7}
    extended = pd.read_csv(folder / "trials.csv")
    pd.testing.assert_frame_equal(extended[: len(trials)], trials)
    assert set(extended["seed"][len(trials) :]) == {8}
    claims = json.loads((folder / "claims.json").read_text())
    assert {claim["analyses"] for claim in claims} <= {1, 2, 3}
    assert max(claim["n"] for claim in claims) == 8


def test_the_trainable_serves_a_users_own_tuner(ray_here, world, tmp_path, monkeypatch):
    """The documented code, over smaller data."""
    monkeypatch.setenv("ADALAYERS_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (code,) = fenced(ROOT / "search_spaces" / "README.md", "python")[-1:]
    data = {"backbone": str(world["backbone"]), "dataset": str(world["dataset"]), "k": 8, "heads": 2}
    code = re.sub(r"^data = .*$", f"data = {data}", code, flags=re.M)
    names = {}
    exec(code.replace("num_samples=4", "num_samples=1"), names)
    assert not names["results"].errors
    assert [result.metrics["epoch"] for result in names["results"]] == [5.0]
    assert Path(names["results"].experiment_path).is_relative_to(tmp_path / "results")


def test_a_study_of_searched_arms_stays_one(world, tmp_path):
    """As arms stand, then as searches find them, would plan other comparisons and forget those that were confirmed."""
    argv = flags(world, tmp_path, "--methods", "last-layer", "--tracking-uri", "none", "--epochs", "1")
    with trials_here():
        run_here([*argv, "--trials", "0"], report=False, study=methods.STUDY)
        more = run_here([*argv, "--trials", "1"], report=False, study=methods.STUDY, code=2)
    assert "wanted all arms that" in more.err
