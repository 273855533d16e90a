"""A whole study through Ray, on a tiny backbone: files, statuses, continuing after a kill, MLflow, report."""

import contextlib
import json
import os
import shutil
import signal
import tempfile
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import psutil
import pytest
from mlflow import MlflowClient
from ray import tune

import adalayers
from adalayers.config import _CONFIGS, hyperparameters
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.results import files as results
from tests.helpers.documented import snippet
from tests.helpers.small_study import Study, children, waited
from tests.helpers.studying import (
    RAYS_OWN,
    ROOT,
    SCRIPT,
    SMALL,
    Ran,
    flags,
    run_here,
)

pytestmark = [
    *RAYS_OWN,
    pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated"),
    pytest.mark.usefixtures("ray_here"),
]

TIMEOUT = 300
UNREACHABLE = "http://user:hunter2@127.0.0.1:9"
VOLATILE = ["seconds"]
SIZE = (*SMALL, "--seeds", "3")
"""Of the study that is disturbed, and of that it is compared with: fourteen trials."""
DISTURBED = (*SIZE, "--features", "disk")


@pytest.fixture(scope="module")
def study(world, tmp_path_factory, empty_database, ray_here):
    """A study that was left alone: (results folder, output root, how it ended)."""
    output = tmp_path_factory.mktemp("study") / "results"
    output.mkdir()
    shutil.copy(empty_database, output / "mlflow.db")
    ran = run_here(flags(world, output))
    assert ran.code == 0, ran.err
    return output / "alpha_lambda" / "tiny-echo", output, ran


@dataclass(frozen=True)
class TwoCases:
    """A study of two datasets that cannot reach its MLflow server: its folder, how it ended, Ray sessions it took."""

    folder: Path
    ran: Ran
    sessions: int


@pytest.fixture(scope="module")
def two_cases(world, tmp_path_factory):
    twin = Path(shutil.copytree(world["dataset"], tmp_path_factory.mktemp("twin") / "twin"))
    output = tmp_path_factory.mktemp("cases") / "results"
    argv = flags(world, output, *SIZE, "--features", "memory", "--tracking-uri", UNREACHABLE)
    argv[argv.index("--dataset") + 2 : argv.index("--dataset") + 2] = [str(twin)]
    starts = []
    fit = tune.Tuner.fit
    with mock.patch.object(tune.Tuner, "fit", lambda tuner: starts.append(tuner) or fit(tuner)):
        ran = run_here(argv)
    return TwoCases(output / "alpha_lambda", ran, len(starts))


@dataclass(frozen=True)
class Ended:
    """How a run ended, and the completed rows and `study.json` that it left."""

    ran: Ran
    rows: dict[str, dict]
    runs: dict


@dataclass(frozen=True)
class Disturbed:
    """One study over two processes of the user's own script, each with a Ray of its own, and a last run here.

    outlived: processes and scratch folders that were there after the first run had ended
    refused:  a run that was tried here during the second
    """

    folder: Path
    interrupted: Ended
    outlived: list
    refused: Ran
    killed: Ended
    finished: Ended


@pytest.fixture(scope="module")
def disturbed(world, ray_here):
    """A study that is ended by SIGHUP; run again, a worker of it killed, then all of it; then run to its end."""
    # A short path: Ray's sockets lie below it.
    with tempfile.TemporaryDirectory(prefix="d-", dir="/tmp", ignore_cleanup_errors=True) as root:
        yield disturb(Study(world, Path(root), "disturbed", DISTURBED), world, Path(root) / "t")


def disturb(study, world, scratch):
    folder = study.folder.path()
    scratch.mkdir()

    def completed():
        rows = table(folder).query("status == 'completed'").to_dict("records")
        return {row["trial_id"]: row for row in rows}

    def left(ran):
        return Ended(ran, completed(), json.loads((folder / "study.json").read_text())["runs"])

    def run():
        return run_here(flags(world, study.output, *DISTURBED), report=False)

    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # tests may run under nohup
    try:
        process = study.start()
    finally:
        signal.signal(signal.SIGHUP, before)
    assert waited(process, study.ended), study.said()
    started = children(process)
    assert len(started) > 3
    assert list(scratch.glob("adalayers-ray-*"))
    process.send_signal(signal.SIGHUP)
    assert waited(process, lambda: "continue with" in study.said())
    process.send_signal(signal.SIGHUP)  # while Python leaves
    process.wait(TIMEOUT)
    _, alive = psutil.wait_procs(started, timeout=10)
    outlived = [*alive, *scratch.glob("adalayers-*")]
    interrupted = left(Ran(process.returncode, "", study.said()))

    process = study.start()
    holder = folder.parent / f".{folder.name}.driver.json"

    def holds():
        with contextlib.suppress(OSError, ValueError):  # it is written just now
            return json.loads(holder.read_text())["pid"] == process.pid

    assert waited(process, holds), study.said()
    refused = run()
    workers = []
    assert waited(process, lambda: workers.extend(children(process, "worker")) or workers), study.said()
    workers[0].kill()
    assert waited(process, lambda: len(completed()) > len(interrupted.rows)), study.said()
    process.kill()
    process.wait(TIMEOUT)
    killed = left(Ran(process.returncode, "", study.said()))
    return Disturbed(folder, interrupted, outlived, refused, killed, left(run()))


def table(folder):
    return pd.read_csv(folder / "trials.csv", keep_default_na=False, na_values=[""], dtype={"trial_id": str})


def test_every_file_of_the_contract_is_there(study):
    folder, _, _ = study
    for name in (
        "study.json",
        "trials.csv",
        "history.parquet",
        "predictions.parquet",
        "claims.json",
        "contrasts.json",
        "optuna.journal",
        "report.md",
        "details.md",
        "best/config.json",
        "best/model.safetensors",
    ):
        assert (folder / name).is_file(), name
    assert list((folder / "figures").glob("*.png"))
    assert {p.stem for p in (folder / "figures").glob("*.png")} == {
        p.stem for p in (folder / "figures").glob("*.svg")
    }
    assert not (folder / "work").exists()


def test_trials_hold_search_and_paired_confirmations(study):
    folder, _, _ = study
    trials = table(folder)
    search, confirm = (trials[trials["stage"] == stage] for stage in ("search", "confirm"))
    assert len(search) == 6
    assert set(search["seed"]) == {0}
    assert set(search["status"]) <= {"completed", "stopped"}
    assert search["arm"].isna().all()
    assert search.filter(like="test/").isna().all().all(), "the search never sees the test split"
    assert set(confirm["status"]) == {"completed"}
    per_arm = confirm.groupby("arm")["seed"].apply(sorted)
    assert all(seeds == [1, 2] for seeds in per_arm)
    cores = [arm for arm in per_arm.index if arm.startswith("alpha=") and "mix_lr" not in arm]
    assert len(cores) == 12
    assert {"published-mix", "uniform", "last"} <= set(per_arm.index)
    assert confirm[["test/accuracy", "test/f1_macro", "test/matthews"]].notna().all().all()
    assert trials["trial_id"].is_unique
    uniform = confirm[confirm["arm"] == "uniform"]
    assert uniform[["config/alpha", "config/mix_lr", "config/cutoff"]].isna().all().all()
    assert np.allclose(uniform["mix/entropy"], np.log(4))
    assert set(confirm[confirm["arm"] == "last"]["mix/live_layers"]) == {1}


def test_a_trial_that_the_scheduler_stopped_is_stopped_everywhere(study):
    """Ray itself reports it as complete; our files and MLflow do not."""
    folder, output, _ = study
    trials = table(folder)
    stopped = trials[trials["status"] == "stopped"]
    if stopped.empty:  # where each trial happened to end a rung after worse ones
        pytest.skip("ASHA stopped none of this study's trials")
    assert (stopped["epochs"] < 4).all()
    runs = {r.data.tags.get("adalayers.trial_id"): r for r in mlflow_runs(output)}
    for row in trials.to_dict("records"):
        expected = {"completed": "FINISHED", "stopped": "KILLED"}[row["status"]]
        assert runs[row["trial_id"]].info.status == expected


def mlflow_runs(output):
    client = MlflowClient(f"sqlite:///{output / 'mlflow.db'}")
    experiments = [e.experiment_id for e in client.search_experiments() if e.name != "Default"]
    return list(client.search_runs(experiments, max_results=1000))


def test_mlflow_has_one_parent_and_a_nested_run_per_trial(study):
    folder, output, _ = study
    runs = mlflow_runs(output)
    parents = [r for r in runs if "mlflow.parentRunId" not in r.data.tags]
    nested = [r for r in runs if r.data.tags["adalayers.kind"] == "trial"]
    arms = {r.data.tags["arm"]: r for r in runs if r.data.tags["adalayers.kind"] == "arm"}
    assert len(parents) == 1
    assert set(arms) == set(table(folder).query("stage == 'confirm'")["arm"])
    assert arms["uniform"].data.metrics["n"] == 2
    assert parents[0].info.status == "FINISHED"
    assert sorted(r.data.tags["adalayers.trial_id"] for r in nested) == sorted(table(folder)["trial_id"])
    assert {"uniform seed 001", "uniform seed 002"} <= {r.info.run_name for r in nested}
    client = MlflowClient(f"sqlite:///{output / 'mlflow.db'}")
    weights = client.get_metric_history(nested[0].info.run_id, "training/weights/weight_01")
    assert len(weights) > 2
    names = {artifact.path for artifact in client.list_artifacts(parents[0].info.run_id)}
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
    folder, _, _ = study
    history, trials = pd.read_parquet(folder / "history.parquet"), table(folder)
    assert set(history["trial_id"]) == set(trials["trial_id"])
    weights = history.filter(like="mix/weight_")
    assert list(weights.columns) == [f"mix/weight_{i:02d}" for i in range(1, 5)]
    assert np.allclose(weights.sum(axis=1), 1)
    evaluated = history.dropna(subset=["val/f1_macro"])
    for trial_id, rows in evaluated.groupby("trial_id"):
        row = trials.set_index("trial_id").loc[trial_id]
        assert rows["val/f1_macro"].max() == row["val/f1_macro"]
        assert len(rows) == row["epochs"]


def test_predictions_give_the_scores_again(study):
    from sklearn.metrics import f1_score

    folder, _, _ = study
    predictions, trials = pd.read_parquet(folder / "predictions.parquet"), table(folder)
    confirmed = trials[trials["stage"] == "confirm"].set_index("trial_id")
    assert set(predictions["trial_id"]) == set(confirmed.index)
    for (trial_id, split), rows in predictions.groupby(["trial_id", "split"]):
        assert split == "val" or confirmed.loc[trial_id, "predictions"] == results.prediction_hash(rows)
        score = f1_score(rows["label"], rows["prediction"], average="macro", zero_division=0)
        assert score == pytest.approx(confirmed.loc[trial_id, f"{split}/f1_macro"])


def test_the_best_model_is_the_best_on_validation(study):
    folder, _, _ = study
    trials = table(folder)
    done = trials[trials["status"] == "completed"]
    best = done.sort_values(["val/f1_macro", "trial_id"], ascending=[False, True]).iloc[0]
    assert json.loads((folder / "best/config.json").read_text())["trial_id"] == best["trial_id"]
    assert adalayers.results(folder).best.n_parameters() == best["parameters"]


def test_the_search_is_read_as_tracking_md_shows(study, monkeypatch):
    """Its lines as printed, but for the study's name."""
    folder, output, _ = study
    shown = (ROOT / "docs" / "tracking.md").read_text().partition("```python\n")[2].partition("```")[0]
    names: dict = {}
    monkeypatch.chdir(output.parent)
    exec(compile(shown.replace("minilm-cola", folder.name), "docs/tracking.md", "exec"), names)
    searched = table(folder).query("stage == 'search'")
    assert {trial.user_attrs["trial_id"] for trial in names["search"].trials} == set(searched["trial_id"])


def test_study_json_has_request_environment_and_runs(study):
    folder, _, _ = study
    document = json.loads((folder / "study.json").read_text())
    assert document["request"]["control"] == "alpha=1 entropy_weight=0"
    assert document["environment"]["dataset"]["examples"] == {"train": 120, "validation": 60, "test": 60}
    assert document["environment"]["backbone"]["layers"] == 4
    runs = document["runs"]
    assert runs["state"] == "finished"
    assert runs["counts"] == results.counts(table(folder).fillna({"arm": ""}))
    assert (runs["analyses"], runs["test_opened"]) == (1, 1)
    (only,) = runs["history"]
    assert set(only["seeds"]) == {arm["name"] for arm in document["request"]["arms"]}
    assert {tuple(seeds) for seeds in only["seeds"].values()} == {(1, 2)}
    assert only["test_scored"] == only["confirmed"] == 2 * len(only["seeds"])
    assert (
        only["machine"]
        == f"{document['environment']['device']}, torch {document['environment']['packages']['torch']}"
    )
    assert str(folder.parent.parent.parent) not in json.dumps(document["environment"])


def test_a_disturbed_study_goes_on_to_the_same_numbers(two_cases, disturbed):
    """Interrupted, killed, a worker killed, its hidden states on disk: its confirmed rows equal those of a study that
    was left alone, with hidden states in memory and another case beside it."""
    before, after = disturbed.interrupted.rows, disturbed.killed.rows
    assert disturbed.killed.ran.code == -signal.SIGKILL
    assert len(before) < len(after) < len(disturbed.finished.rows)
    for earlier, later in ((before, after), (after, disturbed.finished.rows)):
        for trial_id, row in earlier.items():
            now = later[trial_id]
            assert now == row or all(pd.isna(v) or now[k] == v for k, v in row.items())
    whole, parts = (
        table(folder).query("stage == 'confirm' and not arm.str.startswith('search-best')", engine="python")
        for folder in (two_cases.folder / "tiny-echo", disturbed.folder)
    )
    left, right = (
        frame.drop(columns=VOLATILE).sort_values("trial_id").reset_index(drop=True)
        for frame in (whole, parts)
    )
    pd.testing.assert_frame_equal(left, right, check_exact=True)


def test_a_trial_whose_worker_is_killed_is_run_again(disturbed):
    assert disturbed.finished.ran.code == 0, disturbed.finished.ran.err
    assert "Traceback" not in disturbed.finished.ran.err
    assert set(table(disturbed.folder)["status"]) <= {"completed", "stopped"}


def test_a_second_driver_is_refused_and_names_the_first(disturbed):
    run = disturbed.refused
    assert run.code == 2, run.err
    assert "Traceback" not in run.err
    assert "process" in run.err
    assert "studies/alpha_lambda.py" in run.err


def test_a_terminal_that_is_closed_ends_a_study_in_good_order_which_leaves_nothing_behind(disturbed):
    run = disturbed.interrupted.ran
    assert run.code == 130, run.err
    assert f"continue with: python {SCRIPT}" in run.err.splitlines()[-1]
    assert "Traceback" not in run.err
    assert disturbed.interrupted.runs["state"] == "interrupted"
    assert (disturbed.folder / "report.md").exists()
    assert not disturbed.outlived


def test_trials_that_fail_are_rows_and_all_failed_is_exit_1(world, tmp_path):
    """A rate at which every trial diverges; the study still ends with a report."""
    output = tmp_path / "results"
    ran = run_here([*flags(world, output), *SMALL, "--trials", "0", "--seed", "5", "--set", "lr=1e30"])
    assert ran.code == 1, ran.err
    trials = table(output / "alpha_lambda" / "tiny-echo")
    assert set(trials["status"]) == {"diverged"}
    assert set(trials["seed"]) == {6}
    assert trials["error"].str.contains("the training loss is").all()
    assert "error: all trials failed; the first one: the training loss is" in ran.err
    assert (output / "alpha_lambda" / "tiny-echo" / "report.md").exists()


def test_a_dry_run_counts_what_is_done_and_what_is_left(world, study):
    _, output, _ = study
    done = run_here([*flags(world, output), "--dry-run"])
    assert (
        done.code,
        "; 0 trials left, each with all its epochs: in all at most about 18 s" in done.out,
    ) == (0, True), done.out
    assert "6 trials by optuna, asha" in done.out
    more = run_here([*flags(world, output), "--seeds", "3", "--dry-run"])
    assert "60, 42 done" in more.out
    assert "18 trials left" in more.out


def test_a_field_that_is_added_with_a_default_renames_no_trial(world, study, tmp_path):
    """CONTRIBUTING.md's hyperparameter, added to the layer mix: the folder of before is continued as it stands."""
    output = Path(shutil.copytree(study[1], tmp_path / "results"))
    before = pd.read_csv(output / "alpha_lambda/tiny-echo/trials.csv")
    try:
        exec(snippet("hyperparameter"), added := {"__name__": "added"})
        _CONFIGS[LayerMixConfig.fusion] = added["LayerMixConfig"]
        assert "gradient_norm" in hyperparameters()
        ran = run_here(flags(world, output), report=False)
    finally:
        _CONFIGS[LayerMixConfig.fusion] = LayerMixConfig
    assert ran.code == 0, ran.err
    assert "nothing to run" in ran.err
    after = pd.read_csv(output / "alpha_lambda/tiny-echo/trials.csv")
    pd.testing.assert_frame_equal(after, before)


def test_the_trials_of_all_cases_run_in_one_ray_session(two_cases):
    """Two datasets: one session, a record and a search each, and no case waits for the other to end."""
    assert two_cases.ran.code == 0, two_cases.ran.err
    assert two_cases.sessions == 1
    ids = []
    for name in ("tiny-echo", "tiny-twin"):
        trials = pd.read_csv(two_cases.folder / name / "trials.csv")
        assert set(trials["status"]) <= {"completed", "stopped"}
        assert set(trials["stage"]) == {"search", "confirm"}
        ids.append(set(trials["trial_id"]))
    # The same words under another name are the same data, and every case has its own rows.
    assert ids[0] == ids[1]


def test_two_datasets_give_a_folder_each_and_a_cover(two_cases):
    folder = two_cases.folder
    shown = {path.name for path in folder.iterdir() if not path.name.startswith(".")}  # locks are hidden
    assert shown == {"tiny-echo", "tiny-twin", "report.md", "claims.json", "figures"}
    assert two_cases.ran.out.splitlines()[-1] == str(folder / "report.md")
    cover = (folder / "report.md").read_text()
    assert "tiny-echo" in cover
    assert "tiny-twin" in cover


def test_an_unreachable_mlflow_server_neither_stops_nor_slows(two_cases):
    ran = two_cases.ran
    assert ran.code == 0, ran.err
    assert "adalayers sync" in ran.err
    written = "".join(
        path.read_text(errors="replace")
        for path in two_cases.folder.rglob("*")
        if path.suffix in {".json", ".md", ".csv"}
    )
    assert "hunter2" not in written + ran.err + ran.out
