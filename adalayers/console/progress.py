"""Lines about a running study: how far, how fast, how long still."""

from __future__ import annotations

import logging
import shutil
import sys
import time
from typing import Any, TextIO

from adalayers.escaping import plain

logger = logging.getLogger(__name__)

EVERY_SECONDS = 2.0


class _ToStderr(logging.StreamHandler[TextIO]):
    """Writes to what `sys.stderr` is at the time, as the handler of last resort of `logging` does, nothing but text.

    On a terminal a record with the attribute `refreshes` takes the place of the one before it, in one line.
    """

    _line_is_open = False

    def format(self, record: logging.LogRecord) -> str:
        text = plain(super().format(record))
        if not self._refreshes(record):
            return f"\n{text}" if self._line_is_open else text
        return f"\r\x1b[K{text[: shutil.get_terminal_size().columns - 1]}"

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        self.terminator = "" if self._refreshes(record) else "\n"
        super().emit(record)
        self._line_is_open = self._refreshes(record)

    def _refreshes(self, record: logging.LogRecord) -> bool:
        return getattr(record, "refreshes", False) and self.stream.isatty()


def log_to_stderr() -> None:
    """Show what this package logs as plain lines on stderr; for command lines, not for users of the library."""
    package = logging.getLogger("adalayers")
    package.handlers = [_ToStderr()]
    package.propagate = False
    package.setLevel(logging.INFO)


def show(text: object) -> None:
    """Print a result to stdout, nothing but text."""
    print(plain(text), flush=True)


def duration(seconds: float) -> str:
    """Return a duration as people say it: "45 s", "12 min", "3.5 h"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def size(n: float) -> str:
    """Return a number of bytes as people say it: "25.48 GB", "3.0 MB", "12.0 kB", "10 bytes"."""
    for factor, unit in ((1e6, "MB"), (1e3, "kB")):
        if factor <= n < 1e9:
            return f"{n / factor:.1f} {unit}"
    return f"{n / 1e9:.2f} GB" if n >= 1e9 else f"{n:.0f} bytes"


class Rate:
    """Progress of one long step, such as computing hidden states; prints at most every few seconds."""

    def __init__(self, what: str, unit: str):
        self.what, self.unit = what, unit
        self._began = self._said = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if not done:  # there is no rate yet
            return
        if now - self._said < EVERY_SECONDS and not (done == total and self._said > self._began):
            return
        self._said = now
        rate = done / (now - self._began)
        logger.info(
            f"{self.what}: {done}/{total} {self.unit}, {rate:.0f}/s, {duration((total - done) / rate)} left",
            extra={"refreshes": True},
        )


class TrialProgress:
    """Progress of a study's trials: one line per ended trial, with the rate and the time left.

    The clock starts with the first trial's training: what Ray takes to start says nothing about the rest.
    `best` is the best validation score of earlier runs.
    """

    def __init__(self, metric: str, best: float | None = None):
        self.metric = metric
        self._began: float | None = None
        self._ended = 0
        self._best = best

    def ended(self, row: dict[str, Any], remaining: int, total: int) -> None:
        """Say how a trial ended and what is left: a line each, or, on a terminal, one that refreshes."""
        self._ended += 1
        now = time.monotonic()
        if self._began is None:
            self._began = now - float(row.get("seconds") or 1.0)
        elapsed = now - self._began
        score = row.get(f"val/{self.metric}")
        if score is not None and row["status"] == "completed":
            self._best = score if self._best is None else max(self._best, score)
        named = "" if score is None else f" val/{self.metric} {score:.4f}"
        best = "" if self._best is None else f", best {self._best:.4f}"
        left = duration(remaining * elapsed / self._ended)
        logger.info(
            f"[{total - remaining}/{total}] about {left} left, {60 * self._ended / elapsed:.1f} trials/min | "
            f"{row['arm'] or 'search'} seed {row['seed']}: {row['status']}{named}{best} ({row['trial_id']})",
            extra={"refreshes": row["status"] in ("completed", "stopped")},
        )
