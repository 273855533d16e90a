"""Vocabulary divergence: how differently two datasets use the tokens of one tokeniser."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.special import rel_entr

from adalayers.backbones.tokens import Encoded
from adalayers.measures.case_data import SEED, CaseData
from adalayers.results.measures import Measured

MAX_TOKENS = 5000
"""Most tokens of one sample: every sample of every case is to have as many, for small ones differ by chance."""
DRAWS = 20

UNMEASURED = Measured(title="vocabulary divergence", unit="bits, 0 to 1")


def measure(case: CaseData) -> Measured:
    """Return the Jensen-Shannon divergence between the unigram distributions of the case and of the reference.

    Samples of finite size differ even where their source does not: `nothing` is the divergence of two samples of
    one dataset, of the same size, averaged over both datasets.
    """
    rng = np.random.default_rng(SEED)
    size = int(case.special.max(initial=0)) + 1
    between, within, sizes = [], [], []
    for _ in range(DRAWS):
        halves = [
            texts(encoded, examples[half::2], case.special)
            for encoded, examples in case.pools(rng)
            for half in (0, 1)
        ]
        n = min(MAX_TOKENS, *map(len, halves))
        if n == 0:
            return replace(UNMEASURED, why="there are too few training examples")
        size = max(size, *(int(half.max()) + 1 for half in halves))
        a1, a2, b1, b2 = (np.bincount(half[:n], minlength=size) / n for half in halves)
        between.append((divergence(a1, b1) + divergence(a2, b2)) / 2)
        within.append((divergence(a1, a2) + divergence(b1, b2)) / 2)
        sizes.append(n)
    low, high = np.percentile(between, [2.5, 97.5])
    return replace(
        UNMEASURED,
        how="Jensen-Shannon divergence of the token frequencies of two samples of training texts, without special "
        f"tokens, over {DRAWS} draws",
        value=float(np.mean(between)),
        low=float(low),
        high=float(high),
        nothing=float(np.mean(within)),
        n=min(sizes),
        counted="tokens a sample",
    )


def texts(encoded: Encoded, examples: np.ndarray, special: np.ndarray) -> np.ndarray:
    """Return the token ids of these examples end to end, without special ones, int64."""
    ids = encoded.take(examples).input_ids.astype(np.int64)
    return ids[~np.isin(ids, special)]


def divergence(p: np.ndarray, q: np.ndarray) -> float:
    """Return the Jensen-Shannon divergence of two distributions [size], in bits."""
    middle = (p + q) / 2
    return float(rel_entr(p, middle).sum() + rel_entr(q, middle).sum()) / (2 * math.log(2))
