"""A whole study through Ray, on a tiny backbone: its files, its trials, MLflow, its page, and the runs that come after.

One folder, over the commands that a user might give one after the other.
"""

import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pandas as pd
import pytest

import adalayers
from adalayers.config import _CONFIGS, hyperparameters
from adalayers.results import files as results
from adalayers.results.files import read_trials
from adalayers.storage.folder import Folder
from tests.helpers.documented import snippet, undocumented
from tests.helpers.mlflow_runs import client_of, runs
from tests.helpers.studying import RAYS_OWN, ROOT, flags, run_here
from tests.helpers.trials_here import trials_here

pytestmark = RAYS_OWN
NAME = "alpha_lambda/tiny-echo"
FIXED = ("--set", "alpha=8", "entropy_weight=0", "--features", "disk")
"""One learned mix, uniform, last and the search's best: fourteen trials, six of them searched."""


@pytest.fixture(scope="module")
def study(world, tmp_path_factory, empty_database, ray_here):
    """What a study left that was stopped by `--max-hours` at once, and then run to its end."""
    output = tmp_path_factory.mktemp("study") / "results"
    folder, argv = output / NAME, flags(world, output, *FIXED)
    output.mkdir()
    shutil.copy(empty_database, output / "mlflow.db")
    run_here([*argv, "--max-hours", "0.0001"], report=False)
    assert json.loads((folder / "study.json").read_text())["runs"]["state"] == "time is up"
    run_here([*argv, "--show-text"])
    document = json.loads((folder / "study.json").read_text())
    trials = read_trials(Folder(folder))
    return SimpleNamespace(output=output, folder=folder, argv=argv, document=document, trials=trials)


def test_every_file_is_there_and_explained_and_one_shows_texts(world, study):
    files = {p.relative_to(study.folder).as_posix(): p for p in study.folder.rglob("*") if p.is_file()}
    names = "study.json trials.csv claims.json contrasts.json optuna.journal report.md details.md examples.md"
    tables = {"history.parquet", "predictions.parquet", "best/config.json", "best/model.safetensors"}
    assert {*names.split(), *tables} <= files.keys()
    png, svg = ({p.stem for p in study.folder.glob(f"figures/*.{suffix}")} for suffix in ("png", "svg"))
    assert png == svg != set()
    assert not (study.folder / "work").exists()
    assert undocumented(study.folder) == []
    texts = pd.read_parquet(world["dataset"] / "test-00000-of-00001.parquet")["text"]
    long = [text.encode() for text in texts if len(text) > 12]
    shown = [name for name, path in files.items() if any(text in path.read_bytes() for text in long)]
    assert shown == ["examples.md"]


def test_trials_hold_search_and_paired_confirmations(study):
    search, confirm = (study.trials.query(f"stage == '{stage}'") for stage in ("search", "confirm"))
    assert (len(search), {*search["seed"]}, {*search["arm"]}) == (6, {0}, {""})
    assert set(search["status"]) <= {"completed", "stopped"}
    assert (search.loc[search["status"] == "stopped", "epochs"] < 4).all()
    assert search.filter(like="test/").isna().all().all(), "the search never sees the test split"
    assert set(confirm["status"]) == {"completed"}
    per_arm = confirm.groupby("arm")["seed"].apply(sorted)
    assert all(seeds == [1, 2] for seeds in per_arm)
    assert len(per_arm) == 4
    assert {"alpha=8 entropy_weight=0", "uniform", "last"} < set(per_arm.index)
    assert confirm[["test/accuracy", "test/f1_macro", "test/matthews"]].notna().all().all()
    uniform = confirm[confirm["arm"] == "uniform"]
    assert uniform[["config/alpha", "config/mix_lr", "config/cutoff"]].isna().all().all()
    assert np.allclose(uniform["mix/entropy"], np.log(4))
    assert set(confirm[confirm["arm"] == "last"]["mix/live_layers"]) == {1}


def test_mlflow_has_one_parent_and_a_nested_run_per_trial_that_ended_as_the_trial_did(study):
    uri = f"sqlite:///{study.output / 'mlflow.db'}"
    parent, nested, arms = runs(uri)
    assert set(arms) == set(study.trials.query("stage == 'confirm'")["arm"])
    assert parent.info.status == "FINISHED"
    # Ray itself reports one that the scheduler stopped as complete.
    ended = study.trials.set_index("trial_id")["status"].map({"completed": "FINISHED", "stopped": "KILLED"})
    assert {trial_id: run.info.status for trial_id, run in nested.items()} == ended.to_dict()
    left = client_of(uri).list_artifacts(parent.info.run_id)
    assert {"report.md", "best"} <= {artifact.path for artifact in left}


def test_the_logs_of_a_studys_own_ray_hold_no_secret(study):
    from ray._private.worker import _global_node

    secret = os.environ["ADALAYERS_TESTS_SECRET"].encode()  # in the environment since before Ray was started
    files = [path for path in Path(_global_node.get_session_dir_path()).rglob("*") if path.is_file()]
    assert len(files) > 5
    assert not [path.name for path in files if secret in path.read_bytes()]


def test_history_predictions_and_best_model_are_those_of_the_trials(study):
    from sklearn.metrics import f1_score

    history, trials = pd.read_parquet(study.folder / "history.parquet"), study.trials.set_index("trial_id")
    weights = history.filter(like="mix/weight_")
    assert list(weights.columns) == [f"mix/weight_{i:02d}" for i in range(1, 5)]
    assert np.allclose(weights.sum(axis=1), 1)
    evaluated = history.dropna(subset=["val/f1_macro"]).groupby("trial_id")["val/f1_macro"]
    assert evaluated.max().to_dict() == pytest.approx(trials["val/f1_macro"].to_dict())
    assert evaluated.size().to_dict() == trials["epochs"].to_dict()
    predictions = pd.read_parquet(study.folder / "predictions.parquet")
    assert {*predictions["trial_id"]} == {*trials.query("stage == 'confirm'").index}
    for (trial_id, split), rows in predictions.groupby(["trial_id", "split"]):
        assert split == "val" or trials.loc[trial_id, "predictions"] == results.prediction_hash(rows)
        score = f1_score(rows["label"], rows["prediction"], average="macro", zero_division=0)
        assert score == pytest.approx(trials.loc[trial_id, f"{split}/f1_macro"])
    done = study.trials.query("status == 'completed'")
    best = done.sort_values(["val/f1_macro", "trial_id"], ascending=[False, True]).iloc[0]
    about = json.loads((study.folder / "best/config.json").read_text())
    assert about["trial_id"] == best["trial_id"]
    assert about["max_length"] == study.document["request"]["data"]["max_length"]
    assert adalayers.load(study.folder / "best").n_parameters() == best["parameters"]


def test_the_search_is_read_as_tracking_md_shows(study, monkeypatch):
    """Its lines as printed, but for the study's name."""
    shown = (ROOT / "docs" / "tracking.md").read_text().partition("```python\n")[2].partition("```")[0]
    names: dict = {}
    monkeypatch.chdir(study.output.parent)
    exec(compile(shown.replace("minilm-cola", study.folder.name), "docs/tracking.md", "exec"), names)
    searched = study.trials.query("stage == 'search'").set_index("trial_id")
    # A point that is suggested twice stands there again, as failed.
    read = {t.user_attrs["trial_id"]: t for t in names["search"].trials if t.state.name != "FAIL"}
    assert read.keys() == set(searched.index)
    assert names["search"].direction.name == "MAXIMIZE"
    for trial_id, row in searched.query("status == 'completed'").iterrows():
        said = read[trial_id].value, read[trial_id].params["lr"]
        assert said == pytest.approx((row["val/f1_macro"], row["config/lr"]))


def test_study_json_has_request_environment_and_runs(study):
    """A fixed factor keeps its value alone, and the report says so; a run that was stopped goes on."""
    request, environment, runs = (study.document[part] for part in ("request", "environment", "runs"))
    assert set(study.trials["config/alpha"].dropna()) == {8.0}
    assert request["control"] == "alpha=8 entropy_weight=0"
    assert "alpha" in {arm["arm"]: arm["reason"] for arm in request["dropped_arms"]}["published-mix"]
    assert "fixed" in (study.folder / "report.md").read_text()
    assert environment["dataset"]["examples"] == {"train": 120, "validation": 60, "test": 60}
    assert environment["backbone"]["layers"] == 4
    assert runs["state"] == "finished"
    assert runs["counts"] == results.counts(study.trials)
    assert (runs["analyses"], runs["test_opened"]) == (1, 1)
    _, last = runs["history"]
    assert set(last["seeds"]) == {arm["name"] for arm in request["arms"]}
    assert {tuple(seeds) for seeds in last["seeds"].values()} == {(1, 2)}
    assert last["test_scored"] == last["confirmed"] == 2 * len(last["seeds"])
    assert last["machine"] == f"{environment['device']}, torch {environment['packages']['torch']}"
    assert str(study.output.parent) not in json.dumps(environment)


def test_a_dry_run_counts_what_is_done_and_what_is_left_and_keeps_nothing(world, study, tmp_path):
    more = run_here([*study.argv, "--seeds", "3", "--dry-run"])
    for words in (
        *("6 trials by optuna, asha", "18, 14 done", "4 trials left", "memory", "disk"),
        "cut         train 0, validation 0, test 0",
        f"data        {world['dataset']} (texts text; labels label); train = train-00000-of-00001.parquet",
        f"; from {world['backbone']}",
    ):
        assert words in more.out
    run_here([*flags(world, tmp_path / "results"), "--dry-run"])
    assert list(tmp_path.iterdir()) == []


def test_a_field_with_a_default_renames_no_trial_and_fresh_sets_the_study_aside(world, study, tmp_path):
    """CONTRIBUTING.md's hyperparameter, added to the layer mix: the folder of before is continued as it stands."""
    output = Path(shutil.copytree(study.output, tmp_path / "results"))
    folder, argv = output / NAME, flags(world, output, *FIXED, "--tracking-uri", "none")
    exec(snippet("hyperparameter"), added := {"__name__": "added"})
    with mock.patch.dict(_CONFIGS, {"layer-mix": added["LayerMixConfig"]}):
        assert "gradient_norm" in hyperparameters()
        ran = run_here(argv, report=False)
    assert "nothing to run" in ran.err
    pd.testing.assert_frame_equal(read_trials(Folder(folder)), study.trials)
    rows = (folder / "trials.csv").read_bytes()
    small = ("--features", "live", "--trials", "0", "--seeds", "1", "--epochs", "1")
    with trials_here():
        run_here([*argv, *small, "--fresh"], report=False)
    (aside,) = folder.parent.glob("tiny-echo.*")
    assert (aside / "trials.csv").read_bytes() == rows
    old, new = (json.loads((place / "study.json").read_text()) for place in (aside, folder))
    assert old["id"] != new["id"]
    assert len(new["runs"]["history"]) == 1
    assert not (folder / "examples.md").exists()
