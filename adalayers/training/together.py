"""What several trials ask for, done for all of them at once: models that are alike are stacked."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from torch import nn

from adalayers.models.several import alike
from adalayers.tensors import ragged
from adalayers.tensors.dropout import Dropout
from adalayers.training.members import Members
from adalayers.training.steps import TRAIN, Request, Result, SharedClock, Steps, in_turn

if TYPE_CHECKING:
    from adalayers.training.trainer import Trainer


class Together:
    """Trains and scores trials, those whose models are alike as one; each gives what it gives alone, to rounding.

    Args:
        on_batch: Called after each batch.
    """

    def __init__(self, *, on_batch: Callable[[], None] = lambda: None) -> None:
        self._on_batch = on_batch
        self._known: list[Members] = []

    def __call__(self, requests: Sequence[Request]) -> dict[Request, Any]:
        """Do what is asked for, a batch of each in turn, and return what came of it: results, and errors."""
        by_kind: dict[Hashable, list[Request]] = {}
        for request in requests:
            by_kind.setdefault((request.split, _kind(request.trainer)), []).append(request)
        answers: dict[Request, Any] = {}
        runs = [self._run(sorted(own, key=_place), answers) for own in by_kind.values()]
        while runs:  # a batch that several read is read by them one after the other
            runs = [run for run in runs if next(run, self) is not self]
            self._on_batch()
        return answers

    def _run(self, requests: Sequence[Request], answers: dict[Request, Any]) -> Iterator[None]:
        """Do what trials of one kind ask for."""
        split = requests[0].split
        try:
            members = self._members([request.trainer for request in requests])
            results = yield from members.epoch() if split == TRAIN else members.predict(split)
        except Exception as error:
            if len(requests) > 1:
                raise
            answers[requests[0]] = error
        else:
            answers |= zip(requests, results, strict=True)

    def _members(self, trainers: Sequence[Trainer]) -> Members:
        trained, alone = [trainer.trained for trainer in trainers], alike(trainers[0].model) is None
        for known in self._known:
            if known.trained == trained and (known.model is None) == alone:
                return known
        self._known = [known for known in self._known if not {*known.trainers} & {*trainers}]
        self._known.append(Members(trainers))
        return self._known[-1]


def _kind(trainer: Trainer) -> Hashable:
    """Return what must be the same of trials that are passed together."""
    if (models := alike(trainer.model)) is None:
        return id(trainer)
    head, config, train = trainer.model.head, trainer.config, trainer.data.splits[TRAIN]
    draws: Hashable = None
    if not ragged.on_gpu(trainer.device):  # then they have one stream, if they draw alike
        if any(_drops(trainer.model.fusion)):
            return id(trainer)
        draws = trainer.reads, head is not None and tuple(_drops(head))
    return (
        *(models, draws, config.optimiser, config.class_weights, config.batch_size),
        *(config.word_token(trainer.model.shape), len(train.trainable), str(trainer.data.kind.about())),
    )


def _drops(module: nn.Module) -> list[float]:
    """Return the probabilities of the dropout that acts."""
    return [each.p for each in module.modules() if isinstance(each, Dropout) and each.acts]


def _place(request: Request) -> tuple[str, ...]:
    """Return what trials are ordered by: those that read one batch stand together."""
    return tuple(map(str, request.trainer.reads))


def finished(steps: Steps[Result]) -> Result:
    """Take all steps of one trial and return what came of them."""
    (result,) = in_turn([steps], SharedClock(), Together())
    return result
