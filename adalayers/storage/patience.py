"""Calls that are given up after a while, though what they call neither ends nor hears a signal."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any, TypeVar

Answer = TypeVar("Answer")


def within(seconds: float, call: Callable[..., Answer], *given: Any) -> Answer:
    """Return what a call returns, or raise what it raises; it is asked in a thread of its own.

    Raises:
        TimeoutError: No answer in time; the thread goes with the process.
    """
    answer: Future[Answer] = Future()

    def ask() -> None:
        try:
            answer.set_result(call(*given))
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=ask, name="adalayers-patience", daemon=True).start()
    if not wait([answer], seconds).done:
        raise TimeoutError(f"no answer within {seconds:g} s")
    return answer.result()
