"""Steps of several trials, taken as one: their models are stacked, and each trial's optimiser has its own part."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from adalayers.models.several import FusionModels, alike
from adalayers.request import MAX_GROUP
from adalayers.states import State
from adalayers.tensors.counted_dropout import Draws
from adalayers.tensors.members import Part
from adalayers.tensors.ragged import padded_rows
from adalayers.training.evaluation import reduced
from adalayers.training.optimisers import step_as_one
from adalayers.training.steps import Request, is_out_of_memory

if TYPE_CHECKING:
    from adalayers.training.trainer import Trainer


logger = logging.getLogger(__name__)

MEMORY_SHARE = 0.8
"""Of a GPU's free memory that a group may take; the rest is for what a step needs for a moment."""
HEAD_VECTORS = 24
"""Vectors of a token that a head's backward pass keeps, its feed-forward among them."""


class Together:
    """Passes the batches that several trials ask for, for all at once where their models are alike.

    A step is that of each trial alone, to rounding; where memory does not hold all of them it is taken for half as many
    at a time.

    Args:
        counted: Whether dropout counts instead of drawing, and a trial alone is a group of one, as on a GPU.
    """

    def __init__(self, *, counted: bool = False) -> None:
        self._several: dict[Any, _Several] = {}
        self._counted = counted
        self._most: int | None = None if counted else MAX_GROUP

    def __call__(self, requests: Sequence[Request]) -> None:
        """Fill in the results of the requests that can be passed together; the rest is left to the trials."""
        by_kind: dict[Any, list[Request]] = {}
        for request in requests:
            if (kind := _kind(request)) is not None:
                by_kind.setdefault(kind, []).append(request)
        for (*_, kind), alike_requests in by_kind.items():
            if self._most is None:
                self._most = self._fitting(alike_requests[0].trainer)
            ordered = sorted(alike_requests, key=lambda request: _place(request.trainer))
            for start in range(0, len(ordered), self._most):
                self._pass((kind, start), ordered[start : start + self._most])

    @staticmethod
    def _fitting(trainer: Trainer) -> int:
        """Return how many trials like this one a GPU's free memory holds, at least one."""
        if trainer.device.type != "cuda":
            return MAX_GROUP
        free, _ = torch.cuda.mem_get_info(trainer.device)
        return max(1, min(MAX_GROUP, int(MEMORY_SHARE * free / member_bytes(trainer))))

    def _pass(self, kind: Any, requests: Sequence[Request]) -> None:
        if len(requests) == 1 and not self._counted:
            return
        trainers = [request.trainer for request in requests]
        several, results = self._several.get(kind), None
        try:
            if several is None or several.trainers != trainers:
                several = _Several(trainers, counted=self._counted)
                others = self._several.items()  # but for those whose parameters are now in this one
                self._several = {key: other for key, other in others if not {*trainers} & {*other.trainers}}
                self._several[kind] = several
            results = several.step(requests) if requests[0].training else several.outputs(requests)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            self._most = max(1, len(requests) // 2)
            self._several.clear()
            logger.warning(
                f"out of memory on a batch of {len(requests)} trials: it is passed for {self._most} at a time"
            )
        if results is not None:
            for request, result in zip(requests, results, strict=True):
                request.result = result
        elif len(requests) > 1:  # here, where what filled the memory is gone with its traceback
            several = None
            most = self._most or 1
            for start in range(0, len(requests), most):
                self._pass((kind, start), requests[start : start + most])


def member_bytes(trainer: Trainer) -> int:
    """Return about how much memory a further member of a group takes, in bytes.

    Of each parameter: itself, its gradient, two moments and the best model's; of each token and hidden state: what the
    backward pass keeps of its projection; of each token: about a dozen vectors of the head.
    """
    parameters = sum(parameter.numel() for parameter in trainer.model.parameters())
    tokens = trainer.config.batch_size * int(trainer.data.splits["train"].features.lengths.max())
    fusion = trainer.model.fusion
    return 4 * (5 * parameters + tokens * fusion.width * (5 * len(fusion.states) + HEAD_VECTORS))


def _kind(request: Request) -> Any:
    """Return what must be the same of requests that are passed together, None where one is passed alone."""
    trainer = request.trainer
    if trainer is None or trainer.parts > 1 or (kind := alike(trainer.model)) is None:
        return None
    config = trainer.config
    kind = (kind, config.optimiser, config.word_token(trainer.model.shape))
    return request.training, len(request.examples), kind


def _batch(request: Request) -> Any:
    """Return what is the same of requests for one batch; in training of one seed, which says what is dropped."""
    return request.examples.tobytes(), request.trainer.drawn, request.training and request.trainer.seed


def _place(trainer: Trainer) -> tuple[Any, ...]:
    """Return what trials are ordered by: those that read one batch stand together, the few that mix one state last."""
    return (
        trainer.seed,
        str(trainer.drawn),
        trainer.config.used(trainer.model.shape).get("mix") in ("single", "last"),
    )


class _Several:
    """Trials whose models are alike, as one."""

    def __init__(self, trainers: Sequence[Trainer], *, counted: bool):
        self.trainers, self._counted = list(trainers), counted
        self.model = FusionModels([trainer.model for trainer in trainers])

    def step(self, requests: Sequence[Request]) -> list[Tensor]:
        """Train each on its batch; return the objective of each before the step, detached."""
        self.model.train()
        losses = []
        for outputs, (batch, members) in self._passed(requests):
            for own, trainer in zip(outputs, self.trainers[members], strict=True):
                losses.append(trainer.data.kind.loss(own, batch.labels, trainer.class_weights))
        total = torch.stack(losses)
        if (penalties := self.model.fusion.penalties()) is not None:
            total = total + penalties
        total.sum().backward()
        for stacked in self.model.stacked:
            stacked.hand_out_gradients()
        step_as_one([trainer.optimiser for trainer in self.trainers])
        for trainer in self.trainers:
            trainer.schedule.after_step()
            trainer.progress.step += 1
        return list(total.detach().unbind())

    @torch.no_grad()
    def outputs(self, requests: Sequence[Request]) -> list[Tensor]:
        """Return what each model gives for its batch."""
        self.model.eval()
        return [own for outputs, _ in self._passed(requests) for own in outputs]

    def _passed(self, requests: Sequence[Request]) -> list[tuple[Tensor, tuple[Any, slice]]]:
        """Return, by batch, its readers' outputs for its labels, the batch, and which trials its readers are."""
        device, live = self.trainers[0].device, self.model.fusion.live()
        batches: list[Any] = []
        parts: list[Part] = []
        for place, request in enumerate(requests):
            if place and _batch(request) == _batch(requests[place - 1]):
                parts[-1].members = range(parts[-1].members.start, place + 1)
                continue
            batch = request.split.batch(request.examples, [], device)
            draws, progress = None, self.trainers[place].progress
            if self._counted and request.training:
                draws = Draws(self.trainers[place].seed, progress.epoch, progress.step)
            parts.append(
                Part(range(place, place + 1), batch.lengths, request.split.index[batch.examples], draws)
            )
            batches.append(batch)
        splits = [requests[part.members.start].split for part in parts]
        states = _states(splits, [batch.examples for batch in batches], parts, live, device)
        with reduced(device):
            given = self.model(states, parts)
        words = [
            own if batch.words is None else own.index_select(-2, batch.words)
            for own, batch in zip(given, batches, strict=True)
        ]
        members = [slice(part.members.start, part.members.stop) for part in parts]
        return [
            (own.float(), about) for own, about in zip(words, zip(batches, members, strict=True), strict=True)
        ]


def _states(
    splits: Sequence[Any],
    examples: Sequence[Any],
    parts: Sequence[Part],
    live: Sequence[State],
    device: torch.device,
) -> Iterator[Tensor]:
    """Return the batches' hidden states [batches * tokens, K], state by state, padded to as many tokens each.

    They are read now, a base model's pass in the type that it computes in; only what is stored is read one by one.
    """
    features = [split.features for split in splits]
    if all(each is features[0] for each in features):  # one call for all members
        read: Sequence[Mapping[State, Tensor]] = [features[0].read(np.concatenate(examples), live, device)]
    else:
        read = [each.read(own, live, device) for each, own in zip(features, examples, strict=True)]
    sizes = [int(part.lengths.sum()) for part in parts]
    rows = None if len(set(sizes)) == 1 else padded_rows(sizes, device)
    flats = (
        read[0][state] if len(read) == 1 else torch.cat([each[state] for each in read]) for state in live
    )
    return flats if rows is None else (flat.index_select(0, rows) for flat in flats)
