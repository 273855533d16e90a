"""The batches of models that pass theirs as one, made step by step; on a GPU many steps are copied there at once."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from adalayers.data.trial_data import SplitData
from adalayers.models.several import FusionModels
from adalayers.states import State
from adalayers.tensors import ragged
from adalayers.tensors.counted_dropout import Draws
from adalayers.tensors.members import Batches
from adalayers.training.steps import TRAIN

if TYPE_CHECKING:
    from adalayers.training.trainer import Trainer

ROWS = 1 << 20
"""Tokens, about, that are copied at once."""
_NUMPY = {torch.float32: np.float32, torch.float64: np.float64}


class Plan:
    """How members read a split.

    Args:
        model:   The members' models.
        parts:   By batch of a step, the members that read it.
        readers: One of each.
        name:    Of the split.
        counted: Whether dropout counts instead of drawing.
    """

    def __init__(
        self,
        model: FusionModels,
        parts: Sequence[range],
        readers: Sequence[Trainer],
        name: str,
        *,
        counted: bool,
    ):
        self._model, self._parts, self._readers = model, parts, readers
        self._device, self._training, self._counted = readers[0].device, name == TRAIN, counted
        self._splits = [reader.data.splits[name] for reader in readers]
        whole = [getattr(split.features, "whole", split.features) for split in self._splits]
        same = all(each is whole[0] for each in whole) and hasattr(whole[0], "at")
        self._store: Any = whole[0] if same else None

    def batches(
        self, steps: Iterable[Sequence[np.ndarray]], taken: int = 0, passes: int = 1
    ) -> Iterator[list[Batches]]:
        """Yield the batches of each step, of these examples by batch, in as many passes; taken: steps before."""
        waiting, rows = [], 0
        for number, examples in enumerate(steps, start=taken):
            parts = zip(*(in_passes(own, passes) for own in examples), strict=True)
            waiting.append([self._of_pass(number, part, examples) for part in parts])
            rows += sum(one.numbers["rows"].size for one in waiting[-1])
            if not ragged.on_gpu(self._device) or rows >= ROWS:
                yield from self._there(waiting)
                waiting, rows = [], 0
        yield from self._there(waiting)

    def _there(self, steps: list[list[Batches]]) -> list[list[Batches]]:
        """Return the batches with their numbers on the device."""
        stay = {"rows"} if self._store is not None and not self._store.resident else set()
        every = [*itertools.chain.from_iterable(steps)]
        moving = [array for one in every for name, array in one.numbers.items() if name not in stay]
        moved = iter(ragged.to_device_at_once(moving, self._device))
        for one in every:
            one.numbers = {
                name: torch.from_numpy(array) if name in stay else next(moved)
                for name, array in one.numbers.items()
            }
            one.states = functools.partial(self._states, one.examples, one.numbers["rows"])
        return steps

    def _of_pass(self, number: int, examples: Sequence[np.ndarray], whole: Sequence[np.ndarray]) -> Batches:
        """Return the batches of a pass of the step `number`, whose examples are `whole`."""
        of_split = [*zip(self._splits, examples, strict=True)]
        lengths = np.stack([split.lengths(own) for split, own in of_split])
        longest = lengths.max(axis=0)
        sizes = ragged.group_sizes(longest.tolist(), self._model.head.pass_tokens)
        times = np.maximum.reduceat(longest, np.cumsum([0, *sizes[:-1]]))
        padded = np.repeat(times, sizes)
        starts = np.cumsum(padded) - padded
        padding = np.ones((len(lengths), padded.sum()), dtype=bool)
        for own, of_batch in zip(padding, lengths, strict=True):
            own[ragged.ragged_rows(starts, of_batch)] = False
        numbers = {"rows": self._rows(of_split, lengths, longest)}
        if padding.any():
            numbers |= {"padding": padding, "places": ragged.ragged_rows(starts, longest)}
        if len(self._parts) > 1:
            numbers["of_member"] = np.repeat(np.arange(len(self._parts)), [len(part) for part in self._parts])
        items = [split.items(own) for split, own in of_split]
        if self._splits[0].word_offsets is not None:
            numbers["words"] = _stacked(starts[owners] + places for _, owners, places in items)
        if self._training:
            numbers["labels"] = _stacked(
                split.labels[rows] for split, (rows, *_) in zip(self._splits, items, strict=True)
            )
            of_item = zip(self._readers, items, whole, strict=True)
            numbers["shares"] = _stacked(shares(reader, rows, own) for reader, (rows, *_), own in of_item)
            if self._counted:
                numbers |= self._keys(number, of_split, longest)
        streams = None if self._counted else [reader.generator for reader in self._readers]
        groups = [*zip(sizes, times.tolist(), strict=True)]
        return Batches(self._parts, examples, groups, numbers, self._training, streams)

    def _keys(
        self, number: int, of_split: Sequence[tuple[SplitData, np.ndarray]], lengths: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Return what counted dropout is told by: of sequences in the head, of tokens in the fusion."""
        places = ragged.ragged_rows(np.zeros_like(lengths), lengths)
        keys: dict[str, list[np.ndarray]] = {}
        for reader, (split, examples) in zip(self._readers, of_split, strict=True):
            index, progress = split.index[examples], reader.progress
            draws = Draws(reader.seed, progress.epoch, progress.step + number)
            for where in self._model.dropouts:
                keys.setdefault(where, []).append(draws.keys(where, index))
            for where in self._model.fusion.dropouts():
                keys.setdefault(where, []).append(draws.keys(where, np.repeat(index, lengths), places))
        return {where: np.stack(own).view(np.int32) for where, own in keys.items()}

    def _rows(
        self, of_split: Sequence[tuple[SplitData, np.ndarray]], lengths: np.ndarray, longest: np.ndarray
    ) -> np.ndarray:
        """Return rows of what is stored, or of the batches end to end, each sequence as long as the longest."""
        rows, first = [], 0
        for (split, examples), own in zip(of_split, lengths, strict=True):
            stretched, features = ragged.stretched_rows(own, longest), split.features
            rows.append(first + stretched if self._store is None else features.rows(examples)[stretched])  # type: ignore[attr-defined]
            first += int(own.sum())
        return np.concatenate(rows)

    def _states(
        self, examples: Sequence[np.ndarray], rows: Tensor, states: Sequence[State]
    ) -> Iterable[Tensor]:
        """Return hidden states, [batches * tokens, K] each; a base model computes in its own type."""
        if self._store is not None:
            read = self._store.at(rows, states, self._device)
            return (read[state] for state in states)
        features = [split.features for split in self._splits]
        with torch.autocast(self._device.type, enabled=False):
            if all(each is features[0] for each in features):  # one call for all
                given = [features[0].read(np.concatenate(examples), states, self._device)]
            else:
                given = [
                    each.read(own, states, self._device) for each, own in zip(features, examples, strict=True)
                ]
        flats = (
            torch.cat([own[state] for own in given]) if given[1:] else given[0][state] for state in states
        )
        return (flat.index_select(0, rows) for flat in flats) if self._parts[1:] else flats


def shares(reader: Trainer, rows: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Return what labels of train count in the mean over a batch, whose examples are `whole`; rows: of the labels."""
    split, weights = reader.data.splits[TRAIN], reader.class_weights
    every = split.items(whole)[0]
    own, total = np.ones(len(rows)), len(every)
    if weights is not None:
        own, total = weights[split.labels[rows]], weights[split.labels[every]].sum()
    return (own / total).astype(_NUMPY[torch.get_default_dtype()])


def in_passes(examples: np.ndarray, passes: int) -> list[np.ndarray]:
    """Return the examples of a batch in as many passes, as far as there are as many examples."""
    return np.array_split(examples, min(passes, len(examples)))


def _stacked(rows: Iterable[np.ndarray]) -> np.ndarray:
    """Return arrays as rows as long as the longest, zeros at their ends."""
    every = [*rows]
    most = max(map(len, every))
    return np.stack([np.pad(row, (0, most - len(row))) for row in every])
