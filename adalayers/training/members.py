"""The one step of training: of several trials whose models are alike, or of one of any kind."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from adalayers.models.several import FusionModels, alike
from adalayers.tensors.ragged import to_device, token_batches
from adalayers.training.evaluation import EVALUATION_TOKENS, reduced
from adalayers.training.optimisers import Stack
from adalayers.training.plan import Plan, in_passes, shares
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
        trainers: Whose models are `alike` and computed as one, those that read one batch next to each other; or one
                  trial of any kind.
    """

    def __init__(self, trainers: Sequence[Trainer]):
        self.trainers, self.trained = [*trainers], [trainer.trained for trainer in trainers]
        self._first = trainers[0]
        self.model: FusionModels | None = None
        self._values: Sequence[Tensor] = self.trained[0].parameters
        if alike(self._first.model) is not None:
            self.model, self.stack = FusionModels([each.model for each in trainers]), Stack(self.trained)
            self._values = self.stack.values
        self._counts = [*Counter(trainer.reads for trainer in trainers).values()]
        self._readers = [*{trainer.reads: trainer for trainer in trainers}.values()]

    def epoch(self) -> Generator[None, None, list[float]]:
        """Train an epoch, a batch at a time; return sums of a batch's mean objective times its examples, by member."""
        self._steps = [*zip(*(reader.batches() for reader in self._readers), strict=True)]
        self._total = torch.zeros(len(self.trainers), device=self._first.device)
        self._done, self._noted = 0, dict[int, Any]()
        yield from self._as_memory_allows(self._train)
        if self.model is not None:
            self._noted = {done: self.model.fusion.named(weights) for done, weights in self._noted.items()}
        for m, trainer in enumerate(self.trainers):
            trainer.took(len(self._steps), {done: noted[m] for done, noted in self._noted.items()})
        return self._total.tolist()

    def predict(self, name: str) -> Generator[None, None, list[tuple[np.ndarray, ...]]]:
        """Predict a split, a batch at a time; return rows of labels, predictions, their probabilities, by member."""
        return (yield from self._as_memory_allows(lambda: self._predict(name)))

    def setting(self, name: str) -> Float[Tensor, " members"]:
        """Return each member's value of a hyperparameter."""
        values = [float(getattr(trainer.config, name)) for trainer in self.trainers]
        return to_device(torch.tensor(values, dtype=torch.get_default_dtype()), self._first.device)

    def gradients(self, passes: Sequence[Any]) -> tuple[Float[Tensor, " members"], list[Tensor | None]]:
        """Return the objectives of a batch, summed over its passes, and their gradients.

        These are [members, ...] of each group of parameters where models are stacked, else [1, ...] of each parameter,
        None where it has none.
        """
        for leaf in self._values:
            leaf.grad = None
        total = torch.zeros_like(self._total)
        for one in passes:
            given, batch = self._forward(TRAIN, one)
            if self.model is None:
                labels, penalties = batch.labels.unsqueeze(0), self._first.model.fusion.penalty()
                counted = to_device(
                    torch.from_numpy(shares(self._first, batch.rows, one[1][0])), given.device
                )
            else:
                labels, counted = (batch.by_member(batch.numbers[name]) for name in ("labels", "shares"))
                penalties = self.model.fusion.penalties()
            own = self._losses(given.flatten(0, 1), labels.expand(given.shape[:2]).flatten())
            losses = (own.view(given.shape[:2]) * counted).sum(1)
            if penalties is not None:
                losses = losses + penalties / len(passes)
            losses.sum().backward(inputs=self._values)  # type: ignore[arg-type]
            total += losses.detach()
        gradients = [leaf.grad for leaf in self._values]
        if self.model is None:
            gradients = [None if own is None else own.unsqueeze(0) for own in gradients]
        return total, gradients

    def _as_memory_allows(self, going_on: Callable[[], Generator[None, None, Any]]) -> Any:
        """Do what goes on from where it stands; a batch that memory does not hold is passed in twice as many parts."""
        while True:
            try:
                return (yield from going_on())
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

    def _train(self) -> Generator[None, None, None]:
        """Take the steps that are left of the epoch. Where memory does not suffice for one all is as before it."""
        steps, spacing = self._steps[self._done :], max(1, len(self._steps) // DIAGNOSTICS_PER_EPOCH)
        divided: Iterable[Any] = (in_passes(step, self._first.passes) for step in steps)
        if self.model is not None:
            divided = Plan(self.model, self._counts, self._readers, TRAIN).batches(divided, self._done)
        for step, passes in zip(steps, divided, strict=True):
            losses, gradients = self.gradients(passes)
            factors = [trainer.rate_factor(self._done) for trainer in self.trainers]
            with torch.no_grad():
                if self.model is None:
                    own = (None if each is None else each[0] for each in gradients)
                    self.trained[0].step(own, factors[0])
                else:
                    self.stack.step(gradients, factors, self.model.fusion.used())  # type: ignore[arg-type]
            self._total += losses * len(step[0])
            self._done += 1
            if self._done % spacing == 0 and self._done < len(self._steps):
                if self.model is None:
                    self._noted[self._done] = [self._first.model.fusion.diagnostics()]
                else:
                    self._noted[self._done] = self.model.fusion.weights(self._values[1:])
            yield

    def _forward(self, name: str, one: Any) -> tuple[Float[Tensor, "members items outputs"], Any]:
        """Return the outputs for a batch's labels, one by one (its sequences, or its words), and the batch.

        Args:
            one: A batch of `Plan`; of a trial of any kind its examples, and those of the whole step.
        """
        trial = self._first
        if self.model is not None:
            with reduced(trial.device):
                return self.model.forward(self._values, one), one
        model, ((examples,), _) = trial.model.train(name == TRAIN), one
        batch = trial.data.splits[name].batch(examples, model.live(), trial.device)
        with reduced(trial.device):
            given = model.forward_batch(batch)
        if batch.words is not None:
            given = given.index_select(0, batch.words)
        return given.float().unsqueeze(0), batch

    def _losses(self, given: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each example, of whichever member."""
        return self._first.data.kind.loss(given, labels)

    def _predict(self, name: str) -> Generator[None, None, list[tuple[np.ndarray, ...]]]:
        split = self._first.data.splits[name]
        batches = token_batches(split.features.lengths, EVALUATION_TOKENS // self._first.passes)
        given: Iterable[Any] = ([([examples], [examples])] for examples in batches)
        if self.model is not None:
            given = Plan(self.model, [len(self.trainers)], self._readers[:1], name).batches(given)
        found = []
        for (one,) in given:
            with torch.no_grad():
                answers, _ = self._forward(name, one)
                decoded = self._first.data.kind.decode(answers.flatten(0, 1))
            found.append([each.view(answers.shape[:2]) for each in decoded])
            yield
        rows = np.concatenate([split.items(examples)[0] for examples in batches])
        predicted, sure = (torch.cat(each, dim=1).cpu().numpy() for each in zip(*found, strict=True))
        return [(rows, *own) for own in zip(predicted, sure, strict=True)]
