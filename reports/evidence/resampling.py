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
from typing import NamedTuple

import numpy as np
import pandas as pd

from adalayers.results.files import PREDICTIONS, TRIALS, answers
from adalayers.tasks.metrics import Counts, Metric, metric
from reports.reading.frames import numbers
from reports.reading.load import Plan
from reports.tables import arms as tables
from reports.words.text import count

RESAMPLES = 1000

NEIGHBOURS = 30
"""Examples of a block: sentences that stand together in a corpus may be of one document."""

_SCORE_ROUNDING = 1e-6
"""Predictions whose score is this near to that of `trials.csv` are those it was computed from."""


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
    names: Sequence[str],
) -> tuple[dict[int, Variance], list[str]]:
    """Return the variances of each contrast over draws of examples.

    Args:
        predictions: Rows of `predictions.parquet`.
        trials: Rows of `trials.csv`.
        plan: The study's, for its metric.
        split: Whose examples are drawn.
        contrasts: The comparisons.
        names: Of the classes.

    Returns:
        Index in `contrasts` -> variances, and sentences on what is missing. A contrast is omitted if the predictions
        of any of its trials do not reproduce that trial's score.
    """
    column = f"{split}/{plan.metric}"
    rows = tables.confirmed(trials)
    scores = numbers(rows, column).set_axis(rows["trial_id"]).dropna()
    if not contrasts or scores.empty:
        return {}, []
    if (selects := metric(plan.metric)) is None:
        return {}, [f"it is not known how `{plan.metric}` follows from predictions"]
    if not {"split", "index", "label", "prediction"} <= set(predictions.columns):
        return {}, [f"`{PREDICTIONS}` is missing or lacks columns"]
    wanted = predictions[(predictions["split"] == split) & predictions["trial_id"].isin(scores.index)]
    if wanted.empty:
        return {}, [_not_given(len(scores))]
    try:
        scored, counts = collect(wanted, selects, names)
    except ValueError as error:
        return {}, [f"`{PREDICTIONS}` could not be used: {error}"]
    once = np.ones((1, counts.gold.shape[1]), dtype=np.float32)
    full_sample_scores = selects.resampled(counts, once)[:, 0]
    reproduces_score = np.abs(full_sample_scores - scores.reindex(scored).to_numpy()) <= _SCORE_ROUNDING
    parts = [_draws(selects, counts)]
    if blocks := once.size // NEIGHBOURS if once.size >= 2 * NEIGHBOURS else 0:
        # All but a block of neighbours; the last block has the rest too.
        block = np.minimum(np.arange(once.size) // NEIGHBOURS, blocks - 1)
        parts.append(selects.resampled(counts, once * (block != np.arange(blocks)[:, None])))
    draws = np.concatenate(parts, axis=1)
    drawn = {trial: draws[index] for index, trial in enumerate(scored) if reproduces_score[index]}
    missing = len(scores) - len(drawn)
    return _variances(drawn, rows, contrasts), [_not_given(missing)] if missing else []


def _not_given(missing: int) -> str:
    return f"`{PREDICTIONS}` does not give the score of {count(missing, 'trial')} in `{TRIALS}`"


def collect(rows: pd.DataFrame, selects: Metric, names: Sequence[str]) -> tuple[list[str], Counts]:
    """Count the labels and predictions of each example, for all trials that have the commonest set of examples.

    Words of a sentence are dependent: sentences are the examples.

    Args:
        rows: Of `predictions.parquet`, of one split; at least one.
        selects: The score that is wanted of them.
        names: Of the classes.

    Returns:
        The trials, and their counts stacked in this order.

    Raises:
        ValueError: Where the tags of a sentence do not fit its words, or what should be a number is none.
    """
    rows = rows.sort_values(["trial_id", "index"], kind="stable")
    labels = answers(rows["label"])
    gold, predicted, hits, n_labels = selects.count(
        labels.tolist(), answers(rows["prediction"]).tolist(), names
    )
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
    return list(alike), Counts(gold, predicted, hits, n_labels)


def _draws(selects: Metric, counts: Counts) -> np.ndarray:
    """Return scores [trials, `RESAMPLES`] over draws of examples, the same draws for all trials."""
    n, rng = counts.gold.shape[1], np.random.default_rng(0)
    most = max(1, selects.weights_at_once // max(n, math.prod(counts.hits.shape[:2])))
    parts = []
    for start in range(0, RESAMPLES, most):
        draws = min(most, RESAMPLES - start)
        weights = np.stack([np.bincount(rng.integers(n, size=n), minlength=n) for _ in range(draws)])
        parts.append(selects.resampled(counts, weights.astype(np.float32)))
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
