"""Small made-up trial data: features in memory, learnable by a head, for tests of training and studies."""

import numpy as np
import torch

from adalayers.backbones.tokens import Encoded
from adalayers.data.trial_data import SplitData, TrialData
from adalayers.provenance import BackboneId, DatasetId, Provenance
from adalayers.tasks.kinds import KINDS
from adalayers.tensors.ragged import ragged_index
from tests.helpers.states import made_shape


class MadeFeatures:
    """Random hidden states held in memory; picklable, so that Ray's workers can have them."""

    def __init__(self, lengths, states):
        self.lengths, self._states = lengths, states
        self._offsets = np.concatenate([[0], np.cumsum(lengths)])

    def read(self, examples, states, device):
        rows = ragged_index(self._offsets, examples)
        return {state: torch.from_numpy(self._states[state.number][rows]).to(device) for state in states}


def made_split(kind, n, layers, width, n_labels, seed, informative):
    """Return a split whose labels can be read off the hidden state `informative`, and off no other."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(3, 9, n)
    tokens = int(lengths.sum())
    states = {i: rng.normal(size=(tokens, width)).astype(np.float32) for i in range(layers + 1)}
    directions = np.random.default_rng(99).normal(size=(n_labels, width)).astype(np.float32)
    offsets, ids = np.concatenate([[0], np.cumsum(lengths)]), np.zeros(tokens, dtype=np.int32)
    if kind == "sequence":
        labels = rng.integers(0, n_labels, n)
        states[informative] += 3.0 * directions[np.repeat(labels, lengths)]
        return SplitData(MadeFeatures(lengths, states), labels, np.arange(n), Encoded(ids, offsets))
    words = lengths - 2  # the first and last token are special
    word_offsets = np.concatenate([[0], np.cumsum(words)])
    labels = rng.integers(0, n_labels, int(words.sum()))
    starts = np.concatenate([np.arange(1, count + 1) for count in words])
    rows = np.repeat(offsets[:-1], words) + starts
    states[informative][rows] += 3.0 * directions[labels]
    encoded = Encoded(ids, offsets, starts, word_offsets)
    return SplitData(MadeFeatures(lengths, states), labels, np.arange(n), encoded)


def made_data(kind="sequence", *, layers=3, width=16, informative=2, sizes=(96, 48, 48)):
    """Return `TrialData` of a backbone with `layers` layers, made from seeds alone."""
    names = ("a", "b", "c") if kind == "sequence" else ("O", "B-X", "B-Y")
    splits = {
        name: made_split(kind, n, layers, width, len(names), seed, informative)
        for seed, (name, n) in enumerate(zip(("train", "validation", "test"), sizes, strict=True))
    }
    about = Provenance(
        backbone=BackboneId(id="made", fingerprint="0" * 16),
        dataset=DatasetId(source="made", fingerprint="1" * 16),
        labels=names,
        splits={name: f"{kind}-{name}" for name in splits},
    )
    metric = "accuracy" if kind == "sequence" else "f1"
    shape = made_shape(kind, len(names), layers, width)
    return TrialData(shape, names, metric, splits, about, KINDS[kind])
