"""Rows of `predictions.parquet` -> misclassified examples, confusion, entity scores by class. No text in it.

For tokens and words a label or a prediction is a tuple, a tag per word; else it is a text, for regression a number's.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from adalayers.results.files import answers
from adalayers.tasks.metrics import Entities, entities, same_words
from adalayers.tasks.schemes import Scheme

MISSED, SPURIOUS, BOUNDARIES = "missed", "no entity there", "other boundaries"
ONE_ANSWER = 0.99
"""Share of a split's examples with one and the same answer from which on a trial is said to give one answer."""
MOST_CLASSES = 25
"""Most classes that are told apart."""


def rows_of(predictions: pd.DataFrame, trial_ids: Sequence[str], split: str) -> pd.DataFrame:
    """Return the predictions of some trials on one split: trial_id, label, prediction."""
    wanted = ["trial_id", "label", "prediction"]
    if not {*wanted, "split"} <= set(predictions.columns):
        return pd.DataFrame(columns=wanted)
    rows = predictions[predictions["trial_id"].isin(list(trial_ids)) & (predictions["split"] == split)]
    rows = rows[wanted].dropna(subset=["label", "prediction"])
    return rows.assign(label=answers(rows["label"]), prediction=answers(rows["prediction"]))


def one_answer(predictions: pd.DataFrame, trial_ids: Sequence[str], split: str) -> frozenset[str]:
    """Return the trials that give at least `ONE_ANSWER` of the examples of a split one and the same answer."""
    if not {"trial_id", "split", "prediction"} <= set(predictions.columns):
        return frozenset()
    rows = predictions[predictions["trial_id"].isin(list(trial_ids)) & (predictions["split"] == split)]
    answers = rows.groupby(["trial_id", "prediction"], observed=True).size().groupby("trial_id")
    share = answers.max() / answers.sum()
    return frozenset(share.index[share >= ONE_ANSWER].astype(str))


def confusion(rows: pd.DataFrame, labels: Sequence[str]) -> pd.DataFrame:
    """Examples by true and predicted class, the mean count over the n trials in `rows`; classes by `labels`.

    Of many classes those that occur most often are kept, the others are one.
    """
    n = rows["trial_id"].nunique()
    if n == 0:
        return pd.DataFrame()
    seen = sorted({*rows["label"], *rows["prediction"]} - set(labels))
    names = [*labels, *seen]
    if len(names) > MOST_CLASSES:
        often = {*pd.concat([rows["label"], rows["prediction"]]).value_counts().index[: MOST_CLASSES - 1]}
        rest = f"{len(names) - len(often)} other classes"
        names = [*(name for name in names if name in often), rest]
        rows = rows.assign(
            **{key: rows[key].where(rows[key].isin(often), rest) for key in ("label", "prediction")}
        )
    counts = pd.crosstab(rows["label"], rows["prediction"])
    counts = counts.reindex(index=names, columns=names, fill_value=0) / n
    return pd.DataFrame(counts.to_numpy(dtype=float), index=names, columns=names)


def by_word(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row per word, of rows with a class per word: trial_id, label, prediction."""
    words = rows[["trial_id", "label", "prediction"]]
    fits = words["label"].str.len() == words["prediction"].str.len()
    return words[fits].explode(["label", "prediction"]).dropna().reset_index(drop=True)


def span_confusion(rows: pd.DataFrame, scheme: Scheme) -> pd.DataFrame:
    """Entities by true and predicted type, the mean count over the n trials in `rows`, their tags read by `scheme`.

    A true entity is predicted as the type of the predicted one with the same words; else it has "other
    boundaries" where a predicted one overlaps it, else it is "missed". The last row, "no entity there",
    holds predicted entities that overlap no true one (NaN where that cannot be). Empty without any entity, and with
    more than `MOST_CLASSES` types.
    """
    trials = [_spans(of_trial, scheme) for _, of_trial in rows.groupby("trial_id")]
    types = sorted({name for *_, names in trials for name in names})
    if not 0 < len(types) <= MOST_CLASSES:
        return pd.DataFrame()
    predicted_names, true = [*types, BOUNDARIES, MISSED], [*types, SPURIOUS]
    total = np.zeros((len(true), len(predicted_names)))
    for gold, predicted, names in trials:
        class_of = np.array([types.index(name) for name in names], dtype=int)
        outcome = np.where(_overlaps(gold, predicted), len(types), len(types) + 1)
        in_gold, in_predicted = same_words(gold, predicted)
        outcome[in_gold] = class_of[predicted[2][in_predicted]]
        np.add.at(total, (class_of[gold[2]], outcome), 1)
        alone = ~_overlaps(predicted, gold)
        np.add.at(total, (np.full(alone.sum(), len(types)), class_of[predicted[2][alone]]), 1)
    total[len(types), len(types) :] = np.nan  # no true entity: nothing to miss
    return pd.DataFrame(total / len(trials), index=true, columns=predicted_names)


def _spans(rows: pd.DataFrame, scheme: Scheme) -> tuple[Entities, Entities, list[str]]:
    """Return true and predicted entities of one trial: (start, end, kind) each, kinds numbering the names."""
    kinds: dict[str, int] = {}
    pairs = zip(rows["label"], rows["prediction"], strict=True)
    whole = [(gold, tags) for gold, tags in pairs if len(gold) == len(tags)]
    gold, predicted = (entities([pair[side] for pair in whole], scheme, kinds) for side in (0, 1))
    return gold, predicted, list(kinds)


def _overlaps(a: Entities, b: Entities) -> np.ndarray:
    """Return for each entity of `a` whether any of `b` shares a word with it, bool [a]."""
    first = np.searchsorted(b[1], a[0], side="right")  # the first of `b` that ends after it starts
    overlaps = first < len(b[0])
    overlaps[overlaps] = b[0][first[overlaps]] < a[1][overlaps]
    return overlaps
