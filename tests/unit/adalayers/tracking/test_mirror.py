"""The mirror of a study in MLflow. No network beyond loopback."""

import contextlib
import json
import os
import shlex
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pydantic import TypeAdapter

from adalayers import environ
from adalayers.errors import BadInput
from adalayers.results.files import write_trials
from adalayers.results.study_file import StudyFile
from adalayers.storage.folder import Folder
from adalayers.storage.lock import own_lock
from adalayers.tracking import mirror as tracking
from adalayers.tracking import session as mlflow_session
from adalayers.tracking import values as mlflow_values
from adalayers.tracking.mirror import Mirror, check_uri, default_uri, sync

# MLflow 3's own models under SQLAlchemy 2.1; nothing of ours uses that loader.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

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
        "dataset": {"name": "cola", "fingerprint": "0123456789abcdef", "examples": {"train": 8}},
        "backbone": {"name": "minilm", "revision": None},
    },
    "runs": {"analyses": 2, "counts": {"search": {"completed": 1}}},
}
STUDY: StudyFile = TypeAdapter(StudyFile).validate_python(DOCUMENT)


def row(trial_id: str, status: str = "completed", **more: object) -> dict[str, Any]:
    return {
        "trial_id": trial_id,
        "stage": "search",
        "arm": "",
        "status": status,
        "error": "",
        "config/alpha": 4.0,
        "config/mix": "learned",
        "config/k": None,
        "seed": 3,
        "epochs": 2,
        "best_epoch": 1,
        "val/f1": 0.75,
        "cost/training": 1.5,
        "val/f1/PER": float("nan"),
        "val/f1/ä+b": 0.5,
        "mix/entropy": 0.5,
        "mix/live_layers": 7,
        "parameters": 100,
        "seconds": 8.0,
    } | more


def history(trial_id: str) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "trial_id": trial_id,
            "epoch": [1, 2],
            "step": [10, 20],
            "lr": [1e-3, 5e-4],
            "train/loss": [0.9, np.inf],
            "val/f1": [0.75, 0.5],
            "val/f1/PER": [np.nan, np.nan],
            "mix/weight_01": [0.25, 0.125],
        }
    )


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
def fresh_uri(tmp_path):
    return default_uri(Folder(tmp_path / "out put"))


@pytest.fixture
def uri(fresh_uri, tmp_path, empty_database):
    (tmp_path / "out put").mkdir()
    shutil.copy(empty_database, tmp_path / "out put" / "mlflow.db")
    return fresh_uri


@pytest.fixture(autouse=True)
def _no_server_named(monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    # Set by the mirror for the process; undone after each test.
    for name in environ.DEFAULTS:
        monkeypatch.delenv(name, raising=False)


def mirrored(uri: str, folder: Folder, timeout: float = 200) -> list[str]:
    """Mirror a study's end; return what is said of it."""
    return Mirror(uri, folder, **NAMES).finish(timeout=timeout)


def runs(uri: str, arms: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
    """Return the one parent run and trial id -> its run, below the parent or its arm's; `arms` is filled by name."""
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name("alpha_lambda")
    assert experiment is not None
    found = client.search_runs([experiment.experiment_id])
    (parent,) = [run for run in found if "mlflow.parentRunId" not in run.data.tags]
    of_arms = {run.data.tags["arm"]: run for run in found if run.data.tags["adalayers.kind"] == "arm"}
    trials = [run for run in found if run.data.tags.get("adalayers.trial_id")]
    for run in (*trials, *of_arms.values()):
        confirmed = run in trials and run.data.tags.get("stage") == "confirm"
        above = of_arms[run.data.tags["arm"]] if confirmed else parent
        assert run.data.tags["mlflow.parentRunId"] == above.info.run_id
    assert len({run.data.tags["adalayers.trial_id"] for run in trials}) == len(trials), "a trial has two runs"
    (arms if arms is not None else {}).update(of_arms)
    return parent, {run.data.tags["adalayers.trial_id"]: run for run in trials}


def experiment_tags(uri: str) -> dict[str, str]:
    from mlflow import MlflowClient

    return MlflowClient(uri).get_experiment_by_name("alpha_lambda").tags


def points(uri: str, run: Any, name: str) -> list[tuple[int, float]]:
    from mlflow import MlflowClient

    found = MlflowClient(tracking_uri=uri).get_metric_history(run.info.run_id, name)
    return sorted((point.step, point.value) for point in found)


def test_what_was_unfinished_and_has_ended_is_counted_so(folder, uri):
    for rows in ([row("t1"), row("t2", "unfinished")], [row("t1"), row("t2")]):
        write_folder(folder, rows)
        mirrored(uri, folder)
    tags = runs(uri)[0].data.tags
    assert (tags["trials/search/completed"], tags["trials/search/unfinished"]) == ("2", "0")


def test_a_study_becomes_a_parent_run_with_a_nested_run_per_trial(folder, fresh_uri, tmp_path, capfd):
    uri = fresh_uri
    rows = [
        row("t1"),
        row("t2", "stopped"),
        row("t3", "failed", error="OSError: no route to https://me:hunter2@example.org"),
        row("t4", "diverged"),
        row("t5", "unfinished"),
        *(
            row(f"t{n}") | {"stage": "confirm", "arm": "core", "seed": n, "test/f1": n / 10}
            for n in range(6, 11)
        ),
    ]
    write_folder(folder, rows)
    assert mirrored(uri, folder) == []
    assert capfd.readouterr() == ("", "")

    arms: dict[str, Any] = {}
    parent, nested = runs(uri, arms)
    assert (parent.info.run_name, parent.info.status) == ("minilm-cola", "KILLED"), "t5 never ended"
    assert {
        "request/metric": "f1",
        "environment/backbone/name": "minilm",
        "request/own/address": "ray://***@head:1",
        "request/own/hub_token": "***",
    }.items() <= parent.data.params.items()
    assert {
        "adalayers.study": "study-1",
        "runs/analyses": "2",
        "trials/search/unfinished": "1",
        "mlflow.source.name": "studies/alpha_lambda.py",
        "mlflow.source.git.commit": "c0ffee",
    }.items() <= parent.data.tags.items()
    assert "see https://example.org" in parent.data.tags["mlflow.note.content"]
    assert parent.data.metrics == {}, "counts would be drawn as charts"

    (core,) = arms.values()
    assert (core.info.run_name, core.info.status) == ("core", "FINISHED")
    low, high = (pytest.approx(value, abs=1e-4) for value in (0.6037, 0.9963))
    mean = {"test/f1": pytest.approx(0.8), "test/f1 low": low, "test/f1 high": high, "n": 5}
    assert core.data.metrics == mean
    data = {"backbone": "minilm", "dataset": "cola", "examples": "8"}
    assert core.data.params == {"alpha": "4", "mix": "learned", "arm": "core", **data}
    view = experiment_tags(uri)["mlflow.sharedViewState.study-1"]
    assert {"metrics.`test/f1 low`", "metrics.`n`"} <= set(json.loads(view)["selectedColumns"])

    ended = {"t2": "KILLED", "t3": "FAILED", "t4": "FAILED"}
    ended |= dict.fromkeys(("t1", *(f"t{n}" for n in range(6, 11))), "FINISHED")
    assert {name: run.info.status for name, run in nested.items()} == ended
    first, confirmed = nested["t1"], nested["t6"]
    own = {"alpha": "4", "mix": "learned", "seed": "3", "stage": "search", "parameters": "100"}
    own |= {"seconds": "8", "epochs": "2", "best_epoch": "1", "cost/training": "1.5"}
    assert first.data.params == data | own
    assert (first.info.run_name, confirmed.info.run_name) == ("search t1", "core seed 006")
    assert mlflow_values.in_symbols("k=8 entropy_weight=0", STUDY) == "k=8 λ=0"
    curves = {
        "train/lr": 5e-4,
        "train/loss": 0.9,
        "val/f1": 0.5,
        "weights/weight_01": 0.125,
    }  # the last finite
    assert first.data.metrics == {
        "val/f1": 0.75,
        "val/f1/ä_b": 0.5,  # as MLflow takes names
        "weights/entropy": 0.5,
        "weights/live_layers": 7,
        **{f"training/{name}": value for name, value in curves.items()},
    }
    assert points(uri, first, "training/weights/weight_01") == [(10, 0.25), (20, 0.125)]
    assert first.info.end_time - first.info.start_time == 8000
    assert {"adalayers.trial_id": "t1", "status": "completed"}.items() <= first.data.tags.items()
    assert "error" not in first.data.tags
    assert nested["t3"].data.tags["error"] == "OSError: no route to https://***@example.org"
    assert confirmed.data.params["arm"] == confirmed.data.tags["arm"] == "core"
    assert confirmed.data.metrics["test/f1"] == 0.6
    assert min(confirmed.data.metrics) == "test/f1", "charts come in this order"
    assert core.data.tags["mlflow.runColor"] == confirmed.data.tags["mlflow.runColor"] == "#0072B2"
    assert "mlflow.runColor" not in first.data.tags

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
    assert mirrored(uri, folder) == []
    before, nested = runs(uri)
    assert before.info.status == "FINISHED"
    kept = nested["t1"].info.run_id

    more = replace(STUDY, request=replace(STUDY.request, trials=8))
    write_folder(folder, [row("t1"), row("t2"), row("t3")], more)  # t2 failed and was tried again
    assert mirrored(uri, folder) == []

    parent, nested = runs(uri)
    assert parent.info.run_id == before.info.run_id
    assert parent.data.params["request/trials"] == "4"
    assert parent.data.tags["request/trials"] == "8"
    assert nested["t1"].info.run_id == kept
    assert {run.info.status for run in nested.values()} == {"FINISHED"}
    assert points(uri, nested["t2"], "training/val/f1") == [(10, 0.75), (20, 0.5)]
    assert sync(folder, uri) == 0


def test_while_trials_run_those_that_have_ended_are_written(folder, uri, monkeypatch):
    """By a process that died, which also left a trial half written; the next one writes that from its start."""
    from mlflow import MlflowClient

    write_folder(folder, [row("t1")])
    assert mlflow_session.Session(uri, **NAMES).mirror(folder, last=False) == 1
    parent, nested = runs(uri)
    assert (parent.info.status, [*nested]) == ("RUNNING", ["t1"])
    half = MlflowClient(tracking_uri=uri)
    half.update_run(nested["t1"].info.run_id, status="RUNNING")

    assert sync(folder, uri) == 1
    after, again = runs(uri)
    assert after.info.run_id == parent.info.run_id
    assert after.info.status == again["t1"].info.status == "FINISHED"
    assert again["t1"].info.run_id != nested["t1"].info.run_id


def test_sync_survives_missing_history_and_names_a_folder_that_is_none(folder, uri):
    write_folder(folder, [row("t1")])
    folder.delete("history.parquet")
    folder.delete("best")
    folder.delete("figures")
    assert sync(folder, uri) == 1
    assert runs(uri)[1]["t1"].data.metrics["val/f1"] == 0.75
    with pytest.raises(BadInput, match=r"found no study\.json"):
        sync(folder.child("none"), uri)
    with pytest.raises(BadInput, match="--tracking-uri"):
        sync(folder, "none")


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ("http://u:hunter2@[::1", "Invalid IPv6 URL"),
        ("sqlite://", "gone with the process"),
        ("sqlite:///", "gone with the process"),
        ("sqlite:///:memory:", "gone with the process"),
        ("sqlite:///{folder}", "a folder; give --tracking-uri"),
        ("./mlruns", "`mlflow migrate-filestore`"),
        ("file:///{folder}", "where MLFLOW_ALLOW_FILE_STORE=true"),
    ],
)
def test_what_is_no_place_for_runs_is_refused(bad, said, folder, tmp_path):
    write_folder(folder, [row("t1")])
    with pytest.raises(BadInput, match=said) as refused:
        sync(folder, bad.format(folder=tmp_path))
    assert "hunter2" not in str(refused.value)


def test_of_studies_that_begin_at_once_one_makes_the_tables(tmp_path):
    database = tmp_path / "mlflow.db"
    open_ = threading.Thread(target=lambda: mlflow_session.Session(f"sqlite:///{database}", **NAMES))
    with own_lock(tmp_path / ".mlflow.db.lock", timeout=0):
        open_.start()
        time.sleep(2)
        assert not database.exists()
    open_.join(60)
    assert database.exists()


def test_a_link_in_the_place_of_the_lock_is_not_followed(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / ".mlflow.db.lock").symlink_to(tmp_path / "notes.txt")
    with pytest.raises(BadInput, match="it is a link; remove it"):
        mlflow_session.Session(f"sqlite:///{tmp_path}/mlflow.db", **NAMES)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_user_s_own_active_run_is_left_alone(folder, uri, tmp_path, monkeypatch):
    import mlflow

    before = mlflow.get_tracking_uri()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", before)  # set_tracking_uri changes it, for other tests too
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/theirs.db")
    try:
        with mlflow.start_run() as theirs:
            write_folder(folder, [row("t1")])
            assert mirrored(uri, folder) == []
            active = mlflow.active_run()
            assert active is not None
            assert active.info.run_id == theirs.info.run_id
        assert mlflow.get_run(theirs.info.run_id).data.metrics == {}
    finally:
        mlflow.set_tracking_uri(before)
    assert sorted(runs(uri)[1]) == ["t1"]


def test_long_histories_are_thinned_and_long_batches_split(folder, uri):
    steps = np.arange(5000)
    long = pd.DataFrame({"trial_id": "t1", "step": steps, "lr": 1e-3, "val/f1": np.nan})
    long.loc[[1000, 4999], "val/f1"] = [0.25, 0.5]
    for layer in range(12):
        long[f"mix/weight_{layer:02}"] = steps / 5000
    wide = {f"config/h{n:03}": "x" * 1000 for n in range(230)}
    write_folder(folder, [row("t1")])
    write_trials(folder, [row("t1") | wide])
    folder.write_parquet("history.parquet", pd.concat([long, long.tail(1)]))  # one step evaluated twice
    assert sync(folder, uri) == 1
    _, nested = runs(uri)
    weights = points(uri, nested["t1"], "training/weights/weight_11")
    assert len(weights) <= mlflow_values.SERIES_POINTS
    assert (weights[0][0], weights[-1][0]) == (0, 4999)
    assert set(points(uri, nested["t1"], "training/val/f1")) == {(1000, 0.25), (4999, 0.5)}
    assert nested["t1"].data.params["h229"] == "x" * 500


def test_a_dead_server_neither_stops_nor_slows_the_study(closed, folder, uri, capfd):
    write_folder(folder, [row("t1"), row("t2")])
    dead = f"http://me:hunter2@{closed}/?token=swordfish"
    mirror = Mirror(dead, folder, **NAMES)
    mirror.check()
    began = time.monotonic()
    mirror.changed()
    assert time.monotonic() - began < 0.2
    (sentence,) = mirror.finish(timeout=20)
    assert time.monotonic() - began < 20
    assert "could not be written (ConnectionRefusedError" in sentence
    assert f"`adalayers sync {folder.uri}` writes what is missing" in sentence
    assert "hunter2" not in sentence
    assert sync(folder, uri) == 2
    said = "".join(capfd.readouterr())
    assert "the study goes on without it" in said
    assert "hunter2" not in said
    assert "swordfish" not in said

    with pytest.raises(BadInput) as caught:
        sync(folder, dead)
    assert "Connection refused" in str(caught.value).splitlines()[0]
    assert "hunter2" not in str(caught.value)


def test_a_server_that_never_answers_is_given_up_in_time(silent, folder):
    import mlflow  # noqa: F401  the import's own seconds are not under test

    write_folder(folder, [row("t1")])
    began = time.monotonic()
    (sentence,) = mirrored(f"http://{silent}", folder, timeout=3)
    assert time.monotonic() - began < 4
    assert "(no answer within 3 s): the study is not wholly tracked" in sentence


def test_what_failed_is_kept_and_written_when_the_server_is_back(folder, uri, monkeypatch):
    write_folder(folder, [row("t1")])
    open_session, attempts, failed = mlflow_session.Session, [], threading.Event()

    def session(*args: Any, **kwargs: Any) -> mlflow_session.Session:
        attempts.append(time.monotonic())
        if len(attempts) == 1:
            failed.set()
            raise ConnectionRefusedError("down")
        return open_session(*args, **kwargs)

    monkeypatch.setattr(tracking, "Session", session)
    mirror = Mirror(uri, folder, **NAMES)
    mirror.changed()
    assert failed.wait(10)
    mirror.changed()
    time.sleep(0.3)
    assert len(attempts) == 1, "a server that failed is left alone"
    assert mirror.finish() == []
    assert len(attempts) == 2
    assert sorted(runs(uri)[1]) == ["t1"]


def test_a_trial_that_is_refused_does_not_hold_up_the_others(folder, uri, monkeypatch):
    write = mlflow_session.Session._write

    def picky(session: mlflow_session.Session, row: dict[str, Any], history: pd.DataFrame) -> None:
        if row["trial_id"] == "t1":
            raise ValueError("no such thing")
        write(session, row, history)

    monkeypatch.setattr(mlflow_session.Session, "_write", picky)
    write_folder(folder, [row("t1"), row("t2")])
    (sentence,) = mirrored(uri, folder)
    assert "(ValueError: no such thing): the study is not wholly tracked" in sentence
    parent, trials = runs(uri)
    assert (parent.info.status, sorted(trials)) == ("FINISHED", ["t2"])


@pytest.mark.parametrize("name", ["what?now=1", "run%41", "a#1", "plain"])
def test_the_default_is_beside_the_results_unless_the_environment_says(name, tmp_path, monkeypatch):
    """Where MLflow would not read the path as another one."""
    if name == "plain":
        assert default_uri(Folder(tmp_path / name)) == f"sqlite:///{tmp_path.resolve()}/plain/mlflow.db"
    else:
        with pytest.raises(BadInput, match=r"MLflow's database at a path without .*; name another --output"):
            default_uri(Folder(tmp_path / name))
    remote = Folder(tmp_path / name)
    remote.is_local = False
    assert default_uri(remote) == "none"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://tracking:5000")
    assert {default_uri(Folder(tmp_path / name)), default_uri(remote)} == {"http://tracking:5000"}


def test_sync_of_damaged_files_is_said_and_never_a_traceback(folder, uri, capsys):
    write_folder(folder, [row("t1")])
    folder.write_bytes("history.parquet", b"PAR1 cut off")
    assert sync(folder, uri) == 1
    assert "runs go without their curves" in capsys.readouterr().err
    folder.write_bytes("study.json", b'{"id": ')
    with pytest.raises(BadInput, match=r"could not read study\.json"):
        sync(folder, uri)


def test_a_file_store_that_the_user_allows_is_taken(monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    check_uri("./mlruns")


def mlflow_command(said: str) -> None:
    """Run the command of MLflow that an error names between backticks."""
    words = shlex.split(said.split("`")[1])
    own = dict(word.split("=", 1) for word in words if word.startswith("MLFLOW_"))
    assert words[len(own)] == "mlflow"
    done = subprocess.run(
        [sys.executable, "-m", *words[len(own) :]],
        env={**os.environ, **own},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_deleted_experiment_is_told_before_the_first_trial_and_the_advice_works(folder, uri, monkeypatch):
    from mlflow import MlflowClient

    Mirror(uri, folder, **NAMES).check()
    write_folder(folder, [row("t1")])
    client = MlflowClient(tracking_uri=uri)
    client.delete_experiment(client.get_experiment_by_name("alpha_lambda").experiment_id)
    with pytest.raises(BadInput, match="its experiment 'alpha_lambda' was deleted") as refused:
        Mirror(uri, folder, **NAMES).check()
    with pytest.raises(BadInput, match="experiments restore"):
        sync(folder, uri)
    mlflow_command(str(refused.value))
    assert sync(folder, uri) == 1


def stamp(uri: str, version: str) -> None:
    """Write the version of its schema into a database of MLflow's."""
    with contextlib.closing(sqlite3.connect(uri.removeprefix("sqlite:///"))) as database, database:
        database.execute("UPDATE alembic_version SET version_num = ?", (version,))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("older", "copy of the database, then `mlflow db upgrade 'sqlite:"),
        ("0" * 12, "install the MLflow that wrote it: .* does not know its version"),
        (b"no database " * 1000, "see that it is a database of MLflow's which can be written"),
    ],
    ids=["older", "newer", "none"],
)
def test_a_database_that_this_mlflow_cannot_write_is_told_first(content, said, folder, uri):
    from alembic.script import ScriptDirectory
    from mlflow.store.db.utils import _get_alembic_config

    if isinstance(content, bytes):
        Path(uri.removeprefix("sqlite:///")).write_bytes(content)
    else:
        head = ScriptDirectory.from_config(_get_alembic_config(uri)).get_revision("head")
        stamp(uri, head.down_revision if content == "older" else content)
    with pytest.raises(
        BadInput, match=rf"{said}.*, or give another --tracking-uri \(none turns MLflow off\)"
    ):
        Mirror(uri, folder, **NAMES).check()


def test_importing_the_module_and_tracking_nothing_import_no_mlflow():
    code = (
        "import sys, adalayers.tracking.mirror as t; from adalayers.storage.folder import Folder\n"
        "m = t.Mirror('none', Folder('x'), experiment='e', run_name='r', study_key='k')\n"
        "m.changed(); m.finish()\n"
        "assert not {'mlflow', 'torch', 'ray', 'sqlalchemy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
