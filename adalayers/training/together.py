"""What several trials ask for, done for all of them at once: models that are alike are stacked."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from adalayers.features.features import LiveFeatures
from adalayers.models.several import alike
from adalayers.request import MAX_GROUP
from adalayers.tensors import ragged
from adalayers.tensors.cpu_dropout import Dropout
from adalayers.training.members import Members
from adalayers.training.steps import TRAIN, Request, Result, SharedClock, Steps, in_turn, is_out_of_memory

if TYPE_CHECKING:
    from adalayers.training.trainer import Trainer

logger = logging.getLogger(__name__)

MEMORY_SHARE = 0.8
"""Of a GPU's free memory that a group may take; the rest is for what a step needs for a moment."""
HEAD_VECTORS = 24
"""Vectors of a token that a head's backward pass keeps, its feed-forward among them."""
PADDED = 1.3
"""A batch's tokens with padding, and what varies from batch to batch, over its mean."""


class Together:
    """Trains and scores trials, those whose models are alike as one.

    Each gives the numbers that it gives alone, to rounding. Where memory does not hold all of them, half as many are
    passed at a time.

    Args:
        counted:  Whether dropout of stacked models counts instead of drawing; None: on a GPU.
        on_batch: Called after each batch.
    """

    def __init__(self, *, counted: bool | None = None, on_batch: Callable[[], None] = lambda: None) -> None:
        self._counted, self._on_batch = counted, on_batch
        self._known: list[Members] = []
        self._most: int | None = None

    def __call__(self, requests: Sequence[Request]) -> None:
        """Do what is asked for, a batch of each in turn, and fill in the results."""
        by_kind: dict[Hashable, list[Request]] = {}
        for request in requests:
            by_kind.setdefault((request.split, self._kind(request.trainer)), []).append(request)
        runs: list[Iterator[None]] = []
        for own in by_kind.values():
            self._most = self._most or fitting(own[0].trainer)
            runs += [self._run(some) for some in _even(sorted(own, key=_place), self._most)]
        while runs:  # a batch that several read is read by them one after the other
            runs = [run for run in runs if next(run, self) is not self]

    def _run(self, requests: Sequence[Request], first: int = 0) -> Iterator[None]:
        """Do what trials of one kind ask for, from a batch on."""
        trainers, split, members = [request.trainer for request in requests], requests[0].split, None
        try:
            members = self._members(trainers)
            for _ in members.epoch(first) if split == TRAIN else members.predict(split):
                self._on_batch()
                yield
            if split != TRAIN:
                for request, result in zip(requests, members.predicted, strict=True):
                    request.result = result
            return
        except Exception as error:
            most, alone = trainers[0].config.batch_size, len(requests) == 1
            divides = is_out_of_memory(error) and (
                not alone or (split == TRAIN and trainers[0].passes < most)
            )
            if alone and not divides:
                requests[0].error = error
            if not divides:
                self._known = [known for known in self._known if known is not members]
                if alone:
                    return
                raise
        # Outside the handler, where what filled the memory is gone with its traceback.
        if members is not None and split == TRAIN:
            members.note()
            first = members.done
        members = None
        torch.cuda.empty_cache()
        if alone:
            trainers[0].passes = min(2 * trainers[0].passes, most)
            each = math.ceil(most / trainers[0].passes)
            logger.warning(f"out of memory on a batch of {most}: it is passed {each} at a time from now on")
        else:
            self._most, self._known = len(requests) // 2, []
            logger.warning(
                f"out of memory on a batch of {len(requests)} trials: it is passed for {self._most} at a time"
            )
        for some in _even(requests, self._most or 1):
            yield from self._run(some, first)

    def _members(self, trainers: Sequence[Trainer]) -> Members:
        trained = [trainer.trained for trainer in trainers]
        for known in self._known:
            if known.trainers == trainers and known.trained == trained:
                return known
        members = Members(trainers, stacked=self._stackable(trainers[0]), counted=self._counts(trainers[0]))
        self._known = [known for known in self._known if not {*known.trainers} & {*trainers}]
        self._known.append(members)
        return members

    def _counts(self, trainer: Trainer) -> bool:
        return ragged.on_gpu(trainer.device) if self._counted is None else self._counted

    def _stackable(self, trainer: Trainer) -> bool:
        features = trainer.data.splits[TRAIN].features
        # There the pass of the base model is what costs, and trials in turn keep their numbers bit for bit.
        live_on_cpu = isinstance(getattr(features, "whole", features), LiveFeatures) and not ragged.on_gpu(
            trainer.device
        )
        return not live_on_cpu and alike(trainer.model) is not None

    def _kind(self, trainer: Trainer) -> Hashable:
        """Return what must be the same of trials that are passed together."""
        if not self._stackable(trainer):
            return id(trainer)
        head, config, train = trainer.model.head, trainer.config, trainer.data.splits[TRAIN]
        drops: Hashable = None
        if not self._counts(trainer):  # then they have one stream, if they draw alike
            if any(_drops(trainer.model.fusion)):
                return id(trainer)
            drops = head is not None and tuple(_drops(head))
        return (
            *(alike(trainer.model), drops, config.optimiser, config.class_weights, config.batch_size),
            *(config.word_token(trainer.model.shape), len(train.trainable), str(trainer.data.kind.about())),
        )


def _drops(module: nn.Module) -> list[float]:
    """Return the probabilities of the dropout that acts."""
    return [each.p for each in module.modules() if isinstance(each, Dropout) and each.acts]


def _even(requests: Sequence[Request], most: int) -> list[Sequence[Request]]:
    """Return the requests in as few parts of at most so many as there can be, of like sizes."""
    size = math.ceil(len(requests) / math.ceil(len(requests) / most))
    return [requests[start : start + size] for start in range(0, len(requests), size)]


def _place(request: Request) -> tuple[Any, ...]:
    """Return what trials are ordered by: those that read one batch stand together, the few that mix one state last."""
    trainer = request.trainer
    mix = trainer.config.used(trainer.model.shape).get("mix")
    return *map(str, trainer.reads), mix in ("single", "last")


def fitting(trainer: Trainer) -> int:
    """Return how many trials like this one a GPU's free memory holds, at least one."""
    if trainer.device.type != "cuda":
        return MAX_GROUP
    free, _ = torch.cuda.mem_get_info(trainer.device)
    free += torch.cuda.memory_reserved(trainer.device) - torch.cuda.memory_allocated(trainer.device)
    return max(1, min(MAX_GROUP, int(MEMORY_SHARE * free / member_bytes(trainer))))


def member_bytes(trainer: Trainer) -> int:
    """Return about how much memory a further member of a group takes, in bytes.

    Of each parameter: itself, its gradient, two moments and the best model's; of each token and hidden state: what the
    backward pass keeps of its projection; of each token: about a dozen vectors of the head.
    """
    parameters = sum(parameter.numel() for parameter in trainer.model.parameters())
    tokens = PADDED * trainer.config.batch_size * float(trainer.data.splits[TRAIN].features.lengths.mean())
    fusion = trainer.model.fusion
    return int(4 * (5 * parameters + tokens * fusion.width * (5 * len(fusion.states) + HEAD_VECTORS)))


def finished(steps: Steps[Result]) -> Result:
    """Take all steps of one trial and return what came of them."""
    (result,) = in_turn([steps], SharedClock(), Together())
    return result
