"""Signals: the first ends what runs in good order, as `KeyboardInterrupt`; the second quits at once."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
INTERRUPTED = 130
INSIST_SECONDS = 0.05
ANSWER = b"\nending in good order; once more ends at once\n"
AGAIN_SECONDS = 0.5
"""Signals closer to each other are one: `timeout` sends its own to the process, and again to its whole group."""


class Interrupts:
    """The signals that this process has had while it was `listening`.

    last_words: the last line on stderr of a process that quits at once
    """

    def __init__(self, last_words: str):
        self.last_words = last_words
        self._deferring = 0
        self.heard = self._due = False

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Take the signals over, in the main thread; elsewhere they stay as they are."""
        global _listening
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.getsignal(number) for number in SIGNALS}
        outer, _listening = _listening, self
        ignored = sys.unraisablehook

        def keep(lost: sys.UnraisableHookArgs) -> None:
            if lost.exc_type is KeyboardInterrupt:  # raised where Python only prints it, as after a fork
                self._due = True
            else:
                ignored(lost)

        sys.unraisablehook = keep
        try:
            with self._watching():
                self.listen()
                yield
        finally:
            _listening, sys.unraisablehook = outer, ignored
            for number, handler in before.items():
                signal.signal(number, handler or signal.SIG_DFL)
                # When all is written and said: with torch Python takes a second to leave.
                atexit.register(signal.signal, number, signal.SIG_IGN)

    def listen(self) -> None:
        """Take the signals over; `nohup` has SIGHUP ignored, which stays so."""
        for number in SIGNALS:
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._heard)

    @contextlib.contextmanager
    def insisting(self) -> Iterator[None]:
        """Take the signals over again and again: Ray takes SIGTERM as it starts, and resets it as it ends."""
        before = signal.signal(signal.SIGALRM, lambda number, frame: self.listen())
        signal.siginterrupt(signal.SIGALRM, False)
        signal.setitimer(signal.ITIMER_REAL, INSIST_SECONDS, INSIST_SECONDS)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            # One that is still on its way to another thread would end the process: ignoring it takes it back.
            signal.signal(signal.SIGALRM, signal.SIG_IGN)
            signal.signal(signal.SIGALRM, before or signal.SIG_DFL)
            self.listen()

    @contextlib.contextmanager
    def deferred(self) -> Iterator[None]:
        """Keep a signal waiting until the block has ended, so that what it writes is not half done."""
        self._deferring += 1
        try:
            yield
        finally:
            self._deferring -= 1
        self._raise_due()

    def quit(self) -> NoReturn:
        """End the process now, from any thread, in the words and with the exit code of one that was interrupted."""
        with contextlib.suppress(OSError):
            os.write(2, f"\n{self.last_words}\n".encode())
        os._exit(INTERRUPTED)

    def _heard(self, number: int, frame: FrameType | None) -> None:
        if not self.heard:  # a second one is for `_watch`
            self.heard = self._due = True
            self._raise_due()

    def _raise_due(self) -> None:
        if self._due and not self._deferring:
            self._due = False
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def _watching(self) -> Iterator[None]:
        """See a second signal in a thread of its own: the main thread may be in a library that is not interruptible."""
        read, write = os.pipe()
        os.set_blocking(write, False)
        before = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        thread = threading.Thread(target=self._watch, args=(read,), name="adalayers-signals", daemon=True)
        thread.start()
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
            os.write(write, b"\0")  # no signal's number; a child that was forked may hold the other end open
            thread.join()
            os.close(write)
            os.close(read)

    def _watch(self, read: int) -> None:
        first: float | None = None
        numbers = b""
        while 0 not in numbers:
            numbers = os.read(read, 64)
            if not any(number in SIGNALS for number in numbers):
                continue
            now = time.monotonic()
            if first is None:
                first = now
                with contextlib.suppress(OSError):  # the terminal is closed
                    os.write(2, ANSWER)
            elif now - first >= AGAIN_SECONDS:
                self.quit()


_listening: Interrupts | None = None


def insisting() -> contextlib.AbstractContextManager[None]:
    """Take the signals over again and again within the block; nothing where nothing listens."""
    return contextlib.nullcontext() if _listening is None else _listening.insisting()


def listening() -> Interrupts | None:
    """Return what listens now, if anything does."""
    return _listening


def raise_heard() -> None:
    """Raise `KeyboardInterrupt` where a signal has come: a library may have swallowed the first."""
    if _listening is not None and _listening.heard:
        raise KeyboardInterrupt


def deferred() -> contextlib.AbstractContextManager[None]:
    """Keep a signal waiting until the block has ended; nothing where nothing listens."""
    return contextlib.nullcontext() if _listening is None else _listening.deferred()
