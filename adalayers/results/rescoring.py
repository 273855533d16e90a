"""Scores of trials, held against the predictions that they follow from."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from adalayers.results.files import PREDICTIONS, PREFIXES, answers, prediction_hash
from adalayers.results.study_file import DatasetRecord
from adalayers.tasks.kinds import KINDS
from adalayers.tasks.metrics import Answers

ROUNDING = 1e-6
"""Scores that are this near, relative to those above 1, are one: predicted numbers are written with nine digits."""

SPLITS = {prefix: split for split, prefix in PREFIXES.items()}


def contradictions(trials: pd.DataFrame, predictions: pd.DataFrame, dataset: DatasetRecord) -> dict[str, str]:
    """Return the confirmed trials whose rows are not what their predictions say, each with why.

    A trial without predictions, and scores that a kind of task does not read from them, contradict nothing.

    Args:
        trials: Rows of `trials.csv`.
        predictions: Rows of `predictions.parquet`.
        dataset: What the study says of it; of a split whose examples it does not count, there are as many as most
            trials have.
    """
    if not {"trial_id", "split", "index", "label", "prediction"} <= set(predictions.columns):
        return {}
    confirmed = trials[(trials["stage"] == "confirm") & (trials["status"] == "completed")]
    rows = {row["trial_id"]: row for row in confirmed.to_dict("records")}
    found: dict[str, str] = {}
    for split, name in SPLITS.items():
        given = predictions[(predictions["split"] == split) & predictions["trial_id"].isin(list(rows))]
        by_trial = given.groupby("trial_id")
        wanted = dataset.examples.get(name, int(by_trial.size().mode().max()) if len(given) else 0)
        for trial_id, own in by_trial:
            if len(own) != wanted or own["index"].duplicated().any():
                why = f"{PREDICTIONS} has {len(own):,} rows of {name}, the study {wanted:,} examples"
            else:
                why = next(contradicted(rows[trial_id], own, split, dataset, strict=False), "")
            if why:
                found.setdefault(str(trial_id), why)
    return found


def contradicted(
    row: Mapping[Any, Any], predictions: pd.DataFrame, split: str, dataset: DatasetRecord, *, strict: bool
) -> Iterator[str]:
    """Yield what of a trial's row is not what its predictions on one split say.

    Args:
        row: Of `trials.csv`.
        predictions: Its rows of `predictions.parquet` of the split.
        split: "val" or "test".
        dataset: What the study says of it.
        strict: Whether a score that does not follow from predictions is one of these things too.
    """
    kind = KINDS.get(dataset.kind)
    gold, said = (answers(predictions[name]).tolist() for name in ("label", "prediction"))
    sure = predictions["score"].to_numpy(dtype=float) if "score" in predictions else None
    try:
        scores = kind.rescored(Answers(gold, said, dataset.labels, sure)) if kind else None
    except ValueError as error:
        yield f"its predictions of {SPLITS[split]} cannot be scored ({error})"
        return
    if strict and scores is None:
        yield f"its scores on {SPLITS[split]} cannot be checked, a kind of task named {dataset.kind} does not say how"
    for name, score in (scores or {}).items():
        column = f"{split}/{name}"
        if (given := row.get(column)) is None or pd.isna(given):
            continue
        try:
            same = math.isclose(float(given), score, rel_tol=ROUNDING, abs_tol=ROUNDING)
        except (TypeError, ValueError):  # no number
            same = False
        if not same:
            yield f"{column} is {given}, its predictions give {score:.6f}"
    # It stands for the test split, or for validation where that is all.
    hashed = split == "test" or not any(str(name).startswith("test/") for name in row)
    if hashed and (known := row.get("predictions")) and known != prediction_hash(predictions):
        yield f"its predictions of {SPLITS[split]} are not those that its row was written for"
