"""Lines about a running study: one that refreshes on a terminal, a line for each trial where there is none."""

import io
import logging
import sys

import pytest

from adalayers.console.progress import TrialProgress, log_to_stderr


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def lines_of(monkeypatch):
    package = logging.getLogger("adalayers")
    monkeypatch.setattr(package, "handlers", [])
    monkeypatch.setattr(package, "propagate", True)
    monkeypatch.setenv("COLUMNS", "60")

    def lines_of(stream):
        monkeypatch.setattr(sys, "stderr", stream)
        log_to_stderr()
        progress = TrialProgress("accuracy")
        for number, status in enumerate(("completed", "failed", "completed", "completed"), start=1):
            row = {"trial_id": f"t{number}", "arm": "mix", "seed": number, "status": status, "seconds": 1.0}
            progress.ended(row, remaining=4 - number, total=4)
        logging.getLogger("adalayers.any").info("finished")
        return stream.getvalue()

    return lines_of


def test_a_terminal_has_one_line_that_refreshes_and_failures_stay(lines_of):
    written = lines_of(Terminal())
    first, failed, *rest = written.split("\n")
    assert first.startswith("\r\x1b[K[1/4] about 3 s left, 60.0 trials/min | mix seed 1:")
    assert len(first) <= len("\r\x1b[K") + 59
    assert failed.startswith("[2/4] about ")
    assert failed.endswith("mix seed 2: failed (t2)")
    assert rest[0].count("\r\x1b[K") == 2
    assert rest[1:] == ["finished", ""]


def test_a_file_has_a_line_for_each_trial(lines_of):
    written = lines_of(io.StringIO())
    assert "\r" not in written
    assert [line[:5] for line in written.splitlines()] == ["[1/4]", "[2/4]", "[3/4]", "[4/4]", "finis"]
