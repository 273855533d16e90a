"""The batches of models that pass theirs as one: made step by step, and on a GPU copied there for many steps at once."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from adalayers.data.trial_data import SplitData
from adalayers.models.several import FusionModels
from adalayers.states import State
from adalayers.tensors import ragged
from adalayers.tensors.counted_dropout import Draws
from adalayers.tensors.members import Batches

Arrays = dict[str, np.ndarray]
"""Fields of `Batches` by name; what dropout is told by after `KEYS`."""
KEYS = "keys "
ROWS = 1 << 20
"""Tokens, about, that are copied at once."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """How members read a split.

    Attributes:
        parts:  By batch of a step, the members that read it.
        splits: By batch, what it is of.
        weights: Of the classes in the loss; None: all have the same.
        draws:  Gives, where dropout counts, the draws of a batch in a step, by their numbers.
        streams: By batch, that dropout draws from; None: it counts.
    """

    model: FusionModels
    parts: Sequence[range]
    splits: Sequence[SplitData]
    device: torch.device
    weights: np.ndarray | None = None
    training: bool = False
    draws: Callable[[int, int], Draws] | None = None
    streams: Sequence[torch.Generator] | None = None

    def batches(self, steps: Iterable[Sequence[np.ndarray]], passes: int = 1) -> Iterator[list[Batches]]:
        """Yield the batches of each step, of these examples by batch, in as many passes."""
        waiting, rows = [], 0
        for number, examples in enumerate(steps):
            parts = zip(*(in_passes(own, passes) for own in examples), strict=True)
            waiting.append([self._of_pass(number, part, examples) for part in parts])
            rows += sum(own["rows"].size for _, own in waiting[-1])
            if not ragged.on_gpu(self.device) or rows >= ROWS:
                yield from self._there(waiting)
                waiting, rows = [], 0
        yield from self._there(waiting)

    def _there(self, steps: Sequence[Sequence[tuple[Batches, Arrays]]]) -> list[list[Batches]]:
        """Return the batches of each step with their numbers on the device."""
        here = {"rows"} if self._stored is not None and not self._stored.resident else set()
        every = itertools.chain.from_iterable(steps)
        numbers = [array for _, own in every for name, array in own.items() if name not in here]
        copied = iter(ragged.to_device_at_once(numbers, self.device))

        def there(batches: Batches, own: Arrays) -> Batches:
            numbers = {
                name: torch.from_numpy(array) if name in here else next(copied) for name, array in own.items()
            }
            batches.states = functools.partial(self._states, batches.examples, numbers.pop("rows"))
            keys = {name[len(KEYS) :]: numbers.pop(name) for name in own if name.startswith(KEYS)}
            return dataclasses.replace(batches, keys=keys, **numbers)

        return [[there(*one) for one in step] for step in steps]

    def _of_pass(
        self, number: int, examples: Sequence[np.ndarray], whole: Sequence[np.ndarray]
    ) -> tuple[Batches, Arrays]:
        """Return the batches of a pass of a step without their numbers, and these by name.

        Args:
            whole: The examples of the whole step.
        """
        of_split = list(zip(self.splits, examples, strict=True))
        lengths = np.stack([split.lengths(own) for split, own in of_split])
        longest = lengths.max(axis=0)
        groups, first = [], 0
        for n in ragged.group_sizes(longest.tolist(), self.model.head.pass_tokens):
            groups.append((n, int(longest[first : first + n].max())))
            first += n
        times = np.repeat([time for _, time in groups], [n for n, _ in groups])
        starts, size = np.cumsum(times) - times, int(times.sum())
        arrays = {"rows": self._rows(of_split, lengths, longest)}
        if (longest < times).any():
            arrays["places"] = ragged.ragged_rows(starts, longest)
        if (lengths < times).any():
            padding = np.ones((len(lengths), size), dtype=bool)
            for own, of_batch in zip(padding, lengths, strict=True):
                own[ragged.ragged_rows(starts, of_batch)] = False
            arrays["padding"] = padding
        items = [split.items(own) for split, own in of_split]
        if self.splits[0].word_offsets is not None:
            arrays["words"] = _padded([starts[owners] + places for _, owners, places in items])
        if self.training:
            rows = [own for own, *_ in items]
            labels = [split.labels[own] for split, own in zip(self.splits, rows, strict=True)]
            arrays["labels"] = _padded(labels)
            of_whole = zip(self.splits, rows, whole, strict=True)
            arrays["shares"] = _padded([shares(split, own, every, self.weights) for split, own, every in of_whole])
            arrays |= self._keys(number, of_split, longest)
        batches = Batches(self.parts, examples, groups, lambda states: (), self.training, self.streams)
        if len(self.parts) > 1:
            arrays["of_member"] = np.repeat(np.arange(len(self.parts)), [len(part) for part in self.parts])
        return batches, arrays

    def _keys(self, number: int, of_split: Sequence[tuple[SplitData, np.ndarray]], lengths: np.ndarray) -> dict[str, np.ndarray]:
        """Return what counted dropout is told by: of sequences in the head, of tokens in the fusion."""
        if self.draws is None:
            return {}
        places = ragged.ragged_rows(np.zeros_like(lengths), lengths)
        keys: dict[str, list[np.ndarray]] = {}
        for batch, (split, examples) in enumerate(of_split):
            draws, index = self.draws(number, batch), split.index[examples]
            for where in self.model.dropouts:
                keys.setdefault(where, []).append(draws.keys(where, index))
            for where in self.model.fusion.dropouts():
                keys.setdefault(where, []).append(draws.keys(where, np.repeat(index, lengths), places))
        return {KEYS + where: np.stack(own).view(np.int32) for where, own in keys.items()}

    def _rows(self, of_split: Sequence[tuple[SplitData, np.ndarray]], lengths: np.ndarray, longest: np.ndarray) -> np.ndarray:
        """Return the rows of what is stored, or of the batches end to end, with each sequence as long as the longest."""
        rows, first = [], 0
        for (split, examples), own in zip(of_split, lengths, strict=True):
            stretched = ragged.stretched_rows(own, longest)
            rows.append(first + stretched if self._stored is None else split.features.rows(examples)[stretched])
            first += int(own.sum())
        return np.concatenate(rows)

    @functools.cached_property
    def _stored(self) -> Any:
        """The store that all batches are read from; None where there is none."""
        stores = [getattr(split.features, "whole", split.features) for split in self.splits]
        return stores[0] if all(store is stores[0] for store in stores) and hasattr(stores[0], "at") else None

    def _states(self, examples: Sequence[np.ndarray], rows: Tensor, states: Sequence[State]) -> Iterable[Tensor]:
        """Return hidden states, [batches * tokens, K] each; a base model passes in the type that it computes in."""
        if self._stored is not None:
            read = self._stored.at(rows, states, self.device)
            return (read[state] for state in states)
        with torch.autocast(self.device.type, enabled=False):
            features = [split.features for split in self.splits]
            if all(each is features[0] for each in features):  # one call for all
                given = [features[0].read(np.concatenate(examples), states, self.device)]
            else:
                given = [each.read(own, states, self.device) for each, own in zip(features, examples, strict=True)]
        flats = (given[0][state] if len(given) == 1 else torch.cat([own[state] for own in given]) for state in states)
        return flats if len(self.parts) == 1 else (flat.index_select(0, rows) for flat in flats)


def shares(split: SplitData, rows: np.ndarray, whole: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Return what labels count in the mean over a batch, by the weights of their classes.

    Args:
        rows:  Of the labels in the split.
        whole: The examples of the batch.
    """
    every = split.items(whole)[0]
    own, total = (np.ones(len(rows)), len(every))
    if weights is not None:
        own, total = weights[split.labels[rows]], weights[split.labels[every]].sum()
    return (own / total).astype(_NUMPY[torch.get_default_dtype()])


def in_passes(examples: np.ndarray, passes: int) -> list[np.ndarray]:
    """Return the examples of a batch in as many passes, as far as there are as many examples."""
    return np.array_split(examples, min(passes, len(examples)))


_NUMPY = {torch.float32: np.float32, torch.float64: np.float64}


def _padded(rows: Sequence[np.ndarray]) -> np.ndarray:
    """Return arrays as rows as long as the longest, zeros at their ends."""
    most = max(map(len, rows))
    return np.stack([np.pad(row, (0, most - len(row))) for row in rows])
