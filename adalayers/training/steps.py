"""Work in steps, an epoch or an evaluation each, so that what several trials ask for is done for all at once."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

NO_MEMORY = ("out of memory", "not enough memory", "can't allocate memory")
"""What torch's allocators say; on a CPU in a plain RuntimeError."""
TRAIN = "train"


@dataclass(frozen=True, eq=False)
class Request:
    """What a trial asks for next.

    Attributes:
        trainer: Whose it is.
        split: `TRAIN`: an epoch of training; another: what the model predicts of all its items; "": nothing.
        epoch: That the trial is in, infinity once its training is over.
    """

    trainer: Any = None
    split: str = ""
    epoch: float = 0.0


Result = TypeVar("Result")
Steps = Generator[Request, Any, Result]
"""Yields what is to be done next, is sent what came of it, and returns what came of all of it."""


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error says that memory did not suffice."""
    message = str(error).lower()
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or any(
        words in message for words in NO_MEMORY
    )


class SharedClock:
    """Seconds that pass, divided by the trials that share them.

    Attributes:
        sharers: How many trials share the time from now on.
    """

    def __init__(self) -> None:
        self.sharers = 1
        self._seconds, self._last = 0.0, time.monotonic()

    def __call__(self) -> float:
        now = time.monotonic()
        self._seconds, self._last = self._seconds + (now - self._last) / self.sharers, now
        return self._seconds


class Pace:
    """Says after which epochs something is done that takes time: after all trials' that share it, or after none's.

    Args:
        share:   Of all time that it may take.
        seconds: Between two times.
    """

    def __init__(self, share: float, seconds: float = 0.0):
        self._share, self._seconds, self._began, self._spent = share, seconds, time.monotonic(), 0.0
        self._last, self._epoch, self._due = -math.inf, 0.0, False

    def due(self, epoch: float) -> bool:
        """Return whether it is to be done after this epoch."""
        now = time.monotonic()
        if epoch != self._epoch:
            within = self._spent <= self._share * (now - self._began)
            self._epoch, self._due = epoch, within and now - self._last >= self._seconds
            self._last = now if self._due else self._last
        return self._due

    @contextmanager
    def doing(self) -> Iterator[None]:
        """Count what the block takes."""
        began = time.monotonic()
        yield
        self._spent += time.monotonic() - began


def in_turn(
    trials: Sequence[Steps[Any]],
    clock: SharedClock,
    together: Callable[[Sequence[Request]], Mapping[Request, Any]],
) -> list[Any]:
    """Take the steps of trials until all have ended, those first that are behind the others; return what came of each.

    Those whose training is over wait for the others, and are scored together.

    Args:
        clock:    Shared by the trials.
        together: Does what they ask for, and returns what came of it; errors are raised where it was asked.
    """
    waiting, results = {trial: Request() for trial in trials}, {}
    while waiting:
        clock()
        clock.sharers = len(waiting)
        behind = min(request.epoch for request in waiting.values())
        now = {trial: request for trial, request in waiting.items() if request.epoch == behind}
        answers = together([request for request in now.values() if request.split])
        for trial, request in now.items():
            answer = answers.get(request)
            try:
                waiting[trial] = trial.throw(answer) if isinstance(answer, Exception) else trial.send(answer)
            except StopIteration as end:
                results[trial] = end.value
                del waiting[trial]
    return [results[trial] for trial in trials]
