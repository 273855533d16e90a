"""A whole study through Ray, on a tiny backbone: its files, its trials, MLflow, its page, and the runs that come after.

One folder, over the commands that a user might give one after the other.
"""

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from mlflow import MlflowClient

import adalayers
from adalayers.config import _CONFIGS, hyperparameters
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.results import files as results
from adalayers.results.files import read_trials
from adalayers.storage.folder import Folder
from tests.helpers.documented import snippet, undocumented
from tests.helpers.studying import RAYS_OWN, ROOT, Ran, flags, run_here

pytestmark = [
    *RAYS_OWN,
    pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated"),
    pytest.mark.usefixtures("ray_here"),
]
NAME = "alpha_lambda/tiny-echo"
FIXED = ("--set", "alpha=8", "entropy_weight=0", "--features", "disk")
"""One learned mix, uniform, last and the search's best: fourteen trials, six of them searched."""


@dataclass(frozen=True)
class Left:
    """What a study left that was stopped by `--max-hours` at once, and then run to its end.

    stopped: its runs, after the first command; ran: how the second one ended
    """

    output: Path
    stopped: dict
    ran: Ran

    @property
    def folder(self):
        return self.output / NAME

    @property
    def document(self):
        return json.loads((self.folder / "study.json").read_text())

    @property
    def trials(self):
        return read_trials(Folder(self.folder))


@pytest.fixture(scope="module")
def study(world, tmp_path_factory, empty_database, ray_here):
    output = tmp_path_factory.mktemp("study") / "results"
    output.mkdir()
    shutil.copy(empty_database, output / "mlflow.db")
    argv = flags(world, output, *FIXED)
    stopped = run_here([*argv, "--max-hours", "0.0001"], report=False)
    assert stopped.code == 0, stopped.err
    runs = json.loads((output / NAME / "study.json").read_text())["runs"]
    ran = run_here([*argv, "--show-text"])
    assert ran.code == 0, ran.err
    return Left(output, runs, ran)


def test_every_file_of_the_contract_is_there_and_explained(study):
    files = {path.relative_to(study.folder).as_posix() for path in study.folder.rglob("*") if path.is_file()}
    names = "study.json trials.csv claims.json contrasts.json optuna.journal report.md details.md examples.md"
    tables = {"history.parquet", "predictions.parquet", "best/config.json", "best/model.safetensors"}
    assert {*names.split(), *tables} <= files
    figures = {
        suffix: {p.stem for p in study.folder.glob(f"figures/*.{suffix}")} for suffix in ("png", "svg")
    }
    assert figures["png"] == figures["svg"] != set()
    assert not (study.folder / "work").exists()
    assert undocumented(study.folder) == []


def test_trials_hold_search_and_paired_confirmations(study):
    trials = study.trials
    search, confirm = (trials[trials["stage"] == stage] for stage in ("search", "confirm"))
    assert len(search) == 6
    assert set(search["seed"]) == {0}
    assert set(search["status"]) <= {"completed", "stopped"}
    assert (search.loc[search["status"] == "stopped", "epochs"] < 4).all()
    assert (search["arm"] == "").all()
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
    client = MlflowClient(f"sqlite:///{study.output / 'mlflow.db'}")
    experiments = [e.experiment_id for e in client.search_experiments() if e.name != "Default"]
    runs = client.search_runs(experiments, max_results=1000)
    (parent,) = (r for r in runs if "mlflow.parentRunId" not in r.data.tags)
    nested = {r.data.tags["adalayers.trial_id"]: r for r in runs if r.data.tags["adalayers.kind"] == "trial"}
    arms = {r.data.tags["arm"]: r for r in runs if r.data.tags["adalayers.kind"] == "arm"}
    assert set(arms) == set(study.trials.query("stage == 'confirm'")["arm"])
    assert arms["uniform"].data.metrics["n"] == 2
    assert parent.info.status == "FINISHED"
    # Ray itself reports one that the scheduler stopped as complete.
    ended = study.trials.set_index("trial_id")["status"].map({"completed": "FINISHED", "stopped": "KILLED"})
    assert {trial_id: run.info.status for trial_id, run in nested.items()} == ended.to_dict()
    assert {"uniform seed 001", "uniform seed 002"} <= {r.info.run_name for r in nested.values()}
    learned = study.trials.query("stage == 'search'")["trial_id"].iloc[0]
    weights = client.get_metric_history(nested[learned].info.run_id, "training/weights/weight_01")
    assert len(weights) > 2
    names = {artifact.path for artifact in client.list_artifacts(parent.info.run_id)}
    assert {"report.md", "best"} <= names


def test_the_logs_of_a_studys_own_ray_are_its_users_alone_and_hold_no_secret(study):
    from ray._private.worker import _global_node

    session = Path(_global_node.get_session_dir_path())
    assert "adalayers-ray-" in str(session)
    scratch = next(path for path in session.parents if path.name.startswith("adalayers-ray-"))
    assert scratch.stat().st_mode & 0o777 == 0o700
    secret = os.environ["ADALAYERS_TESTS_SECRET"].encode()  # in the environment since before Ray was started
    files = [path for path in session.rglob("*") if path.is_file()]
    assert len(files) > 5
    assert not [path.name for path in files if secret in path.read_bytes()]


def test_history_covers_every_trial_and_its_weights_sum_to_one(study):
    history, trials = pd.read_parquet(study.folder / "history.parquet"), study.trials.set_index("trial_id")
    assert set(history["trial_id"]) == set(trials.index)
    weights = history.filter(like="mix/weight_")
    assert list(weights.columns) == [f"mix/weight_{i:02d}" for i in range(1, 5)]
    assert np.allclose(weights.sum(axis=1), 1)
    evaluated = history.dropna(subset=["val/f1_macro"]).groupby("trial_id")["val/f1_macro"]
    assert evaluated.max().to_dict() == trials["val/f1_macro"].to_dict()
    assert evaluated.size().to_dict() == trials["epochs"].to_dict()


def test_predictions_give_the_scores_again(study):
    from sklearn.metrics import f1_score

    predictions = pd.read_parquet(study.folder / "predictions.parquet")
    confirmed = study.trials.query("stage == 'confirm'").set_index("trial_id")
    assert set(predictions["trial_id"]) == set(confirmed.index)
    for (trial_id, split), rows in predictions.groupby(["trial_id", "split"]):
        assert split == "val" or confirmed.loc[trial_id, "predictions"] == results.prediction_hash(rows)
        score = f1_score(rows["label"], rows["prediction"], average="macro", zero_division=0)
        assert score == pytest.approx(confirmed.loc[trial_id, f"{split}/f1_macro"])


def test_the_best_model_is_the_best_on_validation(study):
    done = study.trials.query("status == 'completed'")
    best = done.sort_values(["val/f1_macro", "trial_id"], ascending=[False, True]).iloc[0]
    assert json.loads((study.folder / "best/config.json").read_text())["trial_id"] == best["trial_id"]
    assert adalayers.results(study.folder).best.n_parameters() == best["parameters"]


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
    request, environment, runs = (study.document[part] for part in ("request", "environment", "runs"))
    assert environment["dataset"]["examples"] == {"train": 120, "validation": 60, "test": 60}
    assert environment["backbone"]["layers"] == 4
    assert runs["state"] == "finished"
    assert runs["counts"] == results.counts(study.trials)
    assert (runs["analyses"], runs["test_opened"]) == (1, 1)
    *_, last = runs["history"]
    assert set(last["seeds"]) == {arm["name"] for arm in request["arms"]}
    assert {tuple(seeds) for seeds in last["seeds"].values()} == {(1, 2)}
    assert last["test_scored"] == last["confirmed"] == 2 * len(last["seeds"])
    assert last["machine"] == f"{environment['device']}, torch {environment['packages']['torch']}"
    assert str(study.output.parent) not in json.dumps(environment)


def test_time_is_up_ends_in_good_order_and_goes_on_later(study):
    assert study.stopped["state"] == "time is up"
    assert "unfinished" not in json.dumps(study.document["runs"]["counts"])
    assert len(study.document["runs"]["history"]) == 2


def test_a_fixed_factor_keeps_that_value_alone_and_the_report_says_so(study):
    assert set(study.trials["config/alpha"].dropna()) == {8.0}
    assert study.document["request"]["control"] == "alpha=8 entropy_weight=0"
    dropped = {arm["arm"]: arm["reason"] for arm in study.document["request"]["dropped_arms"]}
    assert "alpha" in dropped["published-mix"]
    assert "fixed" in (study.folder / "report.md").read_text()


def test_texts_are_shown_only_when_asked_for(world, study):
    texts = pd.read_parquet(world["dataset"] / "test-00000-of-00001.parquet")["text"]
    examples = (study.folder / "examples.md").read_text()
    assert any(text in examples for text in texts)
    for path in study.folder.rglob("*"):
        if path.is_file() and path.name != "examples.md":
            content = path.read_bytes()
            assert not any(text.encode() in content for text in texts if len(text) > 12), path


def test_a_dry_run_counts_what_is_done_and_what_is_left(world, study):
    argv = flags(world, study.output, *FIXED)
    done = run_here([*argv, "--dry-run"])
    assert done.code == 0, done.err
    assert "; 0 trials left, each with all its epochs: in all at most about 18 s" in done.out
    assert "6 trials by optuna, asha" in done.out
    more = run_here([*argv, "--seeds", "3", "--dry-run"])
    assert "18, 14 done" in more.out
    assert "4 trials left" in more.out


def test_a_field_with_a_default_renames_no_trial_and_fresh_sets_the_study_aside(world, study, tmp_path):
    """CONTRIBUTING.md's hyperparameter, added to the layer mix: the folder of before is continued as it stands."""
    output = Path(shutil.copytree(study.output, tmp_path / "results"))
    folder, argv = output / NAME, flags(world, output, *FIXED)
    try:
        exec(snippet("hyperparameter"), added := {"__name__": "added"})
        _CONFIGS[LayerMixConfig.fusion] = added["LayerMixConfig"]
        assert "gradient_norm" in hyperparameters()
        ran = run_here(argv, report=False)
    finally:
        _CONFIGS[LayerMixConfig.fusion] = LayerMixConfig
    assert ran.code == 0, ran.err
    assert "nothing to run" in ran.err
    pd.testing.assert_frame_equal(read_trials(Folder(folder)), study.trials)
    rows = (folder / "trials.csv").read_bytes()
    small = ("--features", "live", "--trials", "0", "--seeds", "1", "--epochs", "1", "--tracking-uri", "none")
    ran = run_here([*argv, *small, "--fresh"])
    assert ran.code == 0, ran.err
    (aside,) = folder.parent.glob("tiny-echo.*")
    assert (aside / "trials.csv").read_bytes() == rows
    old, new = (json.loads((place / "study.json").read_text()) for place in (aside, folder))
    assert old["id"] != new["id"]
    assert len(new["runs"]["history"]) == 1
    assert not (folder / "examples.md").exists()
