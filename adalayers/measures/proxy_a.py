"""Proxy A-distance: how well a linear classifier tells two datasets apart by the backbone's features."""

from __future__ import annotations

import numpy as np
import torch

from adalayers.backbones.tokens import Encoded
from adalayers.features.extract import extraction_batches, hidden_states
from adalayers.measures.given import SEED, Given
from adalayers.results.measures import Measured
from adalayers.states import State

EXAMPLES = 300
"""Most examples of one dataset."""
LEAST = 10
FOLDS, DRAWS = 5, 5

TITLE, UNIT = "proxy A-distance", "0 to 2"


def measure(given: Given) -> Measured:
    """Return 2 (1 - 2 error) of a linear classifier on the last layer's mean over an example's tokens.

    (Ben-David et al. 2007.) The error is cross-validated. `nothing` is the same for two samples of one dataset,
    averaged over both.
    """
    rng = np.random.default_rng(SEED)
    ours, theirs = given.pools(rng)
    n = min(EXAMPLES, len(ours), len(theirs)) // 2 * 2
    if n < 2 * LEAST:
        return Measured(
            title=TITLE, unit=UNIT, why=f"it takes at least {2 * LEAST} training examples of each"
        )
    other = given.encoded if given.same else given.reference_encoded
    a, b = _pooled(given, given.encoded, ours[:n]), _pooled(given, other, theirs[:n])
    draws = [_distance(a, b, draw) for draw in range(DRAWS)]
    within = [
        _distance(of[order[::2]], of[order[1::2]], draw)
        for of in (a, b)
        for draw, order in enumerate(rng.permutation(n) for _ in range(DRAWS))
    ]
    return Measured(
        title=TITLE,
        unit=UNIT,
        how="2 (1 - 2 error) of a logistic regression on the last hidden state, averaged over an example's tokens, "
        f"that tells the datasets apart; {FOLDS}-fold cross-validation, {DRAWS} times",
        value=float(np.mean(draws)),
        nothing=float(np.mean(within)),
        n=n,
        of="examples of each",
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


def _pooled(given: Given, encoded: Encoded, examples: np.ndarray) -> np.ndarray:
    """Return the mean last hidden state of each example, float64 [n, K]."""
    backbone = given.backbone
    device = next(backbone.parameters()).device
    last = State(backbone.stream.name, backbone.stream.layers)
    lengths = np.diff(encoded.offsets)[examples]
    pooled = np.empty((len(examples), backbone.width))
    for batch in extraction_batches(lengths):
        states = hidden_states(backbone, encoded, examples[batch], device)[last]
        of = torch.split(states.double().cpu(), lengths[batch].tolist())
        pooled[batch] = torch.stack([one.mean(dim=0) for one in of]).numpy()
    return pooled
