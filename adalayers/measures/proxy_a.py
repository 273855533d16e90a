"""Proxy A-distance: how well a linear classifier tells two datasets apart by the backbone's features."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from adalayers.backbones.tokens import Encoded
from adalayers.features.features import extraction_batches
from adalayers.measures.case_data import SEED, CaseData
from adalayers.results.measures import Measured
from adalayers.states import State
from adalayers.tensors.ragged import sequence_means

MIN_EXAMPLES, MAX_EXAMPLES = 20, 300
"""Of one dataset."""
FOLDS, DRAWS = 5, 5

UNMEASURED = Measured(title="proxy A-distance", unit="0 to 2")


def measure(case: CaseData) -> Measured:
    """Return 2 (1 - 2 error) of a linear classifier on the last layer's mean over an example's tokens.

    (Ben-David et al. 2007.) The error is cross-validated. `nothing` is the same for two samples of one dataset,
    averaged over both.
    """
    rng = np.random.default_rng(SEED)
    pools = case.pools(rng)
    n = min(MAX_EXAMPLES, *(len(examples) for _, examples in pools)) // 2 * 2
    if n < MIN_EXAMPLES:
        return replace(UNMEASURED, why=f"it takes at least {MIN_EXAMPLES} training examples of each")
    a, b = (_pooled(case, encoded, examples[:n]) for encoded, examples in pools)
    draws = [_distance(a, b, draw) for draw in range(DRAWS)]
    within = [
        _distance(features[order[::2]], features[order[1::2]], draw)
        for features in (a, b)
        for draw, order in enumerate(rng.permutation(n) for _ in range(DRAWS))
    ]
    return replace(
        UNMEASURED,
        how="2 (1 - 2 error) of a logistic regression on the last hidden state, averaged over an example's tokens, "
        f"that tells the datasets apart; {FOLDS}-fold cross-validation, {DRAWS} times",
        value=float(np.mean(draws)),
        nothing=float(np.mean(within)),
        n=n,
        counted="examples of each",
    )


def _distance(a: np.ndarray, b: np.ndarray, seed: int) -> float:
    """Return the distance of two samples of features [n, K]; 0 for a classifier that is worse than chance."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    features, labels = np.concatenate([a, b]), np.repeat([0, 1], [len(a), len(b)])
    classifier = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=2000))
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    error = 1.0 - float(cross_val_score(classifier, features, labels, cv=folds).mean())
    return max(0.0, 2 * (1 - 2 * error))


def _pooled(case: CaseData, encoded: Encoded, examples: np.ndarray) -> np.ndarray:
    """Return the mean last hidden state of each example, float64 [n, K]."""
    source, features = case.prepared.source, case.features(encoded)
    last = State(source.streams[0].name, source.layers)
    lengths = np.diff(encoded.offsets)[examples]
    pooled = np.empty((len(examples), source.width))
    for batch in extraction_batches(lengths):
        states = features.read(examples[batch], [last], torch.device("cpu"))[last].double()
        pooled[batch] = sequence_means(states, torch.from_numpy(lengths[batch])).numpy()
    return pooled
