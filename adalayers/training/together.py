"""What several trials ask for, done for all of them at once: models that are alike are stacked."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from torch import nn

from adalayers.models.several import alike
from adalayers.tensors import ragged
from adalayers.tensors.cpu_dropout import Dropout
from adalayers.training.members import Members
from adalayers.training.steps import TRAIN, Request, Result, SharedClock, Steps, in_turn

if TYPE_CHECKING:
    from adalayers.training.trainer import Trainer


class Together:
    """Trains and scores trials, those whose models are alike as one; each gives what it gives alone, to rounding.

    Args:
        counted:  Whether dropout of stacked models counts instead of drawing; None: on a GPU.
        on_batch: Called after each batch.
    """

    def __init__(self, *, counted: bool | None = None, on_batch: Callable[[], None] = lambda: None) -> None:
        self._counted, self._on_batch = counted, on_batch
        self._known: list[Members] = []

    def __call__(self, requests: Sequence[Request]) -> None:
        """Do what is asked for, a batch of each in turn, and fill in the results."""
        by_kind: dict[Hashable, list[Request]] = {}
        for request in requests:
            by_kind.setdefault((request.split, self._kind(request.trainer)), []).append(request)
        runs: list[Iterator[None]] = [self._run(sorted(own, key=_place)) for own in by_kind.values()]
        while runs:  # a batch that several read is read by them one after the other
            runs = [run for run in runs if next(run, self) is not self]

    def _run(self, requests: Sequence[Request]) -> Iterator[None]:
        """Do what trials of one kind ask for."""
        trainers, split = [request.trainer for request in requests], requests[0].split
        try:
            members = self._members(trainers)
            for _ in members.epoch() if split == TRAIN else members.predict(split):
                self._on_batch()
                yield
        except Exception as error:
            if len(requests) > 1:
                raise
            requests[0].error = error
            self._forget(trainers)
            return
        for request, result in zip(requests, members.results, strict=True):
            request.result = result

    def _members(self, trainers: Sequence[Trainer]) -> Members:
        trained, stacked = [trainer.trained for trainer in trainers], self._stackable(trainers[0])
        for known in self._known:
            if known.trained == trained and (known.model is not None) == stacked:
                return known
        self._forget(trainers)
        self._known.append(Members(trainers, stacked=stacked, counted=self._counts(trainers[0])))
        return self._known[-1]

    def _forget(self, trainers: Sequence[Trainer]) -> None:
        self._known = [known for known in self._known if not {*known.trainers} & {*trainers}]

    def _counts(self, trainer: Trainer) -> bool:
        return ragged.on_gpu(trainer.device) if self._counted is None else self._counted

    def _stackable(self, trainer: Trainer) -> bool:
        return alike(trainer.model) is not None

    def _kind(self, trainer: Trainer) -> Hashable:
        """Return what must be the same of trials that are passed together."""
        if not self._stackable(trainer):
            return id(trainer)
        head, config, train = trainer.model.head, trainer.config, trainer.data.splits[TRAIN]
        draws: Hashable = None
        if not self._counts(trainer):  # then they have one stream, if they draw alike
            if any(_drops(trainer.model.fusion)):
                return id(trainer)
            draws = trainer.reads, head is not None and tuple(_drops(head))
        return (
            *(alike(trainer.model), draws, config.optimiser, config.class_weights, config.batch_size),
            *(config.word_token(trainer.model.shape), len(train.trainable), str(trainer.data.kind.about())),
        )


def _drops(module: nn.Module) -> list[float]:
    """Return the probabilities of the dropout that acts."""
    return [each.p for each in module.modules() if isinstance(each, Dropout) and each.acts]


def _place(request: Request) -> tuple[Any, ...]:
    """Return what trials are ordered by: those that read one batch stand together, the few that mix one state last."""
    trainer = request.trainer
    mix = trainer.config.used(trainer.model.shape).get("mix")
    return *map(str, trainer.reads), mix in ("single", "last")


def finished(steps: Steps[Result]) -> Result:
    """Take all steps of one trial and return what came of them."""
    (result,) = in_turn([steps], SharedClock(), Together())
    return result
