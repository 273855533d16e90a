"""The mirror of a study in MLflow. No network beyond loopback."""

import contextlib
import json
import re
import shutil
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from filelock import Timeout
from pydantic import TypeAdapter

from adalayers import environ
from adalayers.command import results
from adalayers.results.files import write_trials
from adalayers.results.study_file import StudyFile
from adalayers.storage.folder import Folder
from adalayers.storage.lock import own_lock
from adalayers.tracking import mirror as tracking
from adalayers.tracking import session as mlflow_session
from adalayers.tracking import values
from adalayers.tracking.mirror import Mirror, default_uri, sync
from tests.helpers.mlflow_runs import client_of, runs
from tests.helpers.refusing import refused

NAMES = {"experiment": "alpha_lambda", "run_name": "minilm-cola", "study_key": "study-1"}
DOCUMENT = {
    "id": "study-1",
    "study": "alpha_lambda",
    "name": "minilm-cola",
    "request": {
        "metric": "f1",
        "arms": [{"name": "core"}],
        "trials": 4,
        "factors": [{"name": "entropy_weight", "label": "λ"}, {"name": "k", "label": "width"}],
        "own": {"address": "ray://me:hunter2@head:1", "hub_token": "hf_abc"},
        "command": "python studies/alpha_lambda.py --trials 4",
    },
    "environment": {
        "git": {"commit": "c0ffee"},
        "dataset": {"name": "cola", "examples": {"train": 8}},
        "backbone": {"name": "minilm", "revision": None},
    },
    "runs": {"state": "finished", "analyses": 2, "counts": {"search": {"completed": 1}}},
}
STUDY: StudyFile = TypeAdapter(StudyFile).validate_python(DOCUMENT)


def row(trial_id: str, status: str = "completed", **more: object) -> dict[str, Any]:
    first = {"trial_id": trial_id, "stage": "search", "arm": "", "status": status, "error": ""}
    config = {"config/alpha": 4.0, "config/mix": "learned", "config/k": None}
    scores = {"val/f1": 0.75, "val/f1/PER": float("nan"), "val/f1/ä+b": 0.5, "mix/entropy": 0.5}
    costs = {"seed": 3, "epochs": 2, "cost/training": 1.5, "seconds": 8.0}
    return first | config | scores | costs | more


def history(trial_id: str) -> pd.DataFrame:
    columns = {
        "epoch": [1.0, 2.0],
        "step": [10, 20],
        "lr": [1e-3, 5e-4],
        "train/loss": [0.9, np.inf],
        "val/f1": [0.75, 0.5],
        "val/f1/PER": [np.nan, np.nan],
        "mix/weight_01": [0.25, 0.125],
    }
    return pd.DataFrame({"trial_id": trial_id, **columns})


def write_folder(folder: Folder, rows: list[dict[str, Any]], study: StudyFile = STUDY) -> None:
    folder.write_json("study.json", study.as_json())
    write_trials(folder, rows)
    folder.write_parquet("history.parquet", pd.concat([history(each["trial_id"]) for each in rows]))
    folder.write_bytes("report.md", b"of https://me:hunter2@example.org/x, see https://example.org/?page=2\n")
    folder.write_bytes("examples.md", b"a user's own text")
    folder.write_bytes("figures/mix.png", b"\x89PNG")
    folder.write_bytes("best/model.safetensors", b"\x00\xff")


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path / "out put" / "alpha_lambda" / "minilm-cola")


@pytest.fixture
def uri(tmp_path, empty_database):
    (tmp_path / "out put").mkdir()
    shutil.copy(empty_database, tmp_path / "out put" / "mlflow.db")
    return default_uri(Folder(tmp_path / "out put"))


@pytest.fixture(autouse=True)
def _no_server_named(monkeypatch):
    # Set by the mirror for the process; undone after each test.
    for name in ("MLFLOW_TRACKING_URI", *environ.DEFAULTS):
        monkeypatch.delenv(name, raising=False)


def mirrored(uri: str, folder: Folder, timeout: float = 200) -> str:
    """Mirror a study's end; return what is said of it."""
    return Mirror(uri, folder, **NAMES).finish(timeout=timeout)


def points(uri: str, run: Any, name: str) -> list[tuple[int, float]]:
    found = client_of(uri).get_metric_history(run.info.run_id, name)
    return sorted((point.step, point.value) for point in found)


def test_a_study_becomes_a_parent_run_with_a_nested_run_per_trial(folder, uri, tmp_path, capfd):
    import mlflow

    ended = {"t1": "completed", "t2": "stopped", "t3": "failed", "t4": "diverged", "t5": "unfinished"}
    rows = [row(name, status) for name, status in ended.items()]
    rows[2]["error"] = "OSError: no route to https://me:hunter2@example.org"
    seeds = range(6, 11)
    rows += [row(f"t{n}", stage="confirm", arm="core", seed=n, **{"test/f1": n / 10}) for n in seeds]
    write_folder(folder, rows, replace(STUDY, runs=replace(STUDY.runs, state="interrupted")))
    own = mlflow.get_tracking_uri()
    assert mirrored(uri, folder) == ""
    assert (mlflow.get_tracking_uri(), mlflow.active_run()) == (own, None), "the user's own are left alone"
    assert capfd.readouterr() == ("", "")

    parent, nested, arms = runs(uri)
    assert (parent.info.run_name, parent.info.status) == ("minilm-cola", "KILLED"), "t5 has not ended"
    assert {
        "request/metric": "f1",
        "environment/backbone/name": "minilm",
        "request/own/address": "ray://***@head:1",
        "request/own/hub_token": "***",
    }.items() <= parent.data.params.items()
    assert {
        "adalayers.study": "study-1",
        "mlflow.source.name": "studies/alpha_lambda.py",
        "mlflow.source.git.commit": "c0ffee",
    }.items() <= parent.data.tags.items()
    assert "see https://example.org" in parent.data.tags["mlflow.note.content"]
    assert parent.data.metrics == {}

    core = arms["core"]
    assert (core.info.run_name, core.info.status) == ("core", "FINISHED")
    low, high = (pytest.approx(bound, abs=1e-4) for bound in (0.6037, 0.9963))
    mean = {"test/f1": pytest.approx(0.8), "test/f1 low": low, "test/f1 high": high, "n": 5}
    assert core.data.metrics == mean
    data = {"backbone": "minilm", "dataset": "cola", "examples": "8"}
    assert core.data.params == {"alpha": "4", "mix": "learned", "arm": "core", **data}
    experiment = client_of(uri).get_experiment_by_name("alpha_lambda")
    view = json.loads(experiment.tags["mlflow.sharedViewState.study-1"])
    assert {"metrics.`test/f1 low`", "metrics.`n`"} <= set(view["selectedColumns"])

    confirmed = dict.fromkeys((f"t{n}" for n in seeds), "FINISHED")
    statuses = {"t1": "FINISHED", "t2": "KILLED", "t3": "FAILED", "t4": "FAILED", **confirmed}
    assert {name: run.info.status for name, run in nested.items()} == statuses
    first, sixth = nested["t1"], nested["t6"]
    own = {"alpha": "4", "mix": "learned", "seed": "3", "stage": "search"}
    assert first.data.params == data | own | {"seconds": "8", "epochs_trained": "2", "cost/training": "1.5"}
    assert (first.info.run_name, sixth.info.run_name) == ("search t1", "core seed 006")
    curves = {"train/lr": 5e-4, "train/loss": 0.9, "val/f1": 0.5, "weights/weight_01": 0.125}  # last finite
    finals = {"val/f1": 0.75, "val/f1/ä_b": 0.5, "weights/entropy": 0.5}  # as MLflow takes names
    assert first.data.metrics == finals | {f"training/{name}": value for name, value in curves.items()}
    assert points(uri, first, "training/weights/weight_01") == [(10, 0.25), (20, 0.125)]
    assert first.info.end_time - first.info.start_time == 8000
    assert nested["t3"].data.tags["error"] == "OSError: no route to https://***@example.org"
    assert sixth.data.metrics["test/f1"] == 0.6
    assert core.data.tags["mlflow.runColor"] == sixth.data.tags["mlflow.runColor"] == "#0072B2"
    assert not {"error", "mlflow.runColor"} & first.data.tags.keys()

    artifacts = Path(parent.info.artifact_uri)
    assert artifacts.is_relative_to(tmp_path / "out put" / "mlartifacts")
    paths = [path for path in artifacts.rglob("*") if path.is_file()]
    written = {path.relative_to(artifacts).as_posix(): path.read_bytes() for path in paths}
    files = ["best/model.safetensors", "figures/mix.png", "report.md", "study.json", "trials.csv"]
    assert sorted(written) == files
    assert written["report.md"] == b"of https://***@example.org/x, see https://example.org/?page=2\n"
    assert written["best/model.safetensors"] == b"\x00\xff"
    assert b"hunter2" not in written["study.json"] + (tmp_path / "out put" / "mlflow.db").read_bytes()


def test_a_second_run_of_a_study_continues_the_first(folder, uri):
    write_folder(folder, [row("t1"), row("t2", "failed")])
    assert mirrored(uri, folder) == ""
    before, nested, _ = runs(uri)
    kept = nested["t1"].info.run_id

    more = replace(STUDY, request=replace(STUDY.request, trials=8))
    write_folder(folder, [row("t1"), row("t2"), row("t3")], more)  # t2 failed and was tried again
    assert mirrored(uri, folder) == ""

    parent, nested, _ = runs(uri)
    assert parent.info.run_id == before.info.run_id
    assert before.info.status == parent.info.status == "FINISHED"
    assert (parent.data.params["request/trials"], parent.data.tags["request/trials"]) == ("4", "8")
    assert nested["t1"].info.run_id == kept
    assert {run.info.status for run in nested.values()} == {"FINISHED"}
    assert points(uri, nested["t2"], "training/val/f1") == [(10, 0.75), (20, 0.5)]
    assert sync(folder, uri) == 0
    write_folder(folder, [row("t1"), row("t2"), row("t3")])
    sync(folder, uri)
    assert runs(uri)[0].data.tags["request/trials"] == "4", "as it is now again"


def test_while_trials_run_those_that_have_ended_are_written(folder, uri):
    """By a process that died, which also left a trial half written; the next one writes that from its start."""
    write_folder(folder, [row("t1")])
    folder.delete("history.parquet")
    assert mlflow_session.Session(uri, **NAMES).mirror(folder, last=False) == 0
    # The others' curves are not there yet, or not whole: their runs are written with them.
    write_trials(folder, [row("t1"), row("t7", "diverged", epochs=None), row("t8"), row("t9")])
    few = [history("t1"), history("t7").head(1), history("t8").head(1)]
    folder.write_parquet("history.parquet", pd.concat(few))
    assert mlflow_session.Session(uri, **NAMES).mirror(folder, last=False) == 2
    write_trials(folder, [row("t1")])
    parent, nested, _ = runs(uri)
    assert (parent.info.status, sorted(nested)) == ("RUNNING", ["t1", "t7"])
    client_of(uri).update_run(nested["t1"].info.run_id, status="RUNNING")

    assert sync(folder, uri) == 1
    after, again, _ = runs(uri)
    assert after.info.run_id == parent.info.run_id
    assert after.info.status == again["t1"].info.status == "FINISHED"
    assert again["t1"].info.run_id != nested["t1"].info.run_id


@pytest.mark.parametrize("history", [None, b"PAR1 cut off"])
def test_a_folder_that_is_not_whole_is_mirrored_and_one_without_a_study_refused(history, folder, uri):
    write_folder(folder, [row("t1")])
    for name in ("history.parquet", "best", "figures"):
        folder.delete(name)
    if history is not None:
        folder.write_bytes("history.parquet", history)
    said = r"wanted history\.parquet, the curves of the trials, in .* from a copy"
    refused(said, results.sync, folder.uri, uri)  # for a run is written once
    assert sync(folder, uri) == 1
    assert runs(uri)[1]["t1"].data.metrics["val/f1"] == 0.75
    refused(r"found no study\.json", sync, folder.child("none"), uri)
    folder.write_bytes("study.json", b'{"id": ')
    refused(r"could not read study\.json", sync, folder, uri)


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ("none", "--tracking-uri"),
        ("http://u:hunter2@[::1", "got 'http://***@[::1'"),
        ("sqlite:///", "a file as MLflow's database"),
        ("sqlite:///:memory:", "a file as MLflow's database"),
        ("sqlite:////", "a file as MLflow's database"),
    ],
)
def test_what_is_no_place_for_runs_is_refused(bad, said, folder):
    write_folder(folder, [row("t1")])
    assert "hunter2" not in refused(re.escape(said), sync, folder, bad)


def test_of_studies_that_begin_at_once_one_makes_the_tables(tmp_path, monkeypatch):
    import mlflow

    def opened(tracking_uri):
        with pytest.raises(Timeout):
            own_lock(tmp_path / ".mlflow.db.lock", timeout=0).acquire()
        raise InterruptedError("opened")

    monkeypatch.setattr(mlflow, "MlflowClient", opened)
    with pytest.raises(InterruptedError, match="opened"):
        mlflow_session.Session(f"sqlite:///{tmp_path}/mlflow.db", **NAMES)


def test_long_histories_are_thinned_and_long_batches_split(folder, uri):
    steps = np.arange(1000)
    long = pd.DataFrame({"trial_id": "t1", "step": steps, "val/f1": np.nan})
    long.loc[[500, 999], "val/f1"] = [0.25, 0.5]
    for layer in range(6):
        long[f"mix/weight_{layer:02}"] = steps / 1000
    write_folder(folder, [row("t1")])
    write_trials(folder, [row("t1") | {f"config/h{n:03}": "x" * 1000 for n in range(130)}])
    folder.write_parquet("history.parquet", pd.concat([long, long.tail(1)]))  # one step evaluated twice
    assert sync(folder, uri) == 1
    run = runs(uri)[1]["t1"]
    weights = points(uri, run, "training/weights/weight_05")
    assert len(weights) <= values.SERIES_POINTS
    assert (weights[0][0], weights[-1][0]) == (0, 999)
    assert set(points(uri, run, "training/val/f1")) == {(500, 0.25), (999, 0.5)}
    assert run.data.params["h129"] == "x" * 500


def test_a_dead_server_does_not_slow_the_study_and_what_it_lacks_is_written_later(closed, folder, uri, capfd):
    write_folder(folder, [row("t1"), row("t2")])
    dead = f"http://me:hunter2@{closed}/?token=swordfish"
    mirror = Mirror(dead, folder, **NAMES)
    mirror.check()
    began = time.monotonic()
    mirror.changed()
    assert time.monotonic() - began < 0.2
    sentence = mirror.finish(timeout=20)
    assert "could not be written (ConnectionRefusedError" in sentence
    assert f"`adalayers sync {folder.uri}` writes what is missing" in sentence
    last = refused("Connection refused", sync, folder, dead)
    assert sync(folder, uri) == 2
    said = f"{capfd.readouterr()}{sentence}{last}"
    assert "the study goes on without it" in said
    for secret in ("hunter2", "swordfish"):
        assert secret not in said


def test_a_server_that_never_answers_is_given_up_in_time(silent, folder):
    import mlflow  # noqa: F401  the import's own seconds are not under test

    write_folder(folder, [row("t1")])
    began = time.monotonic()
    sentence = mirrored(f"http://{silent}", folder, timeout=1)
    assert time.monotonic() - began < 2
    assert "(no answer within 1 s): the study is not wholly tracked" in sentence


def test_what_failed_is_kept_and_written_when_the_server_is_back(folder, uri, monkeypatch):
    write_folder(folder, [row("t1")])
    refuses, opens = ConnectionRefusedError("down"), mock.DEFAULT
    session = mock.Mock(wraps=mlflow_session.Session, side_effect=[refuses, opens])
    monkeypatch.setattr(tracking, "Session", session)
    mirror = Mirror(uri, folder, **NAMES)
    mirror.check()
    mirror.changed()
    time.sleep(0.3)
    assert session.call_count == 1, "a server that failed is left alone"
    assert mirror.finish() == ""
    assert session.call_count == 2
    assert sorted(runs(uri)[1]) == ["t1"]


def test_the_default_is_beside_the_results_unless_the_environment_says(tmp_path, monkeypatch):
    """Where MLflow would not read the path as another one."""
    local, remote = Folder(tmp_path / "plain"), Folder(tmp_path)
    remote.is_local = False
    assert default_uri(local) == f"sqlite:///{tmp_path.resolve()}/plain/mlflow.db"
    assert default_uri(remote) == "none"
    for name in ("what?now=1", "run%41", "a#1"):
        refused(r"database at a path without .*; name another --output", default_uri, Folder(tmp_path / name))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://tracking:5000")
    assert default_uri(local) == default_uri(remote) == "http://tracking:5000"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("deleted", "its experiment 'alpha_lambda' was deleted; `mlflow experiments restore"),
        ("older", "'mlflow db upgrade <database_uri>'"),
        ("newer", "out-of-date database schema"),
        ("no database", "file is not a database"),
        ("a folder", "Please migrate to a database backend"),
    ],
)
def test_what_this_mlflow_cannot_write_is_told_before_the_first_trial(wrong, said, folder, uri):
    from alembic.script import ScriptDirectory
    from mlflow.store.db.utils import _get_alembic_config

    path = Path(uri.removeprefix("sqlite:///"))
    if wrong == "deleted":
        Mirror(uri, folder, **NAMES).check()
        client = client_of(uri)
        client.delete_experiment(client.get_experiment_by_name("alpha_lambda").experiment_id)
    elif wrong == "no database":
        path.write_bytes(b"no database " * 1000)
    elif wrong == "a folder":
        uri = "./mlruns"
    else:
        head = ScriptDirectory.from_config(_get_alembic_config(uri)).get_revision("head")
        version = head.down_revision if wrong == "older" else "0" * 12
        with contextlib.closing(sqlite3.connect(path)) as database, database:
            database.execute("UPDATE alembic_version SET version_num = ?", (version,))
    refused(rf"{said}.*; mend that, or give another --tracking-uri", Mirror(uri, folder, **NAMES).check)


def test_importing_the_module_and_tracking_nothing_import_no_mlflow():
    code = (
        "import sys, adalayers.tracking.mirror as t; from adalayers.storage.folder import Folder\n"
        "m = t.Mirror('none', Folder('x'), experiment='e', run_name='r', study_key='k')\n"
        "m.changed(); m.finish()\n"
        "assert not {'mlflow', 'torch', 'ray', 'sqlalchemy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
