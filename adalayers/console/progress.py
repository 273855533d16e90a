"""Lines about a running study: how far, how fast, how long still."""

from __future__ import annotations

import logging
import shutil
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from adalayers.escaping import plain

if TYPE_CHECKING:
    from adalayers.results.trial_row import TrialRow

logger = logging.getLogger(__name__)

EVERY_SECONDS = 2.0
LINE_SECONDS, LINE_SHARE = 10.0, 0.02
"""Between two lines about trials that run: at least so long, and so much of all the time so far."""


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
    """Progress of one long step over sequences, such as computing hidden states; says so at most every few seconds."""

    def __init__(self, what: str):
        self.what = what
        self._began = self._said = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        soon = now - self._said < EVERY_SECONDS and not (done == total and self._said > self._began)
        if soon or not done:  # there is no rate yet
            return
        self._said = now
        rate = done / (now - self._began)
        logger.info(
            f"{self.what}: {done}/{total} sequences, {rate:.0f}/s, {duration((total - done) / rate)} left",
            extra={"refreshes": True},
        )


_Count = Callable[[], int]


class TrialProgress:
    """Progress of a study's trials: a line per ended trial, and now and then one while they run.

    The clock starts with the first trial's training: what Ray takes to start says nothing about the rest. A trial that
    runs counts as the share of its epochs that has passed.

    Args:
        remaining: Counts the trials that have not ended.
        total: Counts all.
        best: The best validation score of earlier runs.
    """

    def __init__(self, metric: str, remaining: _Count, total: _Count, best: float | None = None):
        self.metric, self._best = metric, best
        self._remaining, self._total = remaining, total
        self._began: float | None = None
        self._said, self._ended = time.monotonic(), 0
        self._running: dict[str, tuple[int, float, int]] = {}

    def at(
        self, program: str, trials: int, epoch: float = 0.0, epochs: int = 1, seconds: float = 0.0
    ) -> None:
        """Note at which of their epochs a program's trials are, `seconds` after they began; with none it has ended."""
        now = time.monotonic()
        self._running.pop(program, None)
        if not trials:
            return
        self._running[program] = trials, epoch, epochs
        self._began = now - seconds if self._began is None else self._began
        if now - self._said >= max(LINE_SECONDS, LINE_SHARE * (now - self._began)):
            counts, at, most = zip(*self._running.values(), strict=True)
            where = " and ".join(sorted({f"{epoch:.0f}" for epoch in at}, key=float))
            what = f"{sum(counts)} trials are in epoch {where} of at most {max(most)}"
            self._say(what, refreshes=True)

    def ended(self, row: TrialRow) -> None:
        """Say how a trial ended and what is left: a line each, or, on a terminal, one that refreshes."""
        self._ended += 1
        if self._began is None:
            self._began = time.monotonic() - float(row.found.get("seconds") or 1.0)
        score = row.score(self.metric)
        if score is not None and row.status == "completed":
            self._best = score if self._best is None else max(self._best, score)
        named = "" if score is None else f" val/{self.metric} {score:.4f}"
        best = "" if self._best is None else f", best {self._best:.4f}"
        what = f"{row.arm or 'search'} seed {row.seed}: {row.status}{named}{best} ({row.trial_id})"
        self._say(what, refreshes=row.status in ("completed", "stopped"))

    def _say(self, what: str, *, refreshes: bool) -> None:
        now = self._said = time.monotonic()
        remaining, total = self._remaining(), self._total()
        passed = sum(n * min(1.0, epoch / epochs) for n, epoch, epochs in self._running.values())
        each = (now - (self._began or now)) / max(1e-9, self._ended + passed)
        left = duration(max(0.0, remaining - passed) * each)
        logger.info(
            f"[{total - remaining}/{total}] about {left} left | {what}", extra={"refreshes": refreshes}
        )
