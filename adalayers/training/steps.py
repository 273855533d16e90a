"""Work in steps, one batch each, so that several trials can take their steps in turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

NO_MEMORY = ("out of memory", "not enough memory", "can't allocate memory")
"""What torch's allocators say; on a CPU in a plain RuntimeError."""


@dataclass(eq=False)
class Request:
    """A batch that a trial is about to pass: whoever takes steps of several trials may pass it for all of them.

    Attributes:
        split:    Which data, `SplitData`.
        examples: int64 [batch] of the split; None: no batch, a trial has ended its training.
        training: Whether the model is trained on it, else it is asked for its outputs.
        trainer:  Whose it is.
        epoch:    That the trial is in, infinity once its training is over.
        result:   The objective before the step, or the outputs; None: the trial passes the batch by itself.
    """

    split: Any = None
    examples: Any = None
    training: bool = False
    trainer: Any = None
    epoch: float = 0.0
    result: Tensor | None = None


Result = TypeVar("Result")
Steps = Generator[Request, None, Result]
"""Yields before each batch, and returns what came of all of them."""


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error says that memory did not suffice."""
    message = str(error).lower()
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or any(
        words in message for words in NO_MEMORY
    )


def finished(steps: Steps[Result]) -> Result:
    """Take all steps and return what came of them."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


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


def in_turn(
    trials: Sequence[Steps[None]],
    clock: SharedClock,
    on_step: Callable[[], None] = lambda: None,
    together: Callable[[Sequence[Request]], None] = lambda requests: None,
) -> None:
    """Let each trial take a step in turn until all have ended, those first that are behind the others.

    Trials of one seed then read one batch directly one after the other. Those whose training is over wait for the
    others, and are scored together.

    Args:
        clock:    Shared by the trials.
        on_step:  Called after each step.
        together: Told of the batches that are about to be passed; may pass some for all trials.
    """
    waiting = {trial: Request() for trial in trials}
    while waiting:
        clock()
        clock.sharers = len(waiting)
        behind = min(request.epoch for request in waiting.values())
        trials = [trial for trial, request in waiting.items() if request.epoch == behind]
        together([waiting[trial] for trial in trials])
        for trial in trials:
            request = next(trial, None)
            on_step()
            if request is None:
                del waiting[trial]
            else:
                waiting[trial] = request
