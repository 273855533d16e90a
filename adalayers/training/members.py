"""The one step of training: of several trials whose models are alike, or of one of any kind."""

from __future__ import annotations

import contextlib
import functools
import logging
import math
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from adalayers.models.several import FusionModels, alike
from adalayers.tensors.ragged import to_device, token_batches
from adalayers.training.batches import TRAIN, Batches, Examples, Pass, in_passes, stacked
from adalayers.training.optimisers import Stack

if TYPE_CHECKING:
    from adalayers.training.trainer import Trainer

logger = logging.getLogger(__name__)

DIAGNOSTICS_PER_EPOCH = 10
"""A fusion's diagnostics are noted about this often between two evaluations."""
EVALUATION_TOKENS = 2048
"""Tokens, padding included, of one batch of an evaluation: about as many as in a training step, so about its memory."""
ATTENTION = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
"""On a GPU. Without cuDNN's, which prepares every new shape for longer than a step takes: batches have many."""
NO_MEMORY = ("out of memory", "not enough memory", "can't allocate memory")
"""What torch's allocators say; on a CPU in a plain RuntimeError."""
Result = TypeVar("Result")


@contextlib.contextmanager
def reduced(device: torch.device) -> Iterator[None]:
    """Compute in bfloat16 on a GPU; on a CPU as the model is."""
    if device.type != "cuda":
        yield
        return
    with torch.autocast("cuda", dtype=torch.bfloat16), sdpa_kernel(ATTENTION):
        yield


class Members:
    """Trials that train as one, each with its own parameters, rates and dropout: tensors are [members, ...].

    Where memory does not hold a batch it is passed in parts, whose gradients are summed.

    Args:
        trainers: Whose models are `alike` and computed as one, those that read one batch next to each other; or one
                  trial of any kind.

    Attributes:
        model:   Their models as one; None: of one trial of another kind.
        readers: One of the members of each batch of a step; counts: how many members read it.
    """

    def __init__(self, trainers: Sequence[Trainer]):
        self.trainers, self.trained = [*trainers], [trainer.trained for trainer in trainers]
        self._first = trainers[0]
        self.model: FusionModels | None = None
        self._fusion: Any = self._first.model.fusion
        self._values: Sequence[Tensor] = self.trained[0].parameters
        if alike(self._first.model) is not None:
            self.model, self.stack = FusionModels([each.model for each in trainers]), Stack(self.trained)
            self._fusion, self._values = self.model.fusion, self.stack.values
        self.counts = [*Counter(trainer.reads for trainer in trainers).values()]
        self.readers = [*{trainer.reads: trainer for trainer in trainers}.values()]

    def epoch(self) -> Generator[None, None, list[float]]:
        """Train an epoch, a batch at a time; return sums of a batch's mean objective times its examples, by member."""
        steps = [*zip(*(reader.batches() for reader in self.readers), strict=True)]
        spacing, noted = max(1, len(steps) // DIAGNOSTICS_PER_EPOCH), list[Any]()
        total = torch.zeros(len(self.trainers), device=self._first.device)
        for done, step in enumerate(steps, start=1):
            losses, gradients = self._as_memory_allows(self.gradients, step)
            total += losses * len(step[0])
            self._step(gradients)
            if done % spacing == 0 and done < len(steps):
                part = done / len(steps)
                points = [trainer.point(trainer.progress.epoch - 1 + part) for trainer in self.trainers]
                alone = self.model is None
                found = [self._fusion.diagnostics()] if alone else self._fusion.weights(self._values[1:])
                noted.append((points, found))
            yield
        for points, found in noted:  # copied from a GPU now, when it is waited for anyway
            named = found if self.model is None else self._fusion.named(found)
            for trainer, point, diagnostics in zip(self.trainers, points, named, strict=True):
                trainer.progress.history.append(point | diagnostics)
        return total.tolist()

    def predict(self, name: str) -> Generator[None, None, list[tuple[np.ndarray, ...]]]:
        """Predict a split, a batch at a time; return rows of labels, predictions, their probabilities, by member."""
        split, found = self._first.data.splits[name], []
        if self.model is not None:
            self.model.fusion.prepare()
        batches = token_batches(split.features.lengths, EVALUATION_TOKENS)
        for examples in batches:
            found += self._as_memory_allows(functools.partial(self._predictions, name), [examples])
            yield
        rows = np.concatenate([split.items(examples)[0] for examples in batches])
        predicted, sure = (torch.cat(each, dim=1).cpu().numpy() for each in zip(*found, strict=True))
        return [(rows, *own) for own in zip(predicted, sure, strict=True)]

    def setting(self, name: str) -> Float[Tensor, " members"]:
        """Return each member's value of a hyperparameter, for what is added to a step (CONTRIBUTING.md)."""
        values = [float(getattr(trainer.config, name)) for trainer in self.trainers]
        return to_device(torch.tensor(values, dtype=torch.get_default_dtype()), self._first.device)

    def gradients(self, passes: Sequence[Pass]) -> tuple[Float[Tensor, " members"], list[Tensor | None]]:
        """Return the objectives of a step, summed over its passes, and their gradients.

        These are [members, ...] of each group of parameters where models are stacked, else [1, ...] of each parameter,
        None where it has none.
        """
        for leaf in self._values:
            leaf.grad = None
        total = torch.zeros(len(self.trainers), device=self._first.device)
        for examples, step in passes:
            given = self._forward(TRAIN, examples)
            labels, shares = self._targets(examples, step)
            own = self._first.data.kind.loss(given.flatten(0, 1), labels.expand(given.shape[:2]).flatten())
            losses = (own.view(given.shape[:2]) * shares).sum(1)
            penalty = self._fusion.penalty()
            if penalty is not None:
                losses = losses + penalty / len(passes)
            losses.sum().backward(inputs=self._values)  # type: ignore[arg-type]
            total += losses.detach()
        gradients = [leaf.grad for leaf in self._values]
        if self.model is None:
            gradients = [None if own is None else own.unsqueeze(0) for own in gradients]
        return total, gradients

    def _step(self, gradients: Sequence[Tensor | None]) -> None:
        """Let all members take a step, each at its own rates."""
        factors = [trainer.rate_factor() for trainer in self.trainers]
        with torch.no_grad():
            if self.model is None:
                self.trained[0].step(gradients, factors[0])
            else:
                self.stack.step(gradients, factors, self.model.fusion.used())  # type: ignore[arg-type]
        for trainer in self.trainers:
            trainer.progress.step += 1

    def _targets(self, examples: Examples, step: Examples) -> list[Float[Tensor, "members items"]]:
        """Return labels, and what each counts in the mean over the step of its batch; of one batch [1, items].

        Args:
            examples: Of each batch.
            step:     Those of the whole step, of which these may be a part.
        """
        labels, shares, dtype = [], [], str(torch.get_default_dtype()).removeprefix("torch.")
        for reader, own, whole in zip(self.readers, examples, step, strict=True):
            split = reader.data.splits[TRAIN]
            rows, every = (split.items(each)[0] for each in (own, whole))
            labels.append(split.labels[rows])
            shares.append((reader.label_weights(rows) / reader.label_weights(every).sum()).astype(dtype))
        counts = self.counts if len(self.counts) > 1 else 1
        both = (stacked(each).repeat(counts, axis=0) for each in (labels, shares))
        return [to_device(each, self._first.device) for each in both]

    def _predictions(self, name: str, passes: Sequence[Pass]) -> list[list[Tensor]]:
        """Return of each pass what is predicted and how sure it is, [members, items]."""
        found = []
        for examples, _ in passes:
            with torch.no_grad():
                answers = self._forward(name, examples)
                decoded = self._first.data.kind.decode(answers.flatten(0, 1))
            found.append([each.view(answers.shape[:2]) for each in decoded])
        return found

    def _forward(self, name: str, examples: Examples) -> Float[Tensor, "members items outputs"]:
        """Return the outputs for the labels of each batch, one by one: its sequences, or its words."""
        trial = self._first
        if self.model is not None:
            batches = Batches(self, name, examples)
            with reduced(trial.device):
                return self.model.forward(self._values, batches)
        model = trial.model.train(name == TRAIN)
        batch = trial.data.splits[name].batch(examples[0], model.live(), trial.device)
        with reduced(trial.device):
            given = model.forward_batch(batch)
        if batch.words is not None:
            given = given.index_select(0, batch.words)
        return given.float().unsqueeze(0)

    def _as_memory_allows(self, do: Callable[[list[Pass]], Result], step: Examples) -> Result:
        """Return what comes of a step; one that memory does not hold has twice as many passes from now on."""
        while True:
            try:
                return do(in_passes(step, self._first.passes))
            except (RuntimeError, MemoryError) as error:
                most = max(map(len, step))
                if not is_out_of_memory(error) or self._first.passes >= most:
                    raise
            # Outside the handler, where what filled the memory is gone with its traceback.
            torch.cuda.empty_cache()
            passes = min(2 * self._first.passes, most)
            for trainer in self.trainers:
                trainer.passes = passes
            each = math.ceil(most / passes)
            logger.warning(f"out of memory on a batch of {most}: it is passed {each} at a time from now on")


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error says that memory did not suffice."""
    message = str(error).lower()
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or any(
        words in message for words in NO_MEMORY
    )
