"""Paired bootstrap over test examples, from `predictions.parquet`.

Examples are drawn with replacement, the same ones for every arm and every seed. A trial's score is
computed from sums over examples, so many draws are one product of matrices. The variance, over draws, of an
arm's mean paired difference is added to the variance between seeds (`claims.with_examples`).
Examples and seeds are crossed, so what both do together is in either part and counts twice: the interval errs
on the wide side.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from adalayers.results.files import PREDICTIONS, TRIALS, answers
from adalayers.tasks.metrics import (
    CLASS_SCORES,
    CUT,
    ENTITY_SCORES,
    NUMBER_SCORES,
    correlations,
    entity_counts,
    explained,
    ranks,
)
from adalayers.tasks.schemes import NO_TAGS, Scheme
from reports.reading.frames import numbers
from reports.reading.load import Plan
from reports.tables import arms as tables
from reports.words.text import count

RESAMPLES = 1000

NEIGHBOURS = 30
"""Examples of a block: sentences that stand together in a corpus may be of one document."""

_WEIGHTS, _NUMBER_WEIGHTS = 20_000_000, 1_000_000
"""Most weights, draws x examples, in memory at a time; fewer of numbers, of which several tables are as large."""

_COUNTS = 50_000_000
"""Most counts, classes x predictions, that are drawn from."""

_SCORE_ROUNDING = 1e-6
"""Predictions whose score is this near to that of `trials.csv` are those it was computed from."""


@dataclass(frozen=True)
class Predicted:
    """Predictions of several trials on the same examples.

    trials: their ids
    gold: [classes, examples], how often each class is in the label (for entities: one class; of numbers the number)
    hits, predicted: [trials, classes, examples], the same of correct ones and of predictions
    n_labels: classes that a mean over classes divides by
    """

    trials: tuple[str, ...]
    gold: np.ndarray
    hits: np.ndarray
    predicted: np.ndarray
    n_labels: int


Contrast = tuple[Mapping[str, float], Collection[int]]
"""A comparison: its weights by arm, and the seeds that it is over."""


class Variance(NamedTuple):
    """Of a contrast, over draws of test examples.

    Attributes:
        mean: Of its mean over seeds.
        blocks: That of its mean where `NEIGHBOURS` examples stay together, by leaving out each block in turn, and how
            many blocks there are; None for numbers.
    """

    mean: float
    blocks: tuple[float, int] | None = None


def example_variances(
    predictions: pd.DataFrame,
    trials: pd.DataFrame,
    plan: Plan,
    split: str,
    contrasts: Sequence[Contrast],
    n_labels: int,
    *,
    words: bool = False,
    scheme: Scheme = NO_TAGS,
) -> tuple[dict[int, Variance], list[str]]:
    """Return the variances of each contrast over draws of examples.

    Args:
        predictions: Rows of `predictions.parquet`.
        trials: Rows of `trials.csv`.
        plan: The study's, for its metric.
        split: Whose examples are drawn.
        contrasts: The comparisons.
        n_labels: Classes that a mean over classes divides by.
        words: Whether a label holds a class per word. Sentences are drawn, as words of a sentence are dependent.
        scheme: Of tags of entities.

    Returns:
        Index in `contrasts` -> variances, and sentences on what is missing. A contrast is omitted if the predictions
        of any of its trials do not reproduce that trial's score.
    """
    column = f"{split}/{plan.metric}"
    rows = tables.confirmed(trials)
    scores = numbers(rows, column).set_axis(rows["trial_id"]).dropna()
    if not contrasts or scores.empty:
        return {}, []
    if plan.metric not in (*CLASS_SCORES, *ENTITY_SCORES, *NUMBER_SCORES):
        return {}, [f"it is not known how `{plan.metric}` follows from predictions"]
    if not {"split", "index", "label", "prediction"} <= set(predictions.columns):
        return {}, [f"`{PREDICTIONS}` is missing or lacks columns"]
    wanted = predictions[(predictions["split"] == split) & predictions["trial_id"].isin(scores.index)]
    if wanted.empty:
        return {}, [_not_given(len(scores))]
    try:
        counted = collect(wanted, plan.metric, n_labels, words=words, scheme=scheme)
    except ValueError as error:
        return {}, [f"`{PREDICTIONS}` could not be used: {error}"]
    once = np.ones((1, counted.gold.shape[1]), dtype=np.float32)
    full_sample_scores = resampled(counted, plan.metric, once)[:, 0]
    reproduces_score = (
        np.abs(full_sample_scores - scores.reindex(list(counted.trials)).to_numpy()) <= _SCORE_ROUNDING
    )
    parts = [_draws(counted, plan.metric)]
    if blocks := once.size // NEIGHBOURS if once.size >= 2 * NEIGHBOURS else 0:
        # All but a block of neighbours; the last block has the rest too.
        block = np.minimum(np.arange(once.size) // NEIGHBOURS, blocks - 1)
        parts.append(resampled(counted, plan.metric, once * (block != np.arange(blocks)[:, None])))
    draws = np.concatenate(parts, axis=1)
    drawn = {trial: draws[index] for index, trial in enumerate(counted.trials) if reproduces_score[index]}
    missing = len(scores) - len(drawn)
    return _variances(drawn, rows, contrasts), [_not_given(missing)] if missing else []


def _not_given(missing: int) -> str:
    return f"`{PREDICTIONS}` does not give the score of {count(missing, 'trial')} in `{TRIALS}`"


def collect(
    rows: pd.DataFrame, metric: str, n_labels: int, *, words: bool = False, scheme: Scheme = NO_TAGS
) -> Predicted:
    """Count the labels and predictions of each example, for all trials that have the commonest set of examples.

    Args:
        rows: Of `predictions.parquet`, of one split; at least one.
        metric: The score that is wanted of them.
        n_labels: Classes that a mean over classes divides by.
        words: Whether a label holds a class per word.
        scheme: Of tags of entities.

    Raises:
        ValueError: Where the tags of a sentence do not fit its words, or what should be a number is none.
    """
    rows = rows.sort_values(["trial_id", "index"], kind="stable")
    labels, predictions = answers(rows["label"]), answers(rows["prediction"])
    if metric in NUMBER_SCORES:
        gold, predicted = (texts.astype(float).to_numpy()[None] for texts in (labels, predictions))
        hits = predicted
    elif words:
        gold, predicted, hits, named = _count_words(labels.tolist(), predictions.tolist())
        n_labels = max(n_labels, len(named))
    elif metric in ENTITY_SCORES:
        pair_codes, pairs = pd.factorize(pd.Series(zip(labels, predictions, strict=True), rows.index))
        counts = entity_counts([true for true, _ in pairs], [guess for _, guess in pairs], scheme)
        gold, predicted, hits = (count[pair_codes][None].astype(np.float32) for count in counts)
        n_labels = 1
    elif metric == "accuracy":  # whatever the classes: they may be thousands
        hits = (labels == predictions).to_numpy()[None].astype(np.float32)
        gold = predicted = np.ones_like(hits)
    else:
        gold, predicted, hits, named = _count_words(
            *([[text] for text in part] for part in (labels, predictions))
        )
        n_labels = max(n_labels, len(named))
    index, true_codes = rows["index"].to_numpy(), pd.factorize(labels)[0]
    rows_of_trial = {
        str(trial): slice(places.min(), places.max() + 1)
        for trial, places in pd.Series(np.arange(len(rows))).groupby(rows["trial_id"].to_numpy(), sort=True)
    }
    examples = {
        trial: (index[places].tobytes(), true_codes[places].tobytes())
        for trial, places in rows_of_trial.items()
    }
    commonest = Counter(examples.values()).most_common(1)[0][0]
    alike = {trial: places for trial, places in rows_of_trial.items() if examples[trial] == commonest}
    gold = gold[:, next(iter(alike.values()))]
    predicted, hits = (np.stack([part[:, places] for places in alike.values()]) for part in (predicted, hits))
    return Predicted(tuple(alike), gold, hits, predicted, n_labels)


def _count_words(
    true: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[str]]:
    """Return how often each class is a word's label, its prediction, and both, [classes, rows]; and the classes."""
    lengths = np.array([len(sentence) for sentence in true], dtype=int)
    if lengths.tolist() != [len(sentence) for sentence in predicted]:
        raise ValueError("the classes of a sentence are not as many as its words")
    codes, classes = pd.factorize(
        np.array([word for part in (true, predicted) for sentence in part for word in sentence], dtype=object)
    )
    _bounded(len(classes), len(lengths))
    row = np.repeat(np.arange(len(lengths)), lengths)
    true_codes, predicted_codes = codes[: len(row)], codes[len(row) :]
    right = true_codes == predicted_codes

    def counts(class_codes: np.ndarray, at: np.ndarray) -> np.ndarray:
        cells = np.bincount(class_codes * len(lengths) + at, minlength=len(classes) * len(lengths))
        return cells.reshape(len(classes), len(lengths)).astype(np.float32)

    named = [str(name) for name in classes if name != CUT]
    return counts(true_codes, row), counts(predicted_codes, row), counts(true_codes[right], row[right]), named


def _bounded(classes: int, predictions: int) -> None:
    if classes * predictions > _COUNTS:
        raise ValueError(f"{classes:,} classes of {predictions:,} predictions are too many to draw from")


def resampled(counted: Predicted, metric: str, weights: np.ndarray) -> np.ndarray:
    """Return scores [trials, draws] of examples taken `weights` [draws, examples] times."""
    if metric in NUMBER_SCORES:
        return _number_scores(counted, metric, weights.astype(float))

    def summed(counts: np.ndarray) -> np.ndarray:
        # One product of two matrices: NumPy takes a stack of small ones one by one.
        flat = counts.reshape(-1, counts.shape[-1]) @ weights.T
        return flat.reshape(*counts.shape[:-1], len(weights))

    return _score(
        metric, summed(counted.hits), summed(counted.predicted), summed(counted.gold), counted.n_labels
    )


def _number_scores(counted: Predicted, metric: str, weights: np.ndarray) -> np.ndarray:
    labels, predicted = counted.gold[0], counted.predicted[:, 0]
    if metric == "spearman":
        of_labels = ranks(labels, weights)
        return np.stack([correlations(of_labels, ranks(values, weights), weights) for values in predicted])
    score = explained if metric == "r2" else correlations
    return np.stack([score(labels, values, weights) for values in predicted])


def _score(
    metric: str, hits: np.ndarray, predicted: np.ndarray, gold: np.ndarray, n_labels: int
) -> np.ndarray:
    """Return scores [trials, draws] of counts [trials, classes, draws], as `adalayers.tasks.metrics` defines them.

    gold: [classes, draws]
    """
    hits, predicted, gold = (part.astype(float) for part in (hits, predicted, gold))
    n = gold.sum(axis=0)  # each example, or word, has one class
    if metric == "accuracy":
        return hits.sum(axis=1) / n
    if metric == "precision":
        return hits[:, 0] / np.maximum(predicted[:, 0], 1)
    if metric == "recall":
        return hits[:, 0] / np.maximum(gold[0], 1)
    if metric == "matthews":
        covariance = n * hits.sum(axis=1) - (gold * predicted).sum(axis=1)
        variances = (n**2 - (gold**2).sum(axis=0)) * (n**2 - (predicted**2).sum(axis=1))
        return np.divide(covariance, np.sqrt(variances), out=np.zeros_like(covariance), where=variances > 0)
    return (2 * hits / np.maximum(gold + predicted, 1)).sum(axis=1) / n_labels


def _draws(counted: Predicted, metric: str) -> np.ndarray:
    """Return scores [trials, `RESAMPLES`] over draws of examples, the same draws for all trials."""
    n, rng = counted.gold.shape[1], np.random.default_rng(0)
    size = n if metric in NUMBER_SCORES else max(n, math.prod(counted.hits.shape[:2]))
    most = max(1, (_NUMBER_WEIGHTS if metric in NUMBER_SCORES else _WEIGHTS) // size)
    parts = []
    for start in range(0, RESAMPLES, most):
        draws = min(most, RESAMPLES - start)
        weights = np.stack([np.bincount(rng.integers(n, size=n), minlength=n) for _ in range(draws)])
        parts.append(resampled(counted, metric, weights.astype(np.float32)))
    return np.concatenate(parts, axis=1)


def _variances(
    drawn: Mapping[str, np.ndarray], rows: pd.DataFrame, contrasts: Sequence[Contrast]
) -> dict[int, Variance]:
    trial_of = {
        (arm, seed): trial
        for arm, seed, trial in zip(rows["arm"], rows["seed"], rows["trial_id"], strict=True)
    }
    variances = {}
    for index, (weights, seeds) in enumerate(contrasts):
        trials = {(arm, seed): trial_of.get((arm, seed), "") for arm in weights for seed in seeds}
        if trials and all(trial in drawn for trial in trials.values()):
            by_seed = np.array(
                [sum(weights[arm] * drawn[trials[arm, seed]] for arm in weights) for seed in seeds]
            )
            left_out = by_seed[:, RESAMPLES:].mean(axis=0)  # a block each
            blocks = (float(np.var(left_out)) * (len(left_out) - 1), len(left_out)) if len(left_out) else None
            by_seed = by_seed[:, :RESAMPLES]
            mean = float(np.var(np.mean(by_seed, axis=0), ddof=1))
            variances[index] = Variance(mean, blocks)
    return variances
