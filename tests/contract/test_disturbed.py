"""Studies that are ended, killed and refused, that fail, or that cannot reach their MLflow server."""

import contextlib
import gc
import itertools
import json
import os
import re
import shutil
import signal
import tempfile
import threading
import time
from pathlib import Path
from unittest import mock

import pandas as pd
import pytest
from ray import tune

from adalayers.results.files import read_trials
from adalayers.storage.folder import Folder
from tests.helpers.small_study import WITHOUT_FIGURES, Study, children, waited
from tests.helpers.studying import RAYS_OWN, SMALL, Ran, flags, run_here
from tests.helpers.trials_here import trials_here

pytestmark = RAYS_OWN

TIMEOUT = 300
UNREACHABLE = "http://user:hunter2@127.0.0.1:9"
SIZE = (*SMALL, "--seeds", "2")
"""Of the study that is disturbed, and of that it is compared with: ten trials."""
DISTURBED = (*SIZE, "--features", "disk")


@pytest.fixture(scope="module")
def two_cases(world, tmp_path_factory, ray_here):
    """A study of two datasets that cannot reach its MLflow server: its folder, how it ended, Ray sessions it took."""
    twin = Path(shutil.copytree(world["dataset"], tmp_path_factory.mktemp("twin") / "twin"))
    output = tmp_path_factory.mktemp("cases") / "results"
    argv = flags(world, output, *SIZE, "--features", "memory", "--tracking-uri", UNREACHABLE)
    argv[argv.index("--dataset") + 2 : argv.index("--dataset") + 2] = [str(twin)]
    with mock.patch.object(tune.Tuner, "fit", autospec=True, side_effect=tune.Tuner.fit) as fit:
        ran = run_here(argv, report=False)
    return output / "alpha_lambda", ran, fit.call_count


def rows(folder):
    return read_trials(Folder(folder / "tiny-echo"))


def completed(folder):
    done = rows(folder).query("status == 'completed'").to_dict("records")
    return {row["trial_id"]: row for row in done}


@pytest.fixture(scope="module")
def disturbed(world, ray_here):
    """A study that is ended by SIGTERM, then run by the user's own script, killed, and run to its end without Ray.

    Its folder, how each run ended, and the completed rows after each.
    """
    # A short path: Ray's sockets lie below it.
    with tempfile.TemporaryDirectory(prefix="d-", dir="/tmp", ignore_cleanup_errors=True) as root:
        study = Study(world, Path(root), "disturbed", DISTURBED)
        folder, ran, left = study.folder.path().parent, [], []
        for run in (terminated, killed, trials_here()(to_the_end)):
            ran.append(run(study, world))
            left.append(completed(folder))
        yield folder, ran, left


def to_the_end(study, world):
    return run_here(flags(world, study.output, *DISTURBED), report=False, code=None)


def terminated(study, world):
    """Send SIGTERM once a trial has ended."""
    over = threading.Event()

    def terminate():
        while not (study.ended() or over.is_set()):
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, lambda *_: None)  # of a study that has ended before
    sending = threading.Thread(target=terminate)
    sending.start()
    try:
        ran = to_the_end(study, world)
    finally:
        over.set()
        sending.join()
        signal.signal(signal.SIGTERM, before)
    gc.collect()  # Ray's actor goes with what knows of it: here Ray itself goes on
    assert json.loads(study.folder.read_bytes("study.json"))["runs"]["state"] == "interrupted"
    return ran


def killed(study, world):
    """Refuse a second driver, kill a worker, and once another trial has ended the run."""
    folder = study.folder.path().parent
    before, holder = len(completed(folder)), folder / ".tiny-echo.driver.json"
    process = study.start(at=(WITHOUT_FIGURES,))

    def holds():
        with contextlib.suppress(OSError, ValueError):  # it is written just now
            return json.loads(holder.read_text())["pid"] == process.pid

    assert waited(process, holds), study.said()
    refused = to_the_end(study, world)
    assert (refused.code, "Traceback" in refused.err) == (2, False), refused.err
    assert re.search(rf"process {process.pid} .*studies/alpha_lambda.py", refused.err), refused.err
    workers = []
    assert waited(process, lambda: workers.extend(children(process, "worker")) or workers), study.said()
    workers[0].kill()
    assert waited(process, lambda: len(completed(folder)) > before), study.said()
    process.kill()
    return Ran(process.wait(TIMEOUT), "", study.said())


def test_a_disturbed_study_goes_on_to_the_same_numbers(two_cases, disturbed):
    """Interrupted, killed, a worker killed, its hidden states on disk: its confirmed rows equal those of a study that
    was left alone, with hidden states in memory and another case beside it."""
    folder, (terminated, killed, finished), left = disturbed
    assert (terminated.code, killed.code, finished.code) == (130, -signal.SIGKILL, 0), finished.err
    assert "interrupted; continue with: python studies/alpha_lambda.py" in terminated.err.splitlines()[-1]
    assert "Traceback" not in terminated.err + finished.err
    assert len(left[0]) < len(left[1]) < len(left[2])
    for earlier, later in itertools.pairwise(left):
        for trial_id, row in earlier.items():
            assert all(pd.isna(v) or later[trial_id][k] == v for k, v in row.items())
    assert set(rows(folder)["status"]) <= {"completed", "stopped"}
    whole, parts = (
        rows(place)
        .query("stage == 'confirm' and not arm.str.startswith('search-best')", engine="python")
        .drop(columns="seconds")
        .sort_values("trial_id", ignore_index=True)
        for place in (two_cases[0], folder)
    )
    pd.testing.assert_frame_equal(whole, parts, check_exact=True)


def test_trials_that_fail_are_rows_and_all_failed_is_exit_1(world, tmp_path):
    """A rate at which every trial diverges; the study still ends with a report."""
    output = tmp_path / "results"
    with trials_here():
        argv = [*flags(world, output), *SMALL, "--trials", "0", "--seed", "5", "--set", "lr=1e30"]
        ran = run_here(argv, code=1)
    trials = rows(output / "alpha_lambda")
    assert (set(trials["status"]), set(trials["seed"])) == ({"diverged"}, {6})
    assert "error: all trials failed; the first one: the training loss is" in ran.err
    assert (output / "alpha_lambda" / "tiny-echo" / "report.md").exists()


def test_two_cases_run_in_one_ray_session_without_their_mlflow_server(two_cases):
    """A record and a search each, no case waits for the other to end, and a page over both."""
    folder, ran, sessions = two_cases
    assert sessions == 1, ran.err
    ids = []
    for name in ("tiny-echo", "tiny-twin"):
        trials = pd.read_csv(folder / name / "trials.csv")
        assert set(trials["status"]) <= {"completed", "stopped"}
        assert set(trials["stage"]) == {"search", "confirm"}
        ids.append(set(trials["trial_id"]))
        assert name in (folder / "report.md").read_text()
    # The same words under another name are the same data, and every case has its own rows.
    assert ids[0] == ids[1]
    shown = {path.name for path in folder.iterdir() if not path.name.startswith(".")}  # locks are hidden
    assert shown == {"tiny-echo", "tiny-twin", "report.md", "claims.json", "figures"}
    assert ran.out.splitlines()[-1] == str(folder / "report.md")
    assert "adalayers sync" in ran.err
    files = [path for path in folder.rglob("*") if path.suffix in {".json", ".md", ".csv"}]
    written = "".join(path.read_text(errors="replace") for path in files)
    assert "hunter2" not in written + ran.err + ran.out
