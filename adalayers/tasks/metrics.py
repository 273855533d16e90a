"""Scores of predictions: of classes of texts or words, of entities, and of numbers.

Counted here in NumPy rather than through scikit-learn and seqeval, which warn about constant predictions
and take longer than an evaluation of a small head; the tests hold the numbers equal to theirs. The entity scores
that a study publishes are seqeval's own (`published`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

OUTSIDE = "O"

CUT = "(cut)"
"""What a row of `predictions.parquet` says that a word was predicted as which truncation cut away."""

_SEQUENCE = ("accuracy", "f1_macro", "matthews")
_TOKEN = ("precision", "recall", "f1")
_NUMBERS = ("pearson", "spearman", "r2")

_USUAL_EFFECT, _WIDE_EFFECT = 0.01, 0.02


def bounds(metric: str) -> tuple[float, float] | None:
    """Return between which values a metric lies; None for one that is not known here."""
    if metric in ("matthews", "pearson", "spearman"):
        return -1.0, 1.0
    if metric == "r2":
        return -math.inf, 1.0
    return (0.0, 1.0) if metric in (*_SEQUENCE, *_TOKEN) or metric.startswith("f1/") else None


def sequence_scores(labels: np.ndarray, predictions: np.ndarray, n_labels: int) -> dict[str, float]:
    """Return `accuracy`, `f1_macro` and `matthews` of integer labels [n] and predictions [n].

    `f1_macro` is the mean over all `n_labels` classes; a class neither present nor predicted counts 0.
    `matthews` is Gorodkin's R_K (2004), for two classes the Matthews correlation of GLUE; it is 0 where
    labels or predictions are constant. Raises `ValueError` where there is nothing to score, where the two
    differ in shape, or where a value is no class.
    """
    labels, predictions = np.asarray(labels), np.asarray(predictions)
    if labels.shape != predictions.shape or labels.ndim != 1 or not len(labels):
        raise ValueError(
            f"wanted as many predictions as labels, in one dimension and at least one; "
            f"got labels {labels.shape} and predictions {predictions.shape}"
        )
    for what, values in (("labels", labels), ("predictions", predictions)):
        if values.min() < 0 or values.max() >= n_labels:
            raise ValueError(f"wanted {what} in 0..{n_labels - 1}, got {values.min()}..{values.max()}")
    confusion = np.bincount(labels * n_labels + predictions, minlength=n_labels**2).reshape(
        n_labels, n_labels
    )
    correct, gold, predicted = confusion.diagonal(), confusion.sum(axis=1), confusion.sum(axis=0)
    # Python's integers do not overflow: these are products of counts, multiplied once more.
    n, hits = len(labels), int(correct.sum())
    covariance = n * hits - int(gold @ predicted)
    variances = (n * n - int(gold @ gold)) * (n * n - int(predicted @ predicted))
    return {
        "accuracy": hits / n,
        "f1_macro": float(np.mean(2 * correct / np.maximum(gold + predicted, 1))),
        "matthews": covariance / math.sqrt(variances) if variances else 0.0,
    }


def word_scores(labels: np.ndarray, predictions: np.ndarray, n_labels: int) -> dict[str, float]:
    """Return `accuracy` and `f1_macro` of integer labels [words] and predictions [words], as `sequence_scores` does.

    A prediction of `n_labels` is no class: it is wrong, and counts for none. Raises `ValueError` likewise.
    """
    scores = sequence_scores(labels, predictions, n_labels + 1)
    # The mean there is over a class more, which counts 0 in it.
    return {"accuracy": scores["accuracy"], "f1_macro": scores["f1_macro"] * (n_labels + 1) / n_labels}


def number_scores(labels: np.ndarray, predictions: np.ndarray) -> dict[str, float]:
    """Return `pearson`, `spearman`, `r2`, `rmse` and `mae` of numbers [n], labels and predictions.

    r2 is 1 - sum (y - prediction)^2 / sum (y - mean y)^2, at most 1: 0 for the mean as the answer to all, and lower for
    worse. Spearman's correlation is Pearson's of the ranks, equal values sharing theirs. What is undefined is 0: a
    correlation where labels or predictions are constant, and r2 where labels are. `rmse` and `mae`, the root of the
    mean squared error and the mean absolute error, are on the labels' scale, and lower is better.
    Raises `ValueError` where there is nothing to score, or the two differ in shape.
    """
    labels, predictions = np.asarray(labels, dtype=np.float64), np.asarray(predictions, dtype=np.float64)
    if labels.shape != predictions.shape or labels.ndim != 1 or not len(labels):
        raise ValueError(
            f"wanted as many predictions as labels, in one dimension and at least one; "
            f"got labels {labels.shape} and predictions {predictions.shape}"
        )
    ones = np.ones((1, len(labels)))
    errors = labels - predictions
    return {
        "pearson": float(correlations(labels, predictions, ones)[0]),
        "spearman": float(correlations(ranks(labels, ones), ranks(predictions, ones), ones)[0]),
        "r2": float(explained(labels, predictions, ones)[0]),
        "rmse": float(np.sqrt(np.mean(errors**2))),
        "mae": float(np.mean(np.abs(errors))),
    }


_CONSTANT = 1e-12
"""A variance of this share of the mean square, or less, is rounding: the values are the same."""


def correlations(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return Pearson's correlation [draws] of x and y, each [n] or [draws, n], taken `weights` [draws, n] times.

    0 where either is constant.
    """
    total = weights.sum(axis=1)

    def centred(values: np.ndarray) -> np.ndarray:
        return values - ((weights * values).sum(axis=1) / total)[:, None]

    a, b = centred(x), centred(y)
    covariance = (weights * a * b).sum(axis=1)
    squares = [(weights * values**2).sum(axis=1) for values in (a, b)]
    sizes = [(weights * values**2).sum(axis=1) for values in (x, y)]
    varies = (squares[0] > _CONSTANT * sizes[0]) & (squares[1] > _CONSTANT * sizes[1])
    found = np.zeros(len(weights))
    np.divide(covariance, np.sqrt(squares[0] * squares[1]), out=found, where=varies)
    return found.clip(-1.0, 1.0)


def ranks(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the ranks [draws, n] of values [n] taken `weights` [draws, n] times, equal values sharing their mean rank.

    A value that a draw leaves out has a rank too, which nothing counts.
    """
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    group = np.cumsum(np.concatenate([[0], ordered[1:] != ordered[:-1]]))
    begins = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    sizes = np.add.reduceat(weights[:, order], begins, axis=1)
    middle = np.cumsum(sizes, axis=1) - sizes + (sizes + 1) / 2
    found = np.empty(weights.shape)
    found[:, order] = middle[:, group]
    return found


def explained(labels: np.ndarray, predictions: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return r2 [draws] of predictions [n] of labels [n], taken `weights` [draws, n] times; 0 for constant labels."""
    mean = (weights @ labels) / weights.sum(axis=1)
    left, whole = weights @ (labels - predictions) ** 2, (weights * (labels - mean[:, None]) ** 2).sum(axis=1)
    found = np.ones(len(weights))
    varies = whole > _CONSTANT * (weights @ labels**2)
    np.divide(left, whole, out=found, where=varies)
    return 1.0 - found


def token_scores(labels: Sequence[Sequence[str]], predictions: Sequence[Sequence[str]]) -> dict[str, float]:
    """Return `precision`, `recall`, `f1` over entities, and `f1/<TYPE>` for each type in `labels`, by name.

    `labels` and `predictions` hold a list of tags per sentence: `O`, `B-TYPE`, `I-TYPE` (and `E-`, `S-`). An
    entity counts where start, end and type agree. Boundaries are conlleval's (Tjong Kim Sang and De Meulder
    2003), as in seqeval's default mode: an `I-` that follows no entity of its type starts one. A tag
    without a prefix is read as `I-`: a run of it is an entity. What is undefined, for want of entities, is 0.

    Raises `ValueError` where the two differ in length, naming the sentence.
    """
    check_tags(labels, predictions)
    types: dict[str, int] = {}
    gold, predicted = entities(labels, types), entities(predictions, types)
    mine = _agreeing(gold, predicted)
    kinds, predicted_kinds, n_types = gold[2], predicted[2], len(types)
    correct = np.bincount(kinds[mine], minlength=n_types)
    gold_counts = np.bincount(kinds, minlength=n_types)
    predicted_counts = np.bincount(predicted_kinds, minlength=n_types)
    hits, n_gold, n_predicted = len(mine), len(kinds), len(predicted_kinds)
    return {
        "precision": hits / max(n_predicted, 1),
        "recall": hits / max(n_gold, 1),
        "f1": 2 * hits / max(n_gold + n_predicted, 1),
    } | {
        f"f1/{name}": float(2 * correct[kind] / (gold_counts[kind] + predicted_counts[kind]))
        for name, kind in sorted(types.items())
        if gold_counts[kind]
    }


def entity_counts(
    labels: Sequence[Sequence[str]], predictions: Sequence[Sequence[str]]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return, each int64 [sentences], how many entities are in `labels`, in `predictions`, and in both.

    Entities as in `token_scores`, whose overall scores follow from the sums. Raises `ValueError` likewise.
    """
    check_tags(labels, predictions)
    types: dict[str, int] = {}
    gold, predicted = entities(labels, types), entities(predictions, types)
    # Sentences lie end to end, an O before the first and after each.
    begins = np.cumsum([1, *(len(sentence) + 1 for sentence in labels)])

    def per_sentence(places: np.ndarray) -> np.ndarray:
        return np.bincount(np.searchsorted(begins, places, side="right") - 1, minlength=len(labels))

    mine = _agreeing(gold, predicted)
    return per_sentence(gold[0]), per_sentence(predicted[0]), per_sentence(gold[0][mine])


def majority_score(metric: str, labels: np.ndarray, n_labels: int) -> float:
    """Return what always answering the most frequent of integer `labels` scores: the floor to stand above.

    Matthews correlation and the entity scores are 0 by definition there: a constant correlates with nothing,
    and the most frequent tag is O. Raises `ValueError` for a metric that does not exist.
    """
    if metric == "matthews" or metric in _TOKEN or metric.startswith("f1/"):
        return 0.0
    if metric not in _SEQUENCE:
        raise ValueError(f"unknown metric {metric!r}; known: {', '.join((*_SEQUENCE, *_TOKEN))}")
    most_frequent = np.bincount(labels, minlength=n_labels).argmax()
    return sequence_scores(labels, np.full_like(labels, most_frequent), n_labels)[metric]


def smallest_effect(metric: str) -> float:
    """Return the smallest difference of `metric` that is worth acting on, where the user names none.

    A hundredth for accuracy, macro F1, the scores over all entities, and the correlation of numbers: a point, the
    last digit that papers print. Two hundredths where a score counts fewer answers and so spreads wider from seed to
    seed: Matthews correlation, which on two balanced classes is twice accuracy minus one, so that a point of accuracy
    is two of it; F1 of one type of entity, of which there are a few hundred where there are thousands in all; and R²,
    which near a correlation of 1 is its square, so that a point of the one is two of the other.
    """
    return _WIDE_EFFECT if metric in ("matthews", "r2") or metric.startswith("f1/") else _USUAL_EFFECT


def is_entity_tag(tag: str) -> bool:
    """Say whether a tag marks entities: it is O, or has a prefix."""
    prefix, dash, _ = tag.partition("-")
    return tag == OUTSIDE or (bool(dash) and prefix in {"B", "I", "E", "S"})


Entities = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Start, end and type of every entity, as `entities` gives them."""


def check_tags(labels: Sequence[Sequence[str]], predictions: Sequence[Sequence[str]]) -> None:
    """Raise `ValueError` where labels and predictions differ in length, naming the sentence."""
    if len(labels) != len(predictions):
        raise ValueError(f"wanted predictions for {len(labels)} sentences, got them for {len(predictions)}")
    for i, (gold, predicted) in enumerate(zip(labels, predictions, strict=True)):
        if len(gold) != len(predicted):
            raise ValueError(
                f"sentence {i}: wanted {len(gold)} predictions, one per label, got {len(predicted)}"
            )


def _agreeing(gold: Entities, predicted: Entities) -> np.ndarray:
    """Return which entities of `gold` are in `predicted` too, as their places in it."""
    # An entity's start is unique among entities, so agreement can be looked up by start.
    _, mine, theirs = np.intersect1d(gold[0], predicted[0], assume_unique=True, return_indices=True)
    agree = (gold[1][mine] == predicted[1][theirs]) & (gold[2][mine] == predicted[2][theirs])
    return mine[agree]


def entities(sentences: Sequence[Sequence[str]], types: dict[str, int]) -> Entities:
    """Return start, end (exclusive) and type of every entity, each int64 [entities], in order.

    Places count through all sentences laid end to end with one O after each. `types` numbers the type names
    and grows by those met here.
    """
    tags: dict[str, tuple[str, int]] = {}

    def parse(tag: str) -> tuple[str, int]:
        if tag == OUTSIDE:
            return (OUTSIDE, -1)
        prefix, dash, name = tag.partition("-")
        if not dash or prefix not in {"B", "I", "E", "S"}:
            prefix, name = "I", tag
        return (prefix, types.setdefault(name, len(types)))

    for sentence in sentences:
        for tag in sentence:
            if tag not in tags:
                tags[tag] = parse(tag)
    between = (OUTSIDE, -1)
    parsed = [between] + [
        item for sentence in sentences for item in (*(tags[tag] for tag in sentence), between)
    ]
    prefixes = np.array([prefix for prefix, _ in parsed])
    kinds = np.array([kind for _, kind in parsed])
    inside = kinds >= 0
    follows = np.zeros(len(parsed), dtype=bool)  # the token carries on the entity of the token before it
    follows[1:] = (
        inside[1:]
        & (kinds[1:] == kinds[:-1])
        & np.isin(prefixes[1:], ["I", "E"])
        & np.isin(prefixes[:-1], ["B", "I"])
    )
    starts = np.flatnonzero(inside & ~follows)
    breaks = np.flatnonzero(~follows)
    ends = breaks[np.searchsorted(breaks, starts, side="right")]
    return starts, ends, kinds[starts]
