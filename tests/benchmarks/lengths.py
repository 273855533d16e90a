"""CoLA's lengths, so that benchmarks need no data."""

from __future__ import annotations

import numpy as np

COLA = {
    4: 6,
    5: 120,
    6: 287,
    7: 574,
    8: 896,
    9: 1031,
    10: 1017,
    11: 805,
    12: 708,
    13: 517,
    14: 421,
    15: 299,
    16: 211,
    17: 161,
    18: 134,
    19: 114,
    20: 90,
    21: 57,
    22: 60,
    23: 61,
    24: 38,
    25: 24,
    26: 18,
    27: 16,
    28: 6,
    29: 8,
    30: 6,
    32: 5,
    33: 1,
    35: 1,
    37: 1,
    40: 1,
    47: 1,
}
"""Tokens, special ones included, by BERT's uncased tokenizer -> how many of CoLA's 7695 training sentences."""


def cola_lengths(n: int | None = None) -> np.ndarray:
    """Return CoLA's lengths in a fixed shuffled order, int64; the first `n` of them are an even sample."""
    every = np.repeat(list(COLA), list(COLA.values())).astype(np.int64)
    return np.random.default_rng(0).permutation(every)[:n]
