"""How much is measured, and of what: backbones and lengths that are real, contents that are random."""

import functools
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from adalayers.backbones import sources
from adalayers.backbones.sources import BackboneSource
from adalayers.backbones.tokens import Encoded
from adalayers.data.trial_data import SplitData, TrialData
from adalayers.features.features import Features, Subset
from adalayers.states import Shape
from adalayers.tasks.kinds import KINDS
from tests.helpers.tiny import tiny_backbone

BATCH = 64
COUNTS = """
6 120 287 574 896 1031 1017 805 708 517 421 299 211 161 134 114 90 57 60 61 38 24 18 16 6 8 6 0 5 1
0 1 0 1 0 0 1 0 0 0 0 0 0 1
"""
"""How many of CoLA's 7695 training sentences have 4, 5, ... 47 tokens, special ones included, in BERT's uncased
tokenizer."""


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How much is measured: as published in docs/performance.md, or little, to see that all of it runs.

    cola:      how many of CoLA's lengths, None: all of them; sample: how many for what takes longer
    large:     layers, width, heads, feed-forward width and vocabulary of the large backbone
    levels:    how many levels of what is varied (lengths, methods, seeds, ...), None: all of them
    repeats:   how often a rival takes its turn; steps: the same of a single training step
    trials:    of a study, and seconds: how long about each of them takes; concurrent: how many run at a time
    sentences: that token trials train on; examples: that groups of arms are trained on
    """

    cola: int | None = None
    sample: int = 512
    large: tuple[int, int, int, int, int] = (24, 1024, 16, 4096, 50265)
    levels: int | None = None
    repeats: int = 5
    steps: int = 40
    trials: int = 32
    concurrent: int = 2
    seconds: float = 5.0
    sentences: int = 2000
    examples: int = 800


FULL = Sizes()
ONE = dict.fromkeys(("levels", "repeats", "steps", "concurrent"), 1)
FEW = dict.fromkeys(("cola", "sentences", "examples"), 64)
TINY = Sizes(**ONE, **FEW, sample=32, large=(2, 64, 4, 128, 21000), trials=2, seconds=0.1)


def cola_lengths(n: int | None = None) -> np.ndarray:
    """Return CoLA's lengths in a fixed shuffled order, int64; the first `n` of them are an even sample."""
    every = np.repeat(np.arange(4, 48), [int(count) for count in COUNTS.split()])
    return np.random.default_rng(0).permutation(every)[:n]


@functools.cache
def base(name: str, root: Path, sizes: Sizes) -> BackboneSource:
    """Return all-MiniLM-L6-v2 of the PyPI package, or RoBERTa-large's shape at random (1.4 GB), saved below `root`."""
    if name == "minilm":
        return sources.resolve(name)
    names = ("layers", "width", "heads", "intermediate_size", "vocab_size")
    shape = dict(zip(names, sizes.large, strict=True))
    return sources.resolve(str(tiny_backbone(root / "roberta-large-random", "roberta", **shape)))


def encoded(lengths: np.ndarray) -> Encoded:
    """Return random token ids of these lengths."""
    ids = np.random.default_rng(1).integers(1000, 20000, int(lengths.sum()), dtype=np.int32)
    return Encoded(ids, np.concatenate([[0], np.cumsum(lengths)]))


def trial_data(source: BackboneSource, features: Features) -> TrialData:
    """Return two random classes over `features`; validation is their first sequence alone."""
    labels = np.random.default_rng(2).integers(0, 2, len(features.lengths))
    train = SplitData(features, labels, np.arange(len(labels)), encoded(features.lengths))
    first = train.subset(np.arange(1), Subset(features, np.arange(1)))
    shape = Shape("sequence", 2, source.streams, source.width, source.family)
    splits = {"train": train, "validation": first}
    return TrialData(shape, ("a", "b"), "accuracy", splits, {}, KINDS["sequence"])
