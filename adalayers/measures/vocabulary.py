"""Vocabulary divergence: how differently two datasets use the tokens of one tokeniser."""

from __future__ import annotations

import numpy as np

from adalayers.measures.given import SEED, Given, texts
from adalayers.results.measures import Measured

TOKENS = 5000
"""Most tokens of one sample: every sample of every case is to have as many, for small ones differ by chance."""
DRAWS = 20

TITLE, UNIT = "vocabulary divergence", "bits, 0 to 1"


def measure(given: Given) -> Measured:
    """Return the Jensen-Shannon divergence between the unigram distributions of the case and of the reference.

    Samples of finite size differ even where their source does not: `nothing` is the divergence of two samples of
    one dataset, of the same size, averaged over both datasets.
    """
    rng = np.random.default_rng(SEED)
    size = int(given.special.max(initial=0)) + 1
    between, within, sizes = [], [], []
    for _ in range(DRAWS):
        ours, theirs = given.pools(rng)
        other = given.encoded if given.same else given.reference_encoded
        halves = [
            texts(encoded, examples[half::2], given.special)
            for encoded, examples in ((given.encoded, ours), (other, theirs))
            for half in (0, 1)
        ]
        n = min(TOKENS, *map(len, halves))
        if n == 0:
            return Measured(title=TITLE, unit=UNIT, why="there are too few training examples")
        size = max(size, *(int(half.max()) + 1 for half in halves))
        a1, a2, b1, b2 = (np.bincount(half[:n], minlength=size) / n for half in halves)
        between.append((divergence(a1, b1) + divergence(a2, b2)) / 2)
        within.append((divergence(a1, a2) + divergence(b1, b2)) / 2)
        sizes.append(n)
    low, high = np.percentile(between, [2.5, 97.5])
    return Measured(
        title=TITLE,
        unit=UNIT,
        how="Jensen-Shannon divergence of the token frequencies of two samples of training texts, without special "
        f"tokens, over {DRAWS} draws",
        value=float(np.mean(between)),
        low=float(low),
        high=float(high),
        nothing=float(np.mean(within)),
        n=min(sizes),
        of="tokens a sample",
    )


def divergence(p: np.ndarray, q: np.ndarray) -> float:
    """Return the Jensen-Shannon divergence of two distributions [size], in bits."""
    middle = (p + q) / 2

    def kl(one: np.ndarray) -> float:
        there = one > 0
        return float((one[there] * np.log2(one[there] / middle[there])).sum())

    return (kl(p) + kl(q)) / 2
