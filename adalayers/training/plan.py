"""The batches of models that pass theirs as one, made step by step; on a GPU many steps are copied there at once."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from adalayers.data.trial_data import SplitData
from adalayers.features.features import in_whole
from adalayers.models.several import FusionModels
from adalayers.states import State
from adalayers.tensors import ragged
from adalayers.tensors.dropout import row_keys
from adalayers.tensors.members import Batches
from adalayers.training.steps import TRAIN

if TYPE_CHECKING:
    from adalayers.training.trainer import Trainer

STEPS = 16
"""Whose batches are copied at once."""
Examples = Sequence[np.ndarray]
"""Of each batch of a step."""


class Plan:
    """How members read a split.

    Args:
        model:   The members' models.
        members: How many read each batch of a step; those of one stand next to each other.
        readers: One of the members of each batch.
        name:    Of the split.
    """

    def __init__(self, model: FusionModels, members: Sequence[int], readers: Sequence[Trainer], name: str):
        self.model, self.members, self.readers, self.training = model, members, readers, name == TRAIN
        self._splits = [reader.data.splits[name] for reader in readers]
        self._device = readers[0].device

    def batches(
        self, steps: Iterable[Sequence[tuple[Examples, Examples]]], taken: int = 0
    ) -> Iterator[list[Batches]]:
        """Yield the batches of each step, pass by pass.

        Args:
            steps: Of each pass, the examples of each batch, and those of the whole step.
            taken: Steps before.
        """
        self.model.fusion.prepare()
        made = ([self._of_pass(n, *one) for one in passes] for n, passes in enumerate(steps, start=taken))
        while some := [*itertools.islice(made, STEPS)]:
            every = [*itertools.chain.from_iterable(some)]
            arrays = [array for one in every for array in one.numbers.values()]
            moved = iter(ragged.to_device_at_once(arrays, self._device))
            for one in every:
                one.numbers = {name: next(moved) for name in one.numbers}
            yield from some

    def _of_pass(self, number: int, examples: Examples, whole: Examples) -> Batches:
        """Return the batches of a pass of the step `number`."""
        of_split = [*zip(self._splits, examples, strict=True)]
        lengths = np.stack([split.lengths(own) for split, own in of_split])
        longest = lengths.max(axis=0)
        sizes = ragged.group_sizes(longest.tolist(), self.model.head.pass_tokens)
        times = np.maximum.reduceat(longest, np.cumsum([0, *sizes[:-1]]))
        padded = np.repeat(times, sizes)
        starts = np.cumsum(padded) - padded
        place = np.arange(padded.sum()) - np.repeat(starts, padded)  # within its sequence
        padding, numbers = place >= np.repeat(lengths, padded, axis=1), dict[str, Any]()
        if padding.any():
            places = np.flatnonzero(place < np.repeat(longest, padded))
            numbers |= {"padding": padding, "places": places}
        if len(self.members) > 1:
            numbers["of_member"] = np.repeat(np.arange(len(self.members)), self.members)
        items, counted = [split.items(own) for split, own in of_split], ragged.on_gpu(self._device)
        if self._splits[0].word_offsets is not None:
            numbers["words"] = _stacked(starts[owners] + places for _, owners, places in items)
        if self.training:
            rows = [own for own, *_ in items]
            labels = (split.labels[own] for split, own in zip(self._splits, rows, strict=True))
            numbers |= {
                "labels": _stacked(labels),
                "shares": _stacked(map(shares, self.readers, rows, whole)),
            }
            if counted:
                numbers |= self._keys(number, of_split, longest)
        stretched = ragged.stretched_rows(lengths.ravel(), np.tile(longest, len(lengths)))
        return Batches(
            self.members,
            [*zip(sizes, times.tolist(), strict=True)],
            numbers,
            self.training,
            None if counted else self.readers[0].generator,
            functools.partial(self._states, examples, stretched),
        )

    def _keys(
        self, number: int, of_split: Sequence[tuple[SplitData, np.ndarray]], lengths: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Return what counted dropout is told by: of sequences in the head, of tokens in the fusion."""
        places = ragged.ragged_rows(np.zeros_like(lengths), lengths)
        keys: dict[str, list[np.ndarray]] = {}
        for reader, (split, examples) in zip(self.readers, of_split, strict=True):
            index = split.index[examples]
            step = reader.seed, reader.progress.epoch, reader.progress.step + number
            for where in self.model.dropouts:
                keys.setdefault(where, []).append(row_keys(step, where, index))
            for where in self.model.fusion.dropouts():
                keys.setdefault(where, []).append(row_keys(step, where, np.repeat(index, lengths), places))
        return {where: np.stack(own) for where, own in keys.items()}

    def _states(self, examples: Examples, rows: np.ndarray, states: Sequence[State]) -> Iterable[Tensor]:
        """Return hidden states, [batches * tokens, K] each: rows of those of the batches end to end."""
        of_splits = (in_whole(split.features, own) for split, own in zip(self._splits, examples, strict=True))
        features, numbers = zip(*of_splits, strict=True)
        # A base model computes in its own type.
        with torch.autocast(self._device.type, enabled=False):
            read = features[0].read(np.concatenate(numbers), states, self._device)
            if len(examples) == 1:
                return (read[state] for state in states)
            index = ragged.to_device(torch.from_numpy(rows), self._device)
            return (read[state].index_select(0, index) for state in states)


def shares(reader: Trainer, rows: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Return what labels of train count in the mean over a batch, whose examples are `whole`; rows: of the labels."""
    split, weights = reader.data.splits[TRAIN], reader.class_weights
    every = split.items(whole)[0]
    own, total = np.ones(len(rows)), len(every)
    if weights is not None:
        own, total = weights[split.labels[rows]], weights[split.labels[every]].sum()
    return torch.tensor(own / total, dtype=torch.get_default_dtype()).numpy()


def in_passes(whole: Examples, passes: int) -> list[tuple[Examples, Examples]]:
    """Return the examples of each batch of a step in as many passes, as far as there are as many, and the whole."""
    parts = zip(*(np.array_split(own, min(passes, len(own))) for own in whole), strict=True)
    return [(part, whole) for part in parts]


def _stacked(rows: Iterable[np.ndarray]) -> np.ndarray:
    """Return arrays as rows as long as the longest, zeros at their ends."""
    return pad_sequence([torch.from_numpy(row) for row in rows], batch_first=True).numpy()
