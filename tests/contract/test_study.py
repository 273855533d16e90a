"""A whole study through Ray, on a tiny backbone: files, statuses, continuing after a kill, MLflow, report."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from mlflow import MlflowClient

from adalayers.model.model import load
from adalayers.results import files as results
from tests.helpers.studying import command, world

pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

TIMEOUT = 300
VOLATILE = ["seconds"]


def run(argv, **environment):
    return subprocess.run(
        argv, capture_output=True, text=True, timeout=TIMEOUT, env={**os.environ, **environment}, check=False
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return world(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def study(made, tmp_path_factory):
    """A finished study: (results folder, output root, the finished process)."""
    output = tmp_path_factory.mktemp("study") / "results"
    done = run(command(made, output))
    assert done.returncode == 0, done.stderr
    return output / "alpha_lambda" / "tiny-echo", output, done


def table(folder):
    return pd.read_csv(folder / "trials.csv", keep_default_na=False, na_values=[""], dtype={"trial_id": str})


def test_the_last_line_of_stdout_is_the_report(study):
    folder, _, done = study
    assert done.stdout.strip().splitlines()[-1] == str(folder / "report.md")
    assert "trials/min" in done.stderr
    assert "left" in done.stderr


def test_every_file_of_the_contract_is_there(study):
    folder, _, _ = study
    for name in ("study.json", "trials.csv", "history.parquet", "predictions.parquet", "claims.json", "contrasts.json",
                 "report.md", "best/config.json", "best/model.safetensors"):  # fmt: skip
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
    cores = [arm for arm in per_arm.index if arm.startswith("alpha=")]
    assert len(cores) == 12
    assert {"published", "uniform", "last"} <= set(per_arm.index)
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
    assert len(stopped) >= 1, "ASHA over six trials of four epochs stops some"
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
    nested = [r for r in runs if "mlflow.parentRunId" in r.data.tags]
    assert len(parents) == 1
    assert parents[0].info.status == "FINISHED"
    assert sorted(r.info.run_name for r in nested) == sorted(table(folder)["trial_id"])
    client = MlflowClient(f"sqlite:///{output / 'mlflow.db'}")
    weights = client.get_metric_history(nested[0].info.run_id, "mix/weight_01")
    assert len(weights) > 2
    names = {artifact.path for artifact in client.list_artifacts(parents[0].info.run_id)}
    assert {"report.md", "best"} <= names


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
        score = f1_score(rows["label"], rows["prediction"], average="macro", zero_division=0)
        assert score == pytest.approx(confirmed.loc[trial_id, f"{split}/f1_macro"])


def test_the_best_model_is_the_best_on_validation(study):
    folder, _, _ = study
    trials = table(folder)
    done = trials[trials["status"] == "completed"]
    best = done.sort_values(["val/f1_macro", "trial_id"], ascending=[False, True]).iloc[0]
    assert json.loads((folder / "best/config.json").read_text())["trial_id"] == best["trial_id"]
    assert load(folder / "best").n_parameters() == best["parameters"]


def test_study_says_what_was_asked_on_what_and_what_happened(study):
    folder, _, _ = study
    document = json.loads((folder / "study.json").read_text())
    assert document["asked"]["control"] == "alpha=1 entropy_weight=0"
    assert document["on"]["dataset"]["examples"] == {"train": 120, "validation": 60, "test": 60}
    assert document["on"]["backbone"]["layers"] == 4
    happened = document["happened"]
    assert happened["state"] == "finished"
    assert happened["counts"] == results.counts(table(folder).fillna({"arm": ""}))
    assert (happened["looks"], happened["test_opened"]) == (1, 1)
    (only,) = happened["runs"]
    assert set(only["seeds"]) == {arm["arm"] for arm in document["asked"]["arms"]}
    assert {tuple(seeds) for seeds in only["seeds"].values()} == {(1, 2)}
    assert only["test_scored"] == only["confirmed"] == 2 * len(only["seeds"])
    assert str(folder.parent.parent.parent) not in json.dumps(document["on"])


def test_running_again_runs_nothing_and_changes_no_row(study, made):
    folder, output, _ = study
    before = (folder / "trials.csv").read_bytes()
    again = run(command(made, output))
    assert again.returncode == 0, again.stderr
    assert "nothing to run" in again.stderr
    assert (folder / "trials.csv").read_bytes() == before


def test_a_killed_study_goes_on_to_the_same_numbers(study, made, tmp_path):
    """Killed twice, hard, and run on: the confirmed rows equal those of the study that was left alone."""
    output = tmp_path / "results"
    folder = output / "alpha_lambda" / "tiny-echo"
    argv = command(made, output)
    ended: dict[str, dict] = {}
    for after in (4, 12):
        process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline and process.poll() is None:
            if (folder / "trials.csv").exists() and (table(folder)["status"] == "completed").sum() >= after:
                break
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()
        now = {
            row["trial_id"]: row for row in table(folder).to_dict("records") if row["status"] == "completed"
        }
        for trial_id, row in ended.items():
            assert now[trial_id] == row or all(pd.isna(v) or now[trial_id][k] == v for k, v in row.items())
        ended = now
    done = run(argv)
    assert done.returncode == 0, done.stderr
    whole = table(study[0]).query(
        "stage == 'confirm' and not arm.str.startswith('search-best')", engine="python"
    )
    parts = table(folder).query(
        "stage == 'confirm' and not arm.str.startswith('search-best')", engine="python"
    )
    left, right = (
        frame.drop(columns=VOLATILE).sort_values("trial_id").reset_index(drop=True)
        for frame in (whole, parts)
    )
    pd.testing.assert_frame_equal(left, right, check_exact=True)


def workers_of(process):
    """Return the ids of the Ray workers that run trials of a study."""
    listed = subprocess.run(["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()[1:]]
    parents = {int(pid): int(parent) for pid, parent, _ in rows}

    def below(pid):
        while pid in parents and pid != process.pid:
            pid = parents[pid]
        return pid == process.pid

    return [int(pid) for pid, _, args in rows if "ImplicitFunc.train" in args and below(int(pid))]


def test_a_trial_whose_worker_is_killed_is_run_again(made, tmp_path):
    output = tmp_path / "results"
    folder = output / "alpha_lambda" / "tiny-echo"
    argv = command(
        made, output, "--trials", "0", "--epochs", "15", "--set", "patience=15", "--tracking-uri", "none"
    )
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    killed = []
    while process.poll() is None and not killed:
        if (folder / "work").exists():  # a trial is under way
            for pid in workers_of(process)[:1]:
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
        time.sleep(0.1)
    _, err = process.communicate(timeout=TIMEOUT)
    assert killed
    assert process.returncode == 0, err
    assert set(table(folder)["status"]) == {"completed"}


def test_ctrl_c_ends_in_good_order_and_says_how_to_go_on(made, tmp_path):
    output = tmp_path / "results"
    folder = output / "alpha_lambda" / "tiny-echo"
    argv = command(made, output)
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not (
        (folder / "trials.csv").exists() and (table(folder)["status"] == "completed").any()
    ):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 130, err
    assert "continue with: python studies/alpha_lambda.py" in err
    assert "Traceback" not in err
    assert json.loads((folder / "study.json").read_text())["happened"]["state"] == "interrupted"
    assert (folder / "report.md").exists(), out


def test_an_unreachable_mlflow_server_neither_stops_nor_slows(made, tmp_path):
    argv = command(
        made,
        tmp_path / "results",
        "--tracking-uri",
        "http://user:hunter2@127.0.0.1:9",
        "--trials",
        "0",
        "--seeds",
        "1",
    )
    done = run(argv)
    assert done.returncode == 0, done.stderr
    assert "adalayers sync" in done.stderr
    held = "".join(
        path.read_text(errors="replace")
        for path in (tmp_path / "results").rglob("*")
        if path.suffix in {".json", ".md", ".csv"}
    )
    assert "hunter2" not in held + done.stderr + done.stdout


def test_trials_that_fail_are_rows_and_all_failed_is_exit_1(made, tmp_path):
    """A width that no memory holds fails every trial; the study still ends with a report."""
    output = tmp_path / "results"
    asked = command(made, output, "--trials", "0", "--seeds", "1", "--tracking-uri", "none")
    asked[asked.index("k=8")] = f"k={10**12}"
    done = run(asked)
    assert done.returncode == 1, done.stderr
    trials = table(output / "alpha_lambda" / "tiny-echo")
    assert set(trials["status"]) == {"failed"}
    assert trials["error"].str.contains("Error").all()
    assert (output / "alpha_lambda" / "tiny-echo" / "report.md").exists()


def test_reports_are_rebuilt_from_the_files_alone(study, tmp_path):
    folder, _, _ = study
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    for name in ("report.md", "claims.json"):
        (copy / name).unlink()
    shutil.rmtree(copy / "figures")
    done = run([sys.executable, "-m", "reports", str(copy)])
    assert done.returncode == 0, done.stderr
    for name in ("report.md", "claims.json"):
        assert (copy / name).read_bytes() == (folder / name).read_bytes()


def test_a_study_can_be_mirrored_later(study, tmp_path):
    folder, _, _ = study
    uri = f"sqlite:///{tmp_path / 'late.db'}"
    first = run([sys.executable, "-m", "adalayers", "sync", str(folder), "--tracking-uri", uri])
    assert first.returncode == 0, first.stderr
    assert first.stdout.startswith(f"{len(table(folder))} trials")
    again = run([sys.executable, "-m", "adalayers", "sync", str(folder), "--tracking-uri", uri])
    assert again.stdout.startswith("0 trials")
    wrong = run([sys.executable, "-m", "adalayers", "sync", str(tmp_path)])
    assert wrong.returncode == 2
    assert "study.json" in wrong.stderr.splitlines()[0]
