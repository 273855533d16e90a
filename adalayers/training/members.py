"""The one step of training: of several trials whose models are alike, or of one of any kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from adalayers.models.several import FusionModels
from adalayers.tensors import ragged
from adalayers.tensors.members import Batches
from adalayers.tensors.ragged import token_batches
from adalayers.training.evaluation import EVALUATION_TOKENS, outputs, reduced
from adalayers.training.optimisers import Adam
from adalayers.training.plan import Plan, in_passes, shares
from adalayers.training.steps import TRAIN

if TYPE_CHECKING:
    from adalayers.training.trainer import Trainer

DIAGNOSTICS_PER_EPOCH = 10
"""A fusion's diagnostics are noted about this often between two evaluations."""


class Members:
    """Trials that train as one, each with its own parameters, rates and dropout: tensors are [members, ...].

    Args:
        trainers: Those that read one batch stand next to each other.
        stacked:  Whether their models are `alike` and computed as one; else there is one trial, of any kind.
        counted:  Whether dropout of stacked models counts instead of drawing.

    Attributes:
        done: Batches of the epoch that were passed.
    """

    def __init__(self, trainers: Sequence[Trainer], *, stacked: bool, counted: bool):
        self.trainers, self.trained = [*trainers], [trainer.trained for trainer in trainers]
        self._first, self._counted, self.done = trainers[0], counted, 0
        self.model = FusionModels([trainer.model for trainer in trainers]) if stacked else None
        self.adam = Adam(self.trained, stacked=stacked)
        self._parts: list[range] = []
        for place, trainer in enumerate(trainers):
            joins = place and trainer.reads == trainers[place - 1].reads
            start = self._parts.pop().start if joins else place
            self._parts.append(range(start, place + 1))
        self._readers = [trainers[part.start] for part in self._parts]
        self._evaluated: dict[str, list[Batches]] = {}
        self._begin()

    def _begin(self) -> None:
        self._steps = 0
        self._total = torch.zeros(len(self.trainers), device=self._first.device)
        self._points: list[tuple[int, float, Any]] = []

    def epoch(self, first: int = 0) -> Iterator[None]:
        """Train an epoch from its batch number `first` on, a batch at a time, and `note` what came of it."""
        steps = [*zip(*(reader.batches() for reader in self._readers), strict=True)]
        spacing, self.done = max(1, len(steps) // DIAGNOSTICS_PER_EPOCH), first
        factors = [[t.schedule.factor(later) for t in self.trainers] for later in range(len(steps) - first)]
        (there,) = ragged.to_device_at_once([np.array(factors)[..., None]], self._first.device)
        there = there.to(self.adam.dtype)
        if self.model is not None:
            self.model.fusion.prepare()
        for passes, *factor in zip(self._passes(steps[first:]), factors, there, strict=True):
            losses = self._step(passes, *factor)
            self._total += losses * len(steps[self.done][0])
            self._steps, self.done = self._steps + 1, self.done + 1
            if self.done % spacing == 0 and self.done < len(steps):
                self._points.append((self._steps, self.done / len(steps), self._diagnostics()))
            yield
        self.note()

    def _diagnostics(self) -> Any:
        if self.model is None:
            return self._first.model.fusion.diagnostics()
        return self.model.fusion.weights(self.adam.values[1:])

    def note(self) -> None:
        """Tell the trials what came of the steps since they were told: numbers are copied once."""
        noted = [numbers for *_, numbers in self._points]
        if self.model is not None and noted:
            noted = torch.stack(noted).tolist()
        for m, (trainer, total) in enumerate(zip(self.trainers, self._total.tolist(), strict=True)):
            own = noted if self.model is None else [self.model.fusion.named(m, each[m]) for each in noted]
            points = [(step, share, each) for (step, share, _), each in zip(self._points, own, strict=True)]
            trainer.took(self._steps, total, points)
        for part, reader in zip(
            self._parts, self._readers, strict=True
        ):  # whose stream was drawn from for all
            for m in part[1:]:
                self.trainers[m].generator.set_state(reader.generator.get_state())
        self._begin()

    def _passes(self, steps: Sequence[Sequence[np.ndarray]]) -> Iterator[list[Any]]:
        """Yield what each of the next steps passes: batches, or of a trial of any kind its examples."""
        if self.model is None:
            for (whole,) in steps:
                yield [(examples, whole) for examples in in_passes(whole, self._first.passes)]
            return
        plan = Plan(self.model, self._parts, self._readers, TRAIN, counted=self._counted)
        yield from plan.batches(steps, self._steps, self._first.passes)

    def _step(
        self, passes: Sequence[Any], factors: Sequence[float], factor: Float[Tensor, "members 1"]
    ) -> Float[Tensor, " members"]:
        """Take a step; return each objective before it. Where memory does not suffice all is as it was."""
        began = [reader.generator.get_state() for reader in self._readers]
        try:
            losses, gradients = self.gradients(passes)
        except (RuntimeError, MemoryError):
            for reader, state in zip(self._readers, began, strict=True):
                reader.generator.set_state(state)
            raise
        used = None if self.model is None else self.model.fusion.used()
        with torch.no_grad():
            self.adam.step(gradients, factors, factor, used)
        return losses

    def gradients(self, passes: Sequence[Any]) -> tuple[Float[Tensor, " members"], list[Tensor | None]]:
        """Return the objectives of a batch, summed over its passes, and their gradients.

        These are [members, ...] of each group of parameters where models are stacked, else [1, ...] of each parameter,
        None where it has none.
        """
        leaves: Sequence[Tensor] = self.trained[0].parameters
        if self.model is not None:
            leaves = [values.detach().requires_grad_() for values in self.adam.values]
        total = torch.zeros_like(self._total)
        gradients: list[Tensor | None] = [None] * len(leaves)
        for one in passes:
            losses, penalties = self._of_model(one) if self.model is None else self._of_models(leaves, one)
            if penalties is not None:
                losses = losses + penalties / len(passes)
            found = torch.autograd.grad(losses.sum(), leaves, allow_unused=True)
            gradients = [_sum(before, own) for before, own in zip(gradients, found, strict=True)]
            total += losses.detach()
        if self.model is None:
            return total, [None if own is None else own.unsqueeze(0) for own in gradients]
        return total, [own.transpose(0, 1) if own is not None and own.dim() > 2 else own for own in gradients]

    def setting(self, name: str) -> Float[Tensor, " members"]:
        """Return each member's value of a hyperparameter."""
        values = np.array([float(getattr(trainer.config, name)) for trainer in self.trainers])
        return ragged.to_device_at_once([values], self._first.device)[0].to(self.adam.dtype)

    def _of_model(self, one: tuple[np.ndarray, np.ndarray]) -> tuple[Tensor, Tensor | None]:
        """Return the loss of a trial of any kind over examples of a batch, [1], and its penalty."""
        trial, (examples, whole) = self._first, one
        model = trial.model.train()
        batch = trial.data.splits[TRAIN].batch(examples, model.live(), trial.device)
        own = trial.data.kind.loss(outputs(model, batch), batch.labels)
        counted = ragged.to_device(torch.from_numpy(shares(trial, batch.rows, whole)), trial.device)
        return (own * counted).sum().unsqueeze(0), model.fusion.penalty()

    def _of_models(self, values: Sequence[Tensor], batches: Batches) -> tuple[Tensor, Tensor | None]:
        """Return the losses of models that are alike, [members], and their penalties."""
        assert self.model is not None
        with reduced(self._first.device):
            given = self.model.forward(values, batches)
        labels, counted = (batches.by_member(batches.numbers[name]) for name in ("labels", "shares"))
        own = self._first.data.kind.loss(given.flatten(0, 1), labels.expand(given.shape[:2]).flatten())
        return (own.view(given.shape[:2]) * counted).sum(1), self.model.fusion.penalties()

    def predict(self, name: str) -> Iterator[None]:
        """Predict a split's items, a batch at a time."""
        split = self._first.data.splits[name]
        batches = token_batches(split.features.lengths, EVALUATION_TOKENS)
        if self.model is not None:
            self.model.fusion.prepare()
            if name not in self._evaluated:
                plan = Plan(self.model, [range(len(self.trainers))], self._readers[:1], name, counted=False)
                self._evaluated[name] = [one for (one,) in plan.batches((examples,) for examples in batches)]
        found = []
        for given in batches if self.model is None else self._evaluated[name]:
            found.append(self._decoded(name, given))
            yield
        rows = np.concatenate([split.items(examples)[0] for examples in batches])
        predicted, sure = (torch.cat(each, dim=1).cpu().numpy() for each in zip(*found, strict=True))
        self.predicted = [(rows, *own) for own in zip(predicted, sure, strict=True)]

    @torch.no_grad()
    def _decoded(self, name: str, given: Any) -> tuple[Tensor, Tensor]:
        """Return predictions and their probabilities, [members, items]."""
        data, model = self._first.data, self._first.model.eval()
        if self.model is None:
            batch = data.splits[name].batch(given, model.live(), self._first.device)
            answers = outputs(model, batch).unsqueeze(0)
        else:
            with reduced(self._first.device):
                answers = self.model.forward(self.adam.values, given)
        predicted, sure = data.kind.decode(answers.flatten(0, 1))
        return predicted.view(answers.shape[:2]), sure.view(answers.shape[:2])


def _sum(one: Tensor | None, other: Tensor | None) -> Tensor | None:
    return other if one is None else one if other is None else one.add_(other)
