"""CoLA's lengths, so that benchmarks need no data."""

import numpy as np

COUNTS = """
6 120 287 574 896 1031 1017 805 708 517 421 299 211 161 134 114 90 57 60 61 38 24 18 16 6 8 6 0 5 1
0 1 0 1 0 0 1 0 0 0 0 0 0 1
"""
"""How many of CoLA's 7695 training sentences have 4, 5, ... 47 tokens, special ones included, in BERT's uncased
tokenizer."""


def cola_lengths(n: int | None = None) -> np.ndarray:
    """Return CoLA's lengths in a fixed shuffled order, int64; the first `n` of them are an even sample."""
    every = np.repeat(np.arange(4, 48), [int(count) for count in COUNTS.split()])
    return np.random.default_rng(0).permutation(every)[:n]
