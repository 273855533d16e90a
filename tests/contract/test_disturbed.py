"""Studies that are ended, killed and refused, that fail, or that cannot reach their MLflow server."""

import contextlib
import json
import shutil
import signal
import tempfile
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pandas as pd
import psutil
import pytest
from ray import tune

from adalayers.results.files import read_trials
from adalayers.storage.folder import Folder
from tests.helpers.small_study import WITHOUT_FIGURES, Study, children, waited
from tests.helpers.studying import RAYS_OWN, SCRIPT, SMALL, Ran, flags, run_here

pytestmark = [*RAYS_OWN, pytest.mark.usefixtures("ray_here")]

TIMEOUT = 300
UNREACHABLE = "http://user:hunter2@127.0.0.1:9"
SIZE = (*SMALL, "--seeds", "2")
"""Of the study that is disturbed, and of that it is compared with: ten trials."""
DISTURBED = (*SIZE, "--features", "disk")


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
        ran = run_here(argv, report=False)
    return TwoCases(output / "alpha_lambda", ran, len(starts))


def rows(folder):
    return read_trials(Folder(folder / "tiny-echo"))


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
        done = rows(folder.parent).query("status == 'completed'").to_dict("records")
        return {row["trial_id"]: row for row in done}

    def left(ran):
        return Ended(ran, completed(), json.loads((folder / "study.json").read_text())["runs"])

    def run():
        return run_here(flags(world, study.output, *DISTURBED), report=False)

    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # tests may run under nohup
    try:
        process = study.start(at=(WITHOUT_FIGURES,))
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

    process = study.start(at=(WITHOUT_FIGURES,))
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
        rows(folder)
        .query("stage == 'confirm' and not arm.str.startswith('search-best')", engine="python")
        .drop(columns="seconds")
        .sort_values("trial_id", ignore_index=True)
        for folder in (two_cases.folder, disturbed.folder.parent)
    )
    pd.testing.assert_frame_equal(whole, parts, check_exact=True)


def test_a_trial_whose_worker_is_killed_is_run_again(disturbed):
    assert disturbed.finished.ran.code == 0, disturbed.finished.ran.err
    assert "Traceback" not in disturbed.finished.ran.err
    assert set(rows(disturbed.folder.parent)["status"]) <= {"completed", "stopped"}


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
    trials = rows(output / "alpha_lambda")
    assert set(trials["status"]) == {"diverged"}
    assert set(trials["seed"]) == {6}
    assert trials["error"].str.contains("the training loss is").all()
    assert "error: all trials failed; the first one: the training loss is" in ran.err
    assert (output / "alpha_lambda" / "tiny-echo" / "report.md").exists()


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
