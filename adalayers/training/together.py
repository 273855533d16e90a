"""Trials that train and are scored together: an epoch or an evaluation each, models that are alike computed as one."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from torch import nn

from adalayers.models.several import alike
from adalayers.tensors import ragged
from adalayers.tensors.dropout import Dropout
from adalayers.training.batches import TRAIN
from adalayers.training.members import Members

if TYPE_CHECKING:
    from adalayers.training.trainer import Trainer


@dataclass(eq=False)
class Request:
    """What a trial asks for next.

    Attributes:
        trainer: Whose it is.
        split: `TRAIN`: an epoch of training; another: what the model predicts of all its items; "": nothing.
        epoch: That the trial is in, infinity once its training is over.
        answer: What came of it, or an error.
    """

    trainer: Any = None
    split: str = ""
    epoch: float = 0.0
    answer: Any = None


Result = TypeVar("Result")
Steps = Generator[Request, Any, Result]
"""Yields what is to be done next, is sent what came of it, and returns what came of all of it."""


class Together:
    """Trains and scores trials, those whose models are alike as one; each gives what it gives alone, to rounding.

    Args:
        on_batch: Called after each batch.
    """

    def __init__(self, *, on_batch: Callable[[], None] = lambda: None) -> None:
        self._on_batch = on_batch
        self._known = dict[Hashable, Members]()

    def run(self, trials: Sequence[Steps[Any]]) -> list[Any]:
        """Take the steps of trials until all have ended, those first that are behind the others; return their results.

        Those whose training is over wait for the others, and are scored together. The time that passes is shared by
        those whose steps are taken. An error is raised in the trial whose request failed.
        """
        waiting, results = {trial: Request() for trial in trials}, dict[Steps[Any], Any]()
        began = time.monotonic()
        while waiting:
            behind = min(request.epoch for request in waiting.values())
            now = {trial: request for trial, request in waiting.items() if request.epoch == behind}
            self._answer([request for request in now.values() if request.split])
            ended = time.monotonic()
            for request in now.values():
                if request.trainer is not None:
                    request.trainer.progress.seconds += (ended - began) / len(now)
            began = ended
            for trial, request in now.items():
                go_on = trial.throw if isinstance(request.answer, Exception) else trial.send
                try:
                    waiting[trial] = go_on(request.answer)
                except StopIteration as end:
                    results[trial] = end.value
                    del waiting[trial]
        return [results[trial] for trial in trials]

    def _answer(self, requests: Sequence[Request]) -> None:
        """Carry requests out, a batch of each kind in turn."""
        by_kind: dict[Hashable, list[Request]] = {}
        for request in requests:
            by_kind.setdefault((request.split, _kind(request.trainer)), []).append(request)
        # Those that read one batch stand together.
        runs = [self._run(sorted(own, key=lambda one: one.trainer.reads)) for own in by_kind.values()]
        for _ in itertools.zip_longest(*runs):  # what reads one batch reads it one after the other
            self._on_batch()

    def _run(self, requests: Sequence[Request]) -> Iterator[None]:
        """Do what trials of one kind ask for, a batch at a time."""
        split = requests[0].split
        try:
            members = self._members([request.trainer for request in requests])
            results: list[Any] = yield from members.epoch() if split == TRAIN else members.predict(split)
        except Exception as error:
            if len(requests) > 1:
                raise
            results = [error]
        for request, result in zip(requests, results, strict=True):
            request.answer = result

    def _members(self, trainers: Sequence[Trainer]) -> Members:
        alone = alike(trainers[0].model) is None
        key = alone, *(trainer.trained for trainer in trainers)
        if key not in self._known:
            apart = {key: known for key, known in self._known.items() if not {*known.trainers} & {*trainers}}
            self._known = {**apart, key: Members(trainers)}
        return self._known[key]


def _kind(trainer: Trainer) -> Hashable:
    """Return what must be the same of trials that are passed together."""
    if (models := alike(trainer.model)) is None:
        return id(trainer)
    config, train, draws = trainer.config, trainer.data.splits[TRAIN], None
    if not ragged.on_gpu(trainer.device):  # then they have one stream, if they draw alike
        if _drops(trainer.model.fusion):
            return id(trainer)
        draws = trainer.reads, *_drops(trainer.model)
    return (
        *(models, draws, config.optimiser, config.class_weights, config.batch_size),
        *(config.word_token(trainer.model.shape), len(train.trainable), str(trainer.data.kind.about())),
    )


def _drops(module: nn.Module) -> list[float]:
    """Return the probabilities of the dropout that acts."""
    return [each.p for each in module.modules() if isinstance(each, Dropout) and each.acts]


def finished(steps: Steps[Result]) -> Result:
    """Take all steps of one trial and return what came of them."""
    (result,) = Together().run([steps])
    return result


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
