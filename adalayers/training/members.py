"""The one step of training: of several trials whose models are alike, or of one of any kind."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from adalayers.data.trial_data import SplitData
from adalayers.models.model import FusionModel
from adalayers.models.several import FusionModels
from adalayers.tensors import ragged
from adalayers.tensors.counted_dropout import Draws
from adalayers.tensors.members import Batches
from adalayers.tensors.ragged import token_batches
from adalayers.training.evaluation import EVALUATION_TOKENS, outputs, reduced
from adalayers.training.optimisers import Adam
from adalayers.training.plan import Plan, in_passes, shares
from adalayers.training.steps import TRAIN, is_out_of_memory

if TYPE_CHECKING:
    from adalayers.training.trainer import Trainer

logger = logging.getLogger(__name__)

DIAGNOSTICS_PER_EPOCH = 10
"""A fusion's diagnostics are noted about this often between two evaluations."""
Predictions = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Rows in a split's labels, what is predicted there, and with which probability."""


class Members:
    """Trials that train as one, each with its own parameters, rates and dropout: tensors are [members, ...].

    Args:
        trainers: Those that read one batch stand next to each other.
        stacked:  Whether their models are `alike` and computed as one; else there is one trial, of any kind.
        counted:  Whether dropout of stacked models counts instead of drawing.

    Attributes:
        done:      Batches of the epoch that were passed.
        predicted: By trial, of the last `predict`.
    """

    def __init__(self, trainers: Sequence[Trainer], *, stacked: bool, counted: bool):
        self.trainers, self.trained = [*trainers], [trainer.trained for trainer in trainers]
        self._first, self._counted = trainers[0], counted
        self.model = FusionModels([trainer.model for trainer in trainers]) if stacked else None
        self.adam = Adam(self.trained, range(0) if self.model is None else self.model.units)
        self._parts: list[range] = []
        for place, trainer in enumerate(trainers):
            joins = place and trainer.reads == trainers[place - 1].reads
            start = self._parts.pop().start if joins else place
            self._parts.append(range(start, place + 1))
        self._evaluated: dict[str, list[Batches]] = {}
        self.predicted: list[Predictions | None] = [None] * len(trainers)
        self.done = 0
        self._begin()

    def _begin(self) -> None:
        self._steps = 0
        self._points: list[tuple[int, float, Any]] = []
        self._total = self.adam.values.new_zeros(len(self.trainers))

    def epoch(self, first: int = 0) -> Iterator[None]:
        """Train an epoch from its batch number `first` on, a batch at a time, and `note` what came of it."""
        readers = [self.trainers[part.start] for part in self._parts]
        steps = [*zip(*(reader.batches() for reader in readers), strict=True)]
        spacing = max(1, len(steps) // DIAGNOSTICS_PER_EPOCH)
        factors = [[[t.schedule.factor(later)] for t in self.trainers] for later in range(len(steps) - first)]
        (factor,) = ragged.to_device_at_once([np.array(factors)], self._first.device)
        factor, self.done = factor.to(self.adam.values.dtype), first
        if self.model is not None:
            self.model.fusion.prepare()
        while self.done < len(steps):
            try:
                for passes in self._passes(steps[self.done :]):
                    losses = self._step(passes, factor[self.done - first])
                    self._total += losses * len(steps[self.done][0])
                    self._steps, self.done = self._steps + 1, self.done + 1
                    if self.done % spacing == 0 and self.done < len(steps):
                        self._points.append((self._steps, self.done / len(steps), self._diagnostics()))
                    yield
            except (RuntimeError, MemoryError) as error:
                most = len(steps[self.done][0])
                if not is_out_of_memory(error) or len(self.trainers) > 1 or self._first.passes >= most:
                    raise
            else:
                continue
            # Outside the handler, where the exception no longer holds the tensors of what was begun.
            self._first.passes = min(2 * self._first.passes, most)
            each = math.ceil(most / self._first.passes)
            logger.warning(f"out of memory on a batch of {most}: it is passed {each} at a time from now on")
            torch.cuda.empty_cache()
        self.note()

    def note(self) -> None:
        """Tell the trials what came of the steps since they were told."""
        totals, points = self._total.tolist(), [numbers for *_, numbers in self._points]
        if self.model is not None and points:
            by_member = torch.stack(points, dim=1).tolist()
        for m, trainer in enumerate(self.trainers):
            own = points if self.model is None else [
                self.model.fusion.named(m, numbers) for numbers in (by_member[m] if points else ())
            ]
            trainer.took(
                self._steps,
                totals[m],
                [(step, share, named) for (step, share, _), named in zip(self._points, own, strict=True)],
            )
        for part in self._parts:  # so that each goes on alone where all have come to
            state = self.trainers[part.start].generator.get_state()
            for m in part[1:]:
                self.trainers[m].generator.set_state(state)
        self._begin()

    def _diagnostics(self) -> Any:
        return self._first.model.fusion.diagnostics() if self.model is None else self.model.weights(self.adam.values)

    def _passes(self, steps: Sequence[Sequence[np.ndarray]]) -> Iterator[list[Any]]:
        """Yield what each of the next steps passes: batches, or of one trial of any kind examples."""
        readers, taken = [self.trainers[part.start] for part in self._parts], self._steps
        if self.model is None:
            yield from ([(own, examples) for own in in_passes(examples, self._first.passes)] for (examples,) in steps)
            return

        def draws(number: int, batch: int) -> Draws:
            progress = readers[batch].progress
            return Draws(readers[batch].seed, progress.epoch, progress.step + taken + number)

        plan = Plan(
            self.model,
            self._parts,
            [reader.data.splits[TRAIN] for reader in readers],
            self._first.device,
            self._first.class_weights,
            training=True,
            draws=draws if self._counted else None,
            streams=None if self._counted else [reader.generator for reader in readers],
        )
        yield from plan.batches(steps, self._first.passes)

    @property
    def _streams(self) -> list[torch.Generator]:
        return [self.trainers[part.start].generator for part in self._parts]

    def _step(self, passes: Sequence[Any], factor: Float[Tensor, "members 1"]) -> Float[Tensor, " members"]:
        """Take a step; return each objective before it. Where memory does not suffice all is as it was."""
        began = [each.get_state() for each in self._streams]
        try:
            losses, gradients = self._gradients(passes)
        except (RuntimeError, MemoryError):
            for each, state in zip(self._streams, began, strict=True):
                each.set_state(state)
            raise
        used = None if self.model is None or not self.model.units else self.model.fusion.used()
        self.adam.step(gradients, factor, used)
        return losses

    def _gradients(self, passes: Sequence[Any]) -> tuple[Float[Tensor, " members"], Sequence[Tensor | None]]:
        """Return the objectives, and their gradients, summed over the passes, as `Adam.step` takes them."""
        leaves: Sequence[Tensor] = self.trained[0].parameters
        if self.model is not None:
            leaves = [self.adam.values.detach().requires_grad_()]
        total, gradients = torch.zeros_like(self._total), [None] * len(leaves)
        for one in passes:
            losses, penalties = self._of_model(one) if self.model is None else self._of_models(leaves[0], one)
            if penalties is not None:
                losses = losses + penalties / len(passes)
            found = torch.autograd.grad(losses.sum(), leaves, allow_unused=True)
            gradients = [_sum(before, own) for before, own in zip(gradients, found, strict=True)]
            total += losses.detach()
        return total, gradients

    def _of_model(self, one: tuple[np.ndarray, np.ndarray]) -> tuple[Tensor, Tensor | None]:
        """Return the loss of a trial of any kind over examples of a batch, [1], and its penalty."""
        trial, (examples, whole) = self._first, one
        split, model = trial.data.splits[TRAIN], trial.model
        batch = split.batch(examples, model.live(), trial.device)
        own = trial.data.kind.loss(outputs(model, batch), batch.labels)
        counted = torch.from_numpy(shares(split, batch.rows, whole, trial.class_weights))
        return (own * ragged.to_device(counted, trial.device)).sum().unsqueeze(0), model.fusion.penalty()

    def _of_models(self, values: Tensor, batches: Batches) -> tuple[Tensor, Tensor | None]:
        """Return the losses of models that are alike, [members], and their penalties."""
        assert self.model is not None
        assert batches.labels is not None
        assert batches.shares is not None
        with reduced(values.device):
            given = self.model.forward(values, batches)
        labels = batches.by_member(batches.labels).expand(given.shape[:2])
        own = self._first.data.kind.loss(given.flatten(0, 1), labels.flatten())
        losses = (own.view(labels.shape) * batches.by_member(batches.shares)).sum(1)
        return losses, self.model.fusion.penalties()

    def predict(self, name: str) -> Iterator[None]:
        """Predict a split's items, a batch at a time; `predicted` is then what each trial does."""
        split, found = self._first.data.splits[name], []
        if self.model is not None:
            self.model.fusion.prepare()
        batches = token_batches(split.features.lengths, EVALUATION_TOKENS)
        for given in batches if self.model is None else self._to_predict(name, split, batches):
            found.append(self._decoded(split, given))
            yield
        rows = np.concatenate([split.items(examples)[0] for examples in batches])
        predicted, sure = (torch.cat(each, dim=1).cpu().numpy() for each in zip(*found, strict=True))
        self.predicted = [(rows, *own) for own in zip(predicted, sure, strict=True)]

    def _to_predict(self, name: str, split: SplitData, batches: Sequence[np.ndarray]) -> list[Batches]:
        """Return the batches of an evaluation, which are the same each time."""
        assert self.model is not None
        if name not in self._evaluated:
            plan = Plan(self.model, [range(len(self.trainers))], [split], self._first.device)
            self._evaluated[name] = [one for (one,) in plan.batches((examples,) for examples in batches)]
        return self._evaluated[name]

    @torch.no_grad()
    def _decoded(self, split: SplitData, given: Any) -> tuple[Tensor, Tensor]:
        """Return predictions and their probabilities, [members, items]."""
        device = self._first.device
        if self.model is None:
            model = self._first.model
            model.eval()
            answers = outputs(model, split.batch(given, model.live(), device)).unsqueeze(0)
        else:
            with reduced(device):
                answers = self.model.forward(self.adam.values, given)
        decoded, sure = self._first.data.kind.decode(answers.flatten(0, 1))
        return decoded.view(answers.shape[:2]), sure.view(answers.shape[:2])


def _sum(one: Tensor | None, other: Tensor | None) -> Tensor | None:
    return other if one is None else one if other is None else one.add_(other)
