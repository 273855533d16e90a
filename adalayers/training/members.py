"""The one step of training: of several trials whose models are alike, or of one of any kind."""

from __future__ import annotations

import itertools
import logging
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from adalayers.models.several import FusionModels
from adalayers.tensors.members import Batches
from adalayers.tensors.ragged import to_device, token_batches
from adalayers.training.evaluation import EVALUATION_TOKENS, outputs, reduced
from adalayers.training.optimisers import Stack
from adalayers.training.plan import Examples, Plan, in_passes, shares
from adalayers.training.steps import TRAIN, is_out_of_memory

if TYPE_CHECKING:
    from adalayers.training.trainer import Trainer

logger = logging.getLogger(__name__)

DIAGNOSTICS_PER_EPOCH = 10
"""A fusion's diagnostics are noted about this often between two evaluations."""


class Members:
    """Trials that train as one, each with its own parameters, rates and dropout: tensors are [members, ...].

    Where memory does not hold a batch it is passed in parts, whose gradients are summed.

    Args:
        trainers: Those that read one batch stand next to each other.
        stacked:  Whether their models are `alike` and computed as one; else there is one trial, of any kind.

    Attributes:
        results: What came of the last `epoch` or `predict`, by member.
    """

    def __init__(self, trainers: Sequence[Trainer], *, stacked: bool):
        self.trainers, self.trained = [*trainers], [trainer.trained for trainer in trainers]
        self._first = trainers[0]
        self.model = FusionModels([trainer.model for trainer in trainers]) if stacked else None
        if stacked:
            self.stack = Stack(self.trained)
        self._parts: list[range] = []
        for _, own in itertools.groupby(trainers, key=lambda trainer: trainer.reads):
            start = self._parts[-1].stop if self._parts else 0
            self._parts.append(range(start, start + len([*own])))
        self._readers = [trainers[part.start] for part in self._parts]
        self.results: list[Any] = []

    def epoch(self) -> Iterator[None]:
        """Train an epoch, a batch at a time; of it come sums of a batch's mean objective times its examples."""
        self._steps = [*zip(*(reader.batches() for reader in self._readers), strict=True)]
        self._total = torch.zeros(len(self.trainers), device=self._first.device)
        self._done, self._noted = 0, dict[int, Any]()
        yield from self._as_memory_allows(self._train)
        self.results, numbers = self._total.tolist(), [*self._noted.values()]
        if self.model is not None and numbers:
            numbers = torch.stack(numbers).tolist()
        for m, trainer in enumerate(self.trainers):
            own = numbers if self.model is None else [self.model.fusion.named(m, each[m]) for each in numbers]
            trainer.took(len(self._steps), dict(zip(self._noted, own, strict=True)))

    def predict(self, name: str) -> Iterator[None]:
        """Predict a split's items, a batch at a time; of it come rows of labels, predictions, their probabilities."""
        yield from self._as_memory_allows(lambda: self._predict(name))

    def setting(self, name: str) -> Float[Tensor, " members"]:
        """Return each member's value of a hyperparameter."""
        values = [float(getattr(trainer.config, name)) for trainer in self.trainers]
        return to_device(torch.tensor(values, dtype=torch.get_default_dtype()), self._first.device)

    def gradients(self, passes: Sequence[Any]) -> tuple[Float[Tensor, " members"], list[Tensor | None]]:
        """Return the objectives of a batch, summed over its passes, and their gradients.

        These are [members, ...] of each group of parameters where models are stacked, else [1, ...] of each parameter,
        None where it has none.
        """
        leaves: Sequence[Tensor] = self.trained[0].parameters
        if self.model is not None:
            leaves = [values.detach().requires_grad_() for values in self.stack.values]
        for leaf in leaves:
            leaf.grad = None
        total = torch.zeros_like(self._total)
        for one in passes:
            losses, penalties = self._of_model(*one) if self.model is None else self._of_models(leaves, one)
            if penalties is not None:
                losses = losses + penalties / len(passes)
            losses.sum().backward(inputs=leaves)  # type: ignore[arg-type]
            total += losses.detach()
        gradients = [leaf.grad for leaf in leaves]
        if self.model is None:
            gradients = [None if own is None else own.unsqueeze(0) for own in gradients]
        return total, gradients

    def _step(self, gradients: Sequence[Any]) -> None:
        """Take the step of the optimiser."""
        factors = [trainer.rate_factor(self._done) for trainer in self.trainers]
        if self.model is not None:
            self.stack.step(gradients, factors, self.model.fusion.used())
        else:
            own = [None if gradient is None else gradient[0] for gradient in gradients]
            self.trained[0].step(own, factors[0])

    def _as_memory_allows(self, going_on: Callable[[], Iterator[None]]) -> Iterator[None]:
        """Do what goes on from where it stands; a batch that memory does not hold is passed in twice as many parts."""
        while True:
            try:
                yield from going_on()
                return
            except (RuntimeError, MemoryError) as error:
                most = self._first.config.batch_size
                if not is_out_of_memory(error) or self._first.passes >= most:
                    raise
            # Outside the handler, where what filled the memory is gone with its traceback.
            torch.cuda.empty_cache()
            passes = min(2 * self._first.passes, most)
            for trainer in self.trainers:
                trainer.passes = passes
            each = math.ceil(most / passes)
            logger.warning(f"out of memory on a batch of {most}: it is passed {each} at a time from now on")

    def _train(self) -> Iterator[None]:
        """Take the steps that are left of the epoch. Where memory does not suffice for one all is as before it."""
        steps, spacing = self._steps[self._done :], max(1, len(self._steps) // DIAGNOSTICS_PER_EPOCH)
        divided: Iterable[Sequence[Any]] = (in_passes(step, self._first.passes) for step in steps)
        if self.model is not None:
            plan = Plan(self.model, self._parts, self._readers, TRAIN)
            divided = plan.batches(divided, self._done)
        for step, passes in zip(steps, divided, strict=True):
            losses, gradients = self.gradients(passes)
            with torch.no_grad():
                self._step(gradients)
            self._total += losses * len(step[0])
            self._done += 1
            if self._done % spacing == 0 and self._done < len(self._steps):
                fusion = self._first.model.fusion
                self._noted[self._done] = (
                    self.model.fusion.weights(self.stack.values[1:]) if self.model else fusion.diagnostics()
                )
            yield

    def _of_model(self, examples: Examples, whole: Examples) -> tuple[Tensor, Tensor | None]:
        """Return the loss of a trial of any kind over examples of a batch, [1], and its penalty."""
        trial = self._first
        model = trial.model.train()
        batch = trial.data.splits[TRAIN].batch(examples[0], model.live(), trial.device)
        own = self._losses(outputs(model, batch), batch.labels)
        counted = to_device(torch.from_numpy(shares(trial, batch.rows, whole[0])), trial.device)
        return (own * counted).sum().unsqueeze(0), model.fusion.penalty()

    def _of_models(self, values: Sequence[Tensor], batches: Batches) -> tuple[Tensor, Tensor | None]:
        """Return the losses of models that are alike, [members], and their penalties."""
        assert self.model is not None
        with reduced(self._first.device):
            given = self.model.forward(values, batches)
        labels, counted = (batches.by_member(batches.numbers[name]) for name in ("labels", "shares"))
        own = self._losses(given.flatten(0, 1), labels.expand(given.shape[:2]).flatten())
        return (own.view(given.shape[:2]) * counted).sum(1), self.model.fusion.penalties()

    def _losses(self, given: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each example, of whichever member."""
        return self._first.data.kind.loss(given, labels)

    def _predict(self, name: str) -> Iterator[None]:
        split = self._first.data.splits[name]
        batches = token_batches(split.features.lengths, EVALUATION_TOKENS // self._first.passes)
        given: Iterable[Any] = batches
        if self.model is not None:
            plan = Plan(self.model, [range(len(self.trainers))], self._readers[:1], name)
            given = (one for (one,) in plan.batches([([examples], [examples])] for examples in batches))
        found = []
        for one in given:
            found.append(self._decoded(name, one))
            yield
        rows = np.concatenate([split.items(examples)[0] for examples in batches])
        predicted, sure = (torch.cat(each, dim=1).cpu().numpy() for each in zip(*found, strict=True))
        self.results = [(rows, *own) for own in zip(predicted, sure, strict=True)]

    @torch.no_grad()
    def _decoded(self, name: str, given: Any) -> tuple[Tensor, Tensor]:
        """Return predictions and their probabilities, [members, items]."""
        data, model = self._first.data, self._first.model.eval()
        if self.model is None:
            batch = data.splits[name].batch(given, model.live(), self._first.device)
            answers = outputs(model, batch).unsqueeze(0)
        else:
            with reduced(self._first.device):
                answers = self.model.forward(self.stack.values, given)
        predicted, sure = data.kind.decode(answers.flatten(0, 1))
        return predicted.view(answers.shape[:2]), sure.view(answers.shape[:2])
