"""From the command line to a run: what ends it before the first trial, and the command that goes on with it."""

import sys
import time
from types import SimpleNamespace
from unittest import mock

import pytest

from adalayers.command import cases, run
from adalayers.command.cases import IN_A_JOB, _check_output
from adalayers.command.flags import parse
from adalayers.command.main import main
from adalayers.command.run import _rates, _TimeIsUp
from adalayers.console.interrupts import INTERRUPTED
from adalayers.request import Resources
from adalayers.storage.folder import Folder
from tests.helpers.planning import BARE as STUDY
from tests.helpers.refusing import refused

ARGV = ["--tracking-uri", "none", "--fresh", "--seeds", "3"]


@pytest.fixture
def earlier(tmp_path, monkeypatch):
    """A study that is there, and one that is interrupted as it runs."""
    folder = Folder(tmp_path / "results")
    folder.write_json("study.json", {})
    of_study = SimpleNamespace(folder=folder)

    def planned(study, flags, hold):
        of_study.command = flags.study.command
        return [of_study]

    monkeypatch.setattr(cases, "cases", planned)
    monkeypatch.setattr(run, "run", lambda *given, **more: INTERRUPTED)
    return of_study


def test_the_command_that_continues_a_fresh_study_sets_nothing_aside(earlier, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["../my studies/made.py", *ARGV])
    assert main(STUDY) == 130
    assert not earlier.folder.exists()
    assert earlier.command == "python '../my studies/made.py' --tracking-uri none --seeds 3"
    assert capsys.readouterr().err.splitlines()[-1] == f"interrupted; continue with: {earlier.command}"


def test_before_that_the_command_is_the_same(earlier, monkeypatch, capsys):
    monkeypatch.setattr(cases, "cases", mock.Mock(side_effect=KeyboardInterrupt))
    assert main(STUDY, argv=ARGV) == 130
    assert earlier.folder.exists()
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.endswith("continue with: python studies/made.py --tracking-uri none --fresh --seeds 3")


@pytest.mark.parametrize(
    ("settings", "machines", "fits"),
    [
        ({}, [(16, 1)], 1),
        ({"max_concurrent": 8}, [(2, 0)], 2),
        ({"max_concurrent": 8, "gpus_per_trial": 0.0625}, [(16, 1)], 8),
        ({"gpus_per_trial": 0.25}, [(16, 1)], 4),
        ({"cpus_per_trial": 0.5}, [(2, 0)], 4),
        ({"gpus_per_trial": 0.4}, [(16, 2)], 4),  # a part is of one GPU
        ({"cpus_per_trial": 2}, [(3, 0)] * 3, 3),  # a trial is on one machine
        ({}, [(4, 0), (16, 2)], 2),  # where there are GPUs, trials take one
    ],
)
def test_as_many_trials_run_at_a_time_as_all_resources_allow(settings, machines, fits):
    assert Resources(**settings).require_room(machines) == fits


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"cpus_per_trial": 16, "gpus_per_trial": 0}, "--cpus-per-trial of at most 8, .* has, got 16"),
        ({"gpus_per_trial": 2}, "--gpus-per-trial of at most 1, as many as one machine has, got 2"),
        ({"cpus_per_trial": 6, "gpus_per_trial": 1}, "of at most 4, as many as one machine with enough GPUs"),
    ],
)
def test_a_trial_that_is_larger_than_every_machine_is_refused(settings, said):
    refused(said, lambda: Resources(**settings).require_room([(8, 0), (8, 0), (4, 1)]))


def test_a_cluster_may_have_more_cpus_than_this_machine(monkeypatch):
    monkeypatch.setattr(cases, "check_address", lambda address: None)
    monkeypatch.setattr(cases.sources, "canonical", mock.Mock(side_effect=InterruptedError("reached")))
    flags = parse(STUDY, ["--cpus-per-trial", "4096", "--tracking-uri", "none"])
    refused("--cpus-per-trial of at most", cases.cases, STUDY, flags)
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:6379")
    with pytest.raises(InterruptedError):
        cases.cases(STUDY, flags)


def test_computing_hidden_states_ends_when_the_time_is_up_but_not_at_its_very_end():
    on_progress = _rates(time.monotonic() - 1)
    with pytest.raises(_TimeIsUp):
        on_progress("train", 1, 2)
    on_progress("train", 2, 2)
    _rates(time.monotonic() + 60)("train", 1, 2)


def test_a_submitted_job_writes_nowhere_in_its_working_folder(tmp_path, monkeypatch):
    _check_output("results")
    monkeypatch.setenv(IN_A_JOB, "{}")
    refused("wanted an absolute --output or a URI in a job", _check_output, "results")
    _check_output(str(tmp_path))
    _check_output(f"file://{tmp_path}")
