"""Paired bootstrap over test examples, from `predictions.parquet`.

Examples are drawn with replacement, the same ones for every arm and every seed; where rows say which belong together
(`--group-column`), whole groups are. A trial's score is
computed from sums over examples, so many draws are one product of matrices. The variance, over draws, of an
arm's mean paired difference is added to the variance between seeds (`claims.with_examples`).
Examples and seeds are crossed, so what both do together is in either part and counts twice: the interval errs
on the wide side.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from adalayers.results.files import PREDICTIONS, TRIALS, answers
from adalayers.tasks.metrics import Answers, Counts, Metric, metric
from reports.evidence.claims import Key
from reports.reading.frames import numbers
from reports.reading.load import Loaded
from reports.tables import arms as tables
from reports.words import count

RESAMPLES = 1000

_SCORE_ROUNDING = 1e-6
"""Predictions whose score is this near to that of `trials.csv` are those it was computed from."""


Contrast = tuple[Mapping[str, float], Collection[int]]
"""A comparison: its weights by arm, and the seeds that it is over."""


class Variance(NamedTuple):
    """Of a contrast, over draws of test examples.

    Attributes:
        mean: Of its mean over seeds.
        without: The mean difference itself without the examples that also stand in train.
    """

    mean: float
    without: float


def example_variances(
    loaded: Loaded, split: str, contrasts: Mapping[Key, Contrast], shared: Collection[int] = ()
) -> tuple[dict[Key, Variance], list[str]]:
    """Return the variances of each contrast over draws of examples.

    Args:
        loaded: The study.
        split: Whose examples are drawn.
        contrasts: The comparisons, by key.
        shared: Indices of the examples that also stand in train.

    Returns:
        Key of a contrast -> variances, and sentences on what is missing. A contrast is omitted if the predictions of
        any of its trials do not reproduce that trial's score.
    """
    request, predictions = loaded.study.request, loaded.predictions
    names, rows = loaded.study.environment.dataset.labels, tables.confirmed(loaded.trials)
    scores = numbers(rows, f"{split}/{request.metric}").set_axis(rows["trial_id"]).dropna()
    if not contrasts or scores.empty:
        return {}, []
    if (selects := metric(request.metric)) is None:
        return {}, [f"it is not known how `{request.metric}` follows from predictions"]
    if not {"split", "index", "label", "prediction"} <= set(predictions.columns):
        return {}, [f"`{PREDICTIONS}` is missing or lacks columns"]
    wanted = predictions[(predictions["split"] == split) & predictions["trial_id"].isin(scores.index)]
    drawn: dict[str, np.ndarray] = {}
    if len(wanted):
        try:
            scored, index, counts, groups = collect(wanted, selects, names)
        except ValueError as error:
            return {}, [f"`{PREDICTIONS}` could not be used: {error}"]
        if groups is not None and not groups.any():
            return {}, ["all examples are of one group"]
        weights = np.stack([~np.isin(index, [*shared]), np.ones(len(index))]).astype(np.float32)
        without, whole = selects.resampled(counts, weights).T
        believed = np.abs(whole - scores.reindex(scored).to_numpy()) <= _SCORE_ROUNDING
        draws = np.column_stack([without, _draws(selects, counts, groups)])
        drawn = {trial: draws[place] for place, trial in enumerate(scored) if believed[place]}
    missing = len(scores) - len(drawn)
    note = f"`{PREDICTIONS}` does not give the score of {count(missing, 'trial')} in `{TRIALS}`"
    return _variances(drawn, rows, contrasts), [note] if missing else []


def collect(
    rows: pd.DataFrame, selects: Metric, names: Sequence[str]
) -> tuple[list[str], np.ndarray, Counts, np.ndarray | None]:
    """Count the labels and predictions of each example, for all trials that have the commonest set of examples.

    Words of a sentence are dependent: sentences are the examples.

    Args:
        rows: Of `predictions.parquet`, of one split; at least one.
        selects: The score that is wanted of them.
        names: Of the classes.

    Returns:
        The trials, the indices of the examples, the counts of both, trials stacked in this order, and the number of
        each example's group, [examples]; None where rows name none.

    Raises:
        ValueError: Where the tags of a sentence do not fit its words, or what should be a number is none.
    """
    rows = rows.sort_values(["trial_id", "index"], kind="stable", ignore_index=True)
    sizes = rows.groupby("trial_id")["index"].transform("size")
    rows = rows[sizes == sizes.mode()[0]]
    labels, trials = answers(rows["label"]), rows["trial_id"].unique()
    probabilities = rows["score"].to_numpy(dtype=float) if "score" in rows else None
    said = answers(rows["prediction"]).tolist()
    *counts, n_labels = selects.count(Answers(labels.tolist(), said, names, probabilities))
    codes = np.stack([rows["index"], pd.factorize(labels)[0]], axis=1).reshape(len(trials), -1)
    examples = pd.Series([of_trial.tobytes() for of_trial in codes])
    alike = (examples == examples.mode()[0]).to_numpy()
    gold, predicted, hits = (
        part.reshape(len(part), len(trials), -1)[:, alike].swapaxes(0, 1) for part in counts
    )
    groups = None
    if "group" in rows and rows["group"].notna().all():
        groups = pd.factorize(rows["group"].to_numpy().reshape(len(trials), -1)[alike][0])[0]
    index = codes[alike][0, ::2]
    return [*map(str, trials[alike])], index, Counts(gold[0], predicted, hits, n_labels), groups


def _draws(selects: Metric, counts: Counts, groups: np.ndarray | None) -> np.ndarray:
    """Return scores [trials, `RESAMPLES`] over draws of examples or of groups, the same draws for all trials."""
    n, rng = counts.gold.shape[1], np.random.default_rng(0)
    unit = np.arange(n) if groups is None else groups
    units = int(unit.max()) + 1
    most = max(1, selects.weights_at_once // max(n, math.prod(counts.hits.shape[:2])))
    parts = []
    for start in range(0, RESAMPLES, most):
        draws = min(most, RESAMPLES - start)
        weights = np.stack(
            [np.bincount(rng.integers(units, size=units), minlength=units)[unit] for _ in range(draws)]
        )
        parts.append(selects.resampled(counts, weights.astype(np.float32)))
    return np.concatenate(parts, axis=1)


def _variances(
    drawn: Mapping[str, np.ndarray], rows: pd.DataFrame, contrasts: Mapping[Key, Contrast]
) -> dict[Key, Variance]:
    trials = zip(rows["arm"], rows["seed"], rows["trial_id"], strict=True)
    of_trial = {(arm, seed): drawn[trial] for arm, seed, trial in trials if trial in drawn}
    variances = {}
    for key, (weights, seeds) in contrasts.items():
        if seeds and {(arm, seed) for arm in weights for seed in seeds} <= of_trial.keys():
            by_seed = [sum(weights[arm] * of_trial[arm, seed] for arm in weights) for seed in seeds]
            without, *mean = np.array(by_seed).mean(axis=0)
            variances[key] = Variance(float(np.var(mean, ddof=1)), float(without))
    return variances
