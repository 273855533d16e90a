"""Scores of predictions: of classes of texts or words, of entities, and of numbers.

Counted here in NumPy rather than through scikit-learn and seqeval, which warn about constant predictions
and take longer than an evaluation of a small head; tests hold the numbers equal to theirs.

A `Metric` is all that pages and claims know of a score. A kind of task owns its metrics; those that are made are found
by name.
"""

from __future__ import annotations

import functools
import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from adalayers.tasks.schemes import OUTSIDE, Scheme, scheme_or_runs

CUT = "(cut)"
"""What a row of `predictions.parquet` says that a word was predicted as which truncation cut away."""
_MOST_COUNTS = 50_000_000
"""Most counts, classes x predictions, that are drawn from."""

Tags = Sequence[Sequence[str]]
"""Tags of each sentence, by name; a `Scheme` says what they mean."""


class Answers(NamedTuple):
    """Rows of `predictions.parquet`.

    Attributes:
        labels: A text, or a tuple of a text per word, of each row.
        predictions: The same.
        names: Names of the classes.
        probabilities: [rows], of the predictions, where known.
    """

    labels: Sequence[Any]
    predictions: Sequence[Any]
    names: Sequence[str] = ()
    probabilities: np.ndarray | None = None


class Counts(NamedTuple):
    """What a score follows from, of examples in rows: those of several trials below each other, or stacked.

    Attributes:
        gold: [classes, rows], how often each class is in the label (of entities: one class; of numbers: the number).
        predicted: [..., classes, rows], the same of predictions.
        hits: [..., classes, rows], the same of correct ones.
        n_labels: Classes that a mean over classes divides by.
    """

    gold: np.ndarray
    predicted: np.ndarray
    hits: np.ndarray
    n_labels: int


@dataclass(frozen=True)
class Metric(ABC):
    """A score of predictions on examples; higher is better.

    Attributes:
        name: As columns have it, without prefix.
        label: What axes and tables call it; "" for its name.
        unit: Its unit, or its range.
        low, high: Between which values it lies.
        smallest_effect: The smallest difference that is worth acting on, where the user names none. A hundredth, a
            point, is the last digit that papers print. Two hundredths where a score counts fewer answers and so
            spreads wider from seed to seed: Matthews correlation, which on two balanced classes is twice accuracy
            minus one; F1 of one type of entity, of which there are a few hundred where there are thousands in all; R²,
            which near a correlation of 1 is its square.
        weights_at_once: Most weights, draws x examples, to be had in memory at a time.
    """

    name: str
    label: str = ""
    unit: str = "0 to 1"
    low: float = 0.0
    high: float = 1.0
    smallest_effect: float = 0.01
    weights_at_once: ClassVar[int] = 20_000_000

    def __post_init__(self) -> None:
        METRICS.setdefault(self.name, self)

    @abstractmethod
    def count(self, answers: Answers) -> Counts:
        """Return what the score follows from, of each row.

        Raises:
            ValueError: Where labels and predictions do not fit each other.
        """

    @abstractmethod
    def resampled(self, counts: Counts, weights: np.ndarray) -> np.ndarray:
        """Return scores [trials, draws] of stacked counts, of examples taken `weights` [draws, examples] times."""


METRICS: dict[str, Metric] = {}
"""All that were made, by name."""


def metric(name: str) -> Metric | None:
    """Return a metric by its name without prefix; None for one that nobody has made."""
    kind, _, entity = name.partition("/")
    if kind == "f1" and entity:
        of_rows = functools.partial(_count_entities, only=entity)
        return CountedMetric(name, smallest_effect=0.02, of_rows=of_rows, of_sums=_f1)
    return METRICS.get(name)


def bounds(name: str) -> tuple[float, float] | None:
    """Return between which values a metric lies; None for one that is not known here."""
    known = metric(name)
    return (known.low, known.high) if known else None


def smallest_effect(name: str) -> float:
    """Return the smallest difference of a metric that is worth acting on; a hundredth of one that is not known."""
    return (metric(name) or Metric).smallest_effect


@dataclass(frozen=True, kw_only=True)
class CountedMetric(Metric):
    """A score that follows from sums of counts over examples.

    Attributes:
        of_rows: As `count`.
        of_sums: Returns scores [trials, draws] of sums of hits and predicted [trials, classes, draws], of gold
            [classes, draws], and `n_labels`.
    """

    of_rows: Callable[[Answers], Counts]
    of_sums: Callable[[np.ndarray, np.ndarray, np.ndarray, int], np.ndarray]

    def count(self, answers: Answers) -> Counts:
        return self.of_rows(answers)

    def resampled(self, counts: Counts, weights: np.ndarray) -> np.ndarray:
        def summed(parts: np.ndarray) -> np.ndarray:
            # One product of two matrices: NumPy takes a stack of small ones one by one.
            flat = parts.reshape(-1, parts.shape[-1]) @ weights.T
            return flat.reshape(*parts.shape[:-1], len(weights)).astype(float)

        return self.of_sums(
            summed(counts.hits), summed(counts.predicted), summed(counts.gold), counts.n_labels
        )


@dataclass(frozen=True, kw_only=True)
class NumberMetric(Metric):
    """A score of numbers.

    Attributes:
        of: Returns scores [draws] of predictions [n] of labels [n], taken `weights` [draws, n] times.
    """

    of: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
    weights_at_once: ClassVar[int] = 1_000_000  # several tables are as large

    def count(self, answers: Answers) -> Counts:
        gold, predicted = (np.array(texts, dtype=float)[None] for texts in answers[:2])
        return Counts(gold, predicted, predicted, 1)

    def resampled(self, counts: Counts, weights: np.ndarray) -> np.ndarray:
        weights = weights.astype(float)
        return np.asarray([self.of(counts.gold[0], values, weights) for values in counts.predicted[:, 0]])

    def score(self, labels: np.ndarray, predictions: np.ndarray) -> float:
        """Return the score of numbers, each [n]."""
        return float(self.of(labels, predictions, np.ones((1, len(labels))))[0])


@dataclass(frozen=True, kw_only=True)
class RankMetric(NumberMetric):
    """A score of how well the probability of the second of two classes sorts examples: labels are 0 and 1."""

    def count(self, answers: Answers) -> Counts:
        if len(answers.names) != 2 or answers.probabilities is None:
            raise ValueError(f"{self.name} needs two classes and the probabilities of predictions")
        gold, said = (np.array([text == answers.names[1] for text in texts]) for texts in answers[:2])
        second = of_second(said, answers.probabilities)[None]
        return Counts(gold.astype(float)[None], second, second, 1)


def of_second(predictions: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """Return the probability of the second of two classes from predictions, 0 or 1, and theirs, all [n]."""
    return np.where(predictions == 1, probabilities, 1 - probabilities)


def count_classes(answers: Answers) -> Counts:
    """Return how often each class is a label, its prediction, and both, of texts or of the words of sentences."""
    true, said = ([[text] if isinstance(text, str) else text for text in part] for part in answers[:2])
    require_as_many(true, said)
    lengths = np.array([len(sentence) for sentence in true], dtype=int)
    words = [word for part in (true, said) for sentence in part for word in sentence]
    codes: dict[str, int] = {}
    numbers = np.array([codes.setdefault(word, len(codes)) for word in words], dtype=int)
    if len(codes) * len(lengths) > _MOST_COUNTS:
        raise ValueError(f"{len(codes):,} classes of {len(lengths):,} predictions are too many to draw from")
    row = np.repeat(np.arange(len(lengths)), lengths)
    of_labels, of_predictions = numbers[: len(row)], numbers[len(row) :]
    right = of_labels == of_predictions

    def counts(class_codes: np.ndarray, at: np.ndarray) -> np.ndarray:
        cells = np.bincount(class_codes * len(lengths) + at, minlength=len(codes) * len(lengths))
        return cells.reshape(len(codes), len(lengths)).astype(np.float32)

    n_labels = max(len(answers.names), len(codes.keys() - {CUT}))
    return Counts(
        counts(of_labels, row), counts(of_predictions, row), counts(of_labels[right], row[right]), n_labels
    )


def _count_right(answers: Answers) -> Counts:
    """Return how many answers are right, whatever the classes: of texts they may be thousands."""
    if not all(isinstance(label, str) for label in answers.labels):
        return count_classes(answers)
    hits = np.array([a == b for a, b in zip(*answers[:2], strict=True)], dtype=np.float32)[None]
    return Counts(np.ones_like(hits), np.ones_like(hits), hits, 1)


def _count_entities(answers: Answers, only: str = "") -> Counts:
    """Return how many entities are labels, predictions and both; `only` those of one type."""
    codes: dict[Any, int] = {}
    rows = [codes.setdefault(pair, len(codes)) for pair in zip(*answers[:2], strict=True)]
    scheme = scheme_or_runs(answers.names or sorted({tag for tags in answers.labels for tag in tags}))
    counts = entity_counts([true for true, _ in codes], [guess for _, guess in codes], scheme)
    meant = [number for number, name in enumerate(scheme.types) if only in ("", name)]
    gold, predicted, hits = (count[meant].sum(axis=0)[rows][None].astype(np.float32) for count in counts)
    return Counts(gold, predicted, hits, 1)


def _accuracy(hits: np.ndarray, predicted: np.ndarray, gold: np.ndarray, n_labels: int) -> np.ndarray:
    return np.asarray(hits.sum(axis=1) / gold.sum(axis=0))


def _matthews(hits: np.ndarray, predicted: np.ndarray, gold: np.ndarray, n_labels: int) -> np.ndarray:
    n = gold.sum(axis=0)  # each example has one class
    covariance = n * hits.sum(axis=1) - (gold * predicted).sum(axis=1)
    variances = (n**2 - (gold**2).sum(axis=0)) * (n**2 - (predicted**2).sum(axis=1))
    return np.divide(covariance, np.sqrt(variances), out=np.zeros_like(covariance), where=variances > 0)


def _precision(hits: np.ndarray, predicted: np.ndarray, gold: np.ndarray, n_labels: int) -> np.ndarray:
    return np.asarray(hits[:, 0] / np.maximum(predicted[:, 0], 1))


def _recall(hits: np.ndarray, predicted: np.ndarray, gold: np.ndarray, n_labels: int) -> np.ndarray:
    return np.asarray(hits[:, 0] / np.maximum(gold[0], 1))


def _f1(hits: np.ndarray, predicted: np.ndarray, gold: np.ndarray, n_labels: int) -> np.ndarray:
    return np.asarray((2 * hits / np.maximum(gold + predicted, 1)).sum(axis=1) / n_labels)


_SHARE = "share correct, 0 to 1"
ACCURACY = CountedMetric("accuracy", "accuracy", _SHARE, of_rows=_count_right, of_sums=_accuracy)
F1_MACRO = CountedMetric("f1_macro", "macro F1", of_rows=count_classes, of_sums=_f1)
MATTHEWS = CountedMetric(
    "matthews", "Matthews correlation", "-1 to 1", -1.0, 1.0, 0.02, of_rows=count_classes, of_sums=_matthews
)
PRECISION = CountedMetric("precision", "entity precision", of_rows=_count_entities, of_sums=_precision)
RECALL = CountedMetric("recall", "entity recall", of_rows=_count_entities, of_sums=_recall)
F1 = CountedMetric("f1", "entity F1", of_rows=_count_entities, of_sums=_f1)


def class_scores(
    labels: np.ndarray,
    predictions: np.ndarray,
    n_labels: int,
    scores: Sequence[CountedMetric] = (ACCURACY, F1_MACRO, MATTHEWS),
) -> dict[str, float]:
    """Score classes.

    Args:
        labels: Integers [n] in 0..n_labels - 1.
        predictions: The same, or n_labels: that is no class, is wrong, and counts for none.
        n_labels: Number of classes.
        scores: Which.

    Returns:
        `accuracy`; `f1_macro`, the mean over all classes, where one neither present nor predicted counts 0; `matthews`,
        Gorodkin's R_K (2004), for two classes the Matthews correlation of GLUE, 0 where labels or predictions are
        constant.
    """
    counted = (predictions[predictions == labels], predictions, labels)
    hits, predicted, gold = (np.bincount(of, minlength=n_labels + 1).astype(float) for of in counted)
    sums = hits[None, :, None], predicted[None, :, None], gold[:, None], n_labels
    return {score.name: float(score.of_sums(*sums)[0, 0]) for score in scores}


def number_scores(labels: np.ndarray, predictions: np.ndarray) -> dict[str, float]:
    """Score numbers.

    Args:
        labels: Numbers [n].
        predictions: The same.

    Returns:
        `pearson`; `spearman`, Pearson's correlation of the ranks, equal values sharing theirs; `r2`,
        1 - sum (y - prediction)^2 / sum (y - mean y)^2, at most 1 and 0 for the mean as the answer to all; `rmse` and
        `mae`, on the labels' scale, lower is better. What is undefined is 0: a correlation where labels or predictions
        are constant, and r2 where labels are.
    """
    labels, predictions = np.asarray(labels, dtype=np.float64), np.asarray(predictions, dtype=np.float64)
    errors = labels - predictions
    return {
        **{metric.name: metric.score(labels, predictions) for metric in (PEARSON, SPEARMAN, R2)},
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
    scale = np.sqrt(squares[0] * squares[1])
    return np.divide(covariance, scale, out=np.zeros(len(weights)), where=varies).clip(-1.0, 1.0)


def ranks(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the ranks [draws, n] of values [n] taken `weights` [draws, n] times, equal values sharing their mean rank.

    A value that a draw leaves out has a rank too, which nothing counts.
    """
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    begins = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    sizes = np.add.reduceat(weights[:, order], np.flatnonzero(begins), axis=1)
    middle = np.cumsum(sizes, axis=1) - sizes + (sizes + 1) / 2
    ranked = np.empty(weights.shape)
    ranked[:, order] = middle[:, np.cumsum(begins) - 1]
    return ranked


def explained(labels: np.ndarray, predictions: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return r2 [draws] of predictions [n] of labels [n], taken `weights` [draws, n] times; 0 for constant labels."""
    mean = (weights @ labels) / weights.sum(axis=1)
    residual = weights @ (labels - predictions) ** 2
    total = (weights * (labels - mean[:, None]) ** 2).sum(axis=1)
    varies = total > _CONSTANT * (weights @ labels**2)
    return 1.0 - np.divide(residual, total, out=np.ones(len(weights)), where=varies)


def _spearman(labels: np.ndarray, predictions: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return correlations(ranks(labels, weights), ranks(predictions, weights), weights)


PEARSON = NumberMetric("pearson", "Pearson correlation", "-1 to 1", -1.0, 1.0, of=correlations)
SPEARMAN = NumberMetric("spearman", "Spearman correlation", "-1 to 1", -1.0, 1.0, of=_spearman)
R2 = NumberMetric(
    "r2", "R²", "share of the variance explained, at most 1", -math.inf, 1.0, 0.02, of=explained
)

_MOST_FALSE_POSITIVES = 0.01


def _by_threshold(
    labels: np.ndarray, scores: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return how many true and false positives there are from each score on, the highest first: [draws, scores + 1]."""
    order = np.argsort(-scores, kind="stable")
    last = np.append(scores[order][1:] != scores[order][:-1], True)  # of equal scores
    counts = (np.cumsum(weights[:, order] * of, axis=1)[:, last] for of in (labels[order], 1 - labels[order]))
    true, false = (np.pad(count, [(0, 0), (1, 0)]) for count in counts)
    return true, false


def _auroc(labels: np.ndarray, scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
    true, false = _by_threshold(labels, scores, weights)
    pairs = true[:, -1] * false[:, -1]
    above = (np.diff(false) * (true[:, 1:] + true[:, :-1]) / 2).sum(axis=1)
    return np.divide(above, pairs, out=np.full(len(weights), 0.5), where=pairs > 0)  # a draw may lack a class


def _average_precision(labels: np.ndarray, scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
    true, false = _by_threshold(labels, scores, weights)
    precision = true[:, 1:] / np.maximum(true + false, 1)[:, 1:]
    return np.asarray((np.diff(true) * precision).sum(axis=1) / np.maximum(true[:, -1], 1))


def _recall_at_few_false(labels: np.ndarray, scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
    true, false = _by_threshold(labels, scores, weights)
    few = false / np.maximum(false[:, -1:], 1) <= _MOST_FALSE_POSITIVES
    return np.asarray((true * few).max(axis=1) / np.maximum(true[:, -1], 1))


RANK_METRICS = (
    RankMetric("auroc", "AUROC", of=_auroc),
    RankMetric("average_precision", "average precision", of=_average_precision),
    RankMetric(
        "recall@fpr=0.01", "recall at 1% false positives", smallest_effect=0.02, of=_recall_at_few_false
    ),
)
"""Of two classes: area under the ROC curve; the mean precision over steps of recall, without interpolation; and the
highest recall of a threshold that at most 1% of the first class pass."""


# Entities


class Entities(NamedTuple):
    """Start, end (exclusive) and number of the type in `Scheme.types` of every entity, each int64 [entities]."""

    starts: np.ndarray
    ends: np.ndarray
    types: np.ndarray


def token_scores(labels: Tags, predictions: Tags, scheme: Scheme) -> dict[str, float]:
    """Score entities.

    An entity counts where start, end and type agree. Boundaries are conlleval's (Tjong Kim Sang and De Meulder
    2003), as in seqeval's default mode: an `I` that follows no entity of its type starts one. In strict schemes, as in
    seqeval's strict mode, an entity is `B`, any number of `I`, `E`, all of one type, or `S`; other runs are none. What
    is undefined, for want of entities, is 0.

    Args:
        labels: Tags of each sentence.
        predictions: The same; what is no tag of the scheme is outside.
        scheme: Of the tags.

    Returns:
        `precision`, `recall`, `f1` over all entities, and `f1/<TYPE>` for each type in `labels`, by name.

    Raises:
        ValueError: If the two differ in length; it names the sentence.
    """
    gold, predicted, hits = (count.sum(axis=1) for count in entity_counts(labels, predictions, scheme))
    n_gold, n_predicted, n_hits = (int(count.sum()) for count in (gold, predicted, hits))
    return {
        "precision": n_hits / max(n_predicted, 1),
        "recall": n_hits / max(n_gold, 1),
        "f1": 2 * n_hits / max(n_gold + n_predicted, 1),
    } | {
        f"f1/{name}": float(2 * hits[number] / (gold[number] + predicted[number]))
        for number, name in enumerate(scheme.types)
        if gold[number]
    }


def entity_counts(
    labels: Tags, predictions: Tags, scheme: Scheme
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return, each int64 [types, sentences], how many entities are in `labels`, in `predictions`, and in both.

    The scores of `token_scores` follow from the sums.
    """
    require_as_many(labels, predictions)
    gold, predicted = entities(labels, scheme), entities(predictions, scheme)
    _, in_gold, in_predicted = np.intersect1d(  # starts are unique among entities
        gold.starts, predicted.starts, assume_unique=True, return_indices=True
    )
    same_words = gold.ends[in_gold] == predicted.ends[in_predicted]
    matched = in_gold[same_words & (gold.types[in_gold] == predicted.types[in_predicted])]
    # Sentences lie end to end, an O before the first and after each.
    begins = np.cumsum([1, *(len(sentence) + 1 for sentence in labels)])
    shape = len(scheme.types), len(labels)

    def counted(found: Entities) -> np.ndarray:
        cells = found.types * len(labels) + np.searchsorted(begins, found.starts, side="right") - 1
        return np.bincount(cells, minlength=math.prod(shape)).reshape(shape)

    return counted(gold), counted(predicted), counted(Entities(*(part[matched] for part in gold)))


def require_as_many(labels: Sequence[Any], predictions: Sequence[Any]) -> None:
    """Raise `ValueError`, which names the sentence, where words have not one prediction each."""
    if len(labels) != len(predictions):
        raise ValueError(f"wanted predictions for {len(labels)} sentences, got them for {len(predictions)}")
    for i, (wanted, came) in enumerate(zip(map(len, labels), map(len, predictions), strict=True)):
        if wanted != came:
            raise ValueError(f"sentence {i}: wanted {wanted} predictions, one per label, got {came}")


def entities(sentences: Tags, scheme: Scheme) -> Entities:
    """Return the entities of sentences, in order.

    Starts and ends count through all sentences laid end to end, with one O before the first and after each.

    Args:
        sentences: Their tags; what is no tag of the scheme is outside.
        scheme: Of the tags.
    """
    number: dict[str | None, int] = {name: i for i, name in enumerate(scheme.types)}
    code = {tag: i for i, tag in enumerate(dict.fromkeys(itertools.chain.from_iterable(sentences)), start=1)}
    none = OUTSIDE, None
    read = [none, *(scheme.places.get(tag, none) for tag in code)]  # by code, 0 between sentences
    codes = [0]
    for sentence in sentences:
        codes += [*map(code.__getitem__, sentence), 0]
    place_of = np.array([place for place, _ in read])
    number_of = np.array([number.get(name, -1) for _, name in read])
    goes_on, is_open = np.isin(place_of, ["I", "E"])[codes], np.isin(place_of, ["B", "I"])[codes]
    places, numbers = place_of[codes], number_of[codes]
    inside = numbers >= 0
    follows = np.zeros(len(codes), dtype=bool)  # the token carries on the entity of the token before it
    follows[1:] = inside[1:] & (numbers[1:] == numbers[:-1]) & goes_on[1:] & is_open[:-1]
    starts = np.flatnonzero(inside & ~follows)
    breaks = np.flatnonzero(~follows)
    ends = breaks[np.searchsorted(breaks, starts, side="right")]
    if scheme.strict:
        whole = (places[starts] == "S") | ((places[starts] == "B") & (places[ends - 1] == "E"))
        starts, ends = starts[whole], ends[whole]
    return Entities(starts, ends, numbers[starts])
