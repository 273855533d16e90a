"""A task's splits joined with their hidden states: all that a trial reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from adalayers.config import Shape
from adalayers.features.features import Features
from adalayers.ragged import moved, ragged_index
from adalayers.tasks import metrics

BUCKET_BATCHES = 50
"""Batches whose sequences are sorted by length together: padding stays small, order stays near random."""


@dataclass(frozen=True)
class Batch:
    """One batch of a split.

    states:  {hidden state: [tokens, K]}, real tokens end to end, as precise as the features hold them; read when
             asked for
    lengths: int64 [batch], tokens of each sequence, on the CPU
    labels:  int64 [batch], or [words] for tokens
    words:   for tokens: int64 [words], places of the words' first sub-tokens in [batch * time], time the longest
    rows:    where the labels stand in the split's flat `labels`; words lost to truncation have no row here
    """

    states: Mapping[int, Tensor]
    lengths: Tensor
    labels: Tensor
    words: Tensor | None
    rows: np.ndarray


@dataclass(frozen=True)
class SplitData:
    """A split: features beside flat labels.

    labels:       int64 [n], or [words of all sentences] for tokens
    index:        int64 [n], row of each example in the source split
    word_starts:  for tokens: int64 [words], place of a word's first sub-token in its sequence, -1 if cut away
    word_offsets: for tokens: int64 [n + 1], example i owns the words word_offsets[i]..word_offsets[i + 1]
    """

    features: Features
    labels: np.ndarray
    index: np.ndarray
    word_starts: np.ndarray | None = None
    word_offsets: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.index)

    def batch(self, examples: np.ndarray, states: Sequence[int], device: torch.device) -> Batch:
        """Return the sequences `examples` with the hidden states asked for."""
        lengths = self.features.lengths[examples]
        words, rows = None, examples
        if self.word_offsets is not None and self.word_starts is not None:
            rows = ragged_index(self.word_offsets, examples)
            per_example = self.word_offsets[examples + 1] - self.word_offsets[examples]
            places = self.word_starts[rows] + np.repeat(np.arange(len(examples)) * lengths.max(), per_example)
            kept = self.word_starts[rows] >= 0
            rows, words = rows[kept], moved(torch.from_numpy(places[kept]), device)
        return Batch(
            states=self.features.read(examples, states, device),
            lengths=torch.from_numpy(lengths),
            labels=moved(torch.from_numpy(self.labels[rows]), device),
            words=words,
            rows=rows,
        )

    def shuffled(self, batch_size: int, seed: int, epoch: int) -> list[np.ndarray]:
        """Return an epoch's batches: shuffled, sorted by length within buckets, in shuffled order."""
        rng = np.random.default_rng([seed, epoch])
        order = rng.permutation(len(self))
        batches = []
        for start in range(0, len(order), batch_size * BUCKET_BATCHES):
            bucket = order[start : start + batch_size * BUCKET_BATCHES]
            bucket = bucket[np.argsort(self.features.lengths[bucket], kind="stable")]
            batches += [bucket[i : i + batch_size] for i in range(0, len(bucket), batch_size)]
        return [batches[i] for i in rng.permutation(len(batches))]

    def subset(self, examples: np.ndarray, features: Features) -> SplitData:
        """Return the split of these examples, with features of their own."""
        if self.word_offsets is None or self.word_starts is None:
            return SplitData(features, self.labels[examples], self.index[examples])
        rows = ragged_index(self.word_offsets, examples)
        words = self.word_offsets[examples + 1] - self.word_offsets[examples]
        offsets = np.concatenate([[0], np.cumsum(words)])
        return SplitData(features, self.labels[rows], self.index[examples], self.word_starts[rows], offsets)

    def per_example(self, flat: np.ndarray) -> list[np.ndarray]:
        """Return a flat array over words as one array per sentence."""
        assert self.word_offsets is not None
        return np.split(flat, self.word_offsets[1:-1])


@dataclass(frozen=True)
class TrialData:
    """All that trials of one study share.

    metric: the selection metric, without prefix
    about:  what the data and backbone are, for hashes and provenance
    """

    shape: Shape
    label_names: tuple[str, ...]
    metric: str
    splits: dict[str, SplitData]
    about: dict[str, Any]

    def scores(self, split: SplitData, predictions: np.ndarray) -> dict[str, float]:
        """Return the named scores of flat predictions on a split."""
        if self.shape.kind == "sequence":
            return metrics.sequence_scores(split.labels, predictions, len(self.label_names))
        return metrics.token_scores(self.named(split, split.labels), self.named(split, predictions))

    def named(self, split: SplitData, flat: np.ndarray) -> list[list[str]]:
        """Return flat word labels as label names per sentence."""
        names = np.array(self.label_names)
        return [names[labels].tolist() for labels in split.per_example(flat)]

    @property
    def outside(self) -> int:
        """The label that words lost to truncation count as: O where there is one, else the first."""
        return self.label_names.index("O") if "O" in self.label_names else 0
