"""Running the cases of a study: what ends it before the first trial."""

import time

import pytest

from adalayers.command.cases import IN_A_JOB, _check_output
from adalayers.command.run import _rates, _TimeIsUp
from adalayers.errors import BadInput


def test_computing_hidden_states_ends_when_the_time_is_up_but_not_at_its_very_end():
    on_progress = _rates(time.monotonic() - 1)
    with pytest.raises(_TimeIsUp):
        on_progress("train", 1, 2)
    on_progress("train", 2, 2)
    _rates(time.monotonic() + 60)("train", 1, 2)


def test_a_submitted_job_writes_nowhere_in_its_working_folder(tmp_path, monkeypatch):
    _check_output("results")
    monkeypatch.setenv(IN_A_JOB, "{}")
    with pytest.raises(BadInput, match="wanted an absolute --output or a URI in a job"):
        _check_output("results")
    _check_output(str(tmp_path))
    _check_output(f"file://{tmp_path}")
