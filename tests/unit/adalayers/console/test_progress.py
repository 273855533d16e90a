"""Lines about a running study: one that refreshes on a terminal, a line for each trial where there is none."""

import io
import logging
import sys
import time

import pytest

from adalayers.console.progress import TrialProgress, log_to_stderr
from adalayers.results.trial_row import TrialRow


class Terminal(io.StringIO):
    def isatty(self):
        return True


def row(number, seed, status, **found):
    return TrialRow(trial_id=f"t{number}", stage="confirm", arm="mix", seed=seed, status=status, found=found)


@pytest.fixture
def lines_of(monkeypatch):
    package = logging.getLogger("adalayers")
    monkeypatch.setattr(package, "handlers", [])
    monkeypatch.setattr(package, "propagate", True)
    monkeypatch.setenv("COLUMNS", "60")

    def lines_of(stream):
        monkeypatch.setattr(sys, "stderr", stream)
        log_to_stderr()
        left = iter((3, 2, 1, 0))
        progress = TrialProgress("accuracy", lambda: next(left), lambda: 4)
        for number, status in enumerate(("completed", "failed", "completed", "completed"), start=1):
            progress.ended(row(number, number, status, seconds=1.0))
        logging.getLogger("adalayers.any").info("finished")
        return stream.getvalue()

    return lines_of


def test_a_terminal_has_one_line_that_refreshes_and_failures_stay(lines_of):
    written = lines_of(Terminal())
    first, failed, *rest = written.split("\n")
    assert first.startswith("\r\x1b[K[1/4] about 3 s left | mix seed 1:")
    assert len(first) <= len("\r\x1b[K") + 59
    assert failed.startswith("[2/4] about ")
    assert failed.endswith("mix seed 2: failed (t2)")
    assert rest[0].count("\r\x1b[K") == 2
    assert rest[1:] == ["finished", ""]


def test_a_file_has_a_line_for_each_trial(lines_of):
    written = lines_of(io.StringIO())
    assert "\r" not in written
    assert [line[:5] for line in written.splitlines()] == ["[1/4]", "[2/4]", "[3/4]", "[4/4]", "finis"]


def test_a_group_that_runs_says_in_which_epoch_it_is_and_how_long_the_rest_takes(lines_of, monkeypatch):
    """After 100 s 64 of 128 trials are in epoch 8 of 32, a quarter of all their epochs: 7 times as long remains."""
    stream, now = io.StringIO(), [1000.0]
    lines_of(stream)
    stream.truncate(0)
    stream.seek(0)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    left = [128]
    progress = TrialProgress("accuracy", lambda: left[0], lambda: 128)

    def at(seconds, epoch, program="g"):
        now[0] = 1000.0 + seconds
        progress.at(program, 64, epoch, 32, seconds)

    at(12.5, 1)
    at(20, 1.6)  # a line was said only just now
    at(100, 8)
    progress.at("g", 0)
    left[0] = 64
    for number in range(64):
        progress.ended(row(number, 1, "failed", epochs=24))
    at(400, 12, "h")
    lines = stream.getvalue().splitlines()
    assert lines[0] == "[0/128] about 13 min left | 64 trials are in epoch 1 of at most 32"
    assert lines[1] == "[0/128] about 12 min left | 64 trials are in epoch 8 of at most 32"
    # 64 trials and three eighths of the others took 400 s.
    assert lines[-1] == "[64/128] about 3 min left | 64 trials are in epoch 12 of at most 32"
    assert len(lines) == 2 + 64 + 1
