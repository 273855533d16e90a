"""Which arms give the very same predictions: what can be said exactly, however few the seeds."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

import pandas as pd

from reports.evidence.tables import confirmed

_WEIGHT_ROUNDING = 1e-9

PredictionHashes = Mapping[tuple[str, int], str]
"""(arm, seed) -> what stands for all its predictions, equal where they are."""


def answers(predictions: pd.DataFrame, trials: pd.DataFrame, split: str) -> dict[tuple[str, int], str]:
    """Return what stands for the predictions of each confirmed trial on a split; trials without any are left out."""
    if not {"trial_id", "split", "index", "prediction"} <= set(predictions.columns):
        return {}
    rows = predictions[predictions["split"] == split].sort_values(["trial_id", "index"], kind="stable")
    # All at once: to join the words of millions of predictions takes ten times as long.
    columns = [
        pd.util.hash_array(rows[name].astype(str).to_numpy(dtype=object)) for name in ("index", "prediction")
    ]
    hash_of = {
        str(trial): hashlib.sha256(b"".join(column[own].tobytes() for column in columns)).hexdigest()
        for trial, own in rows.groupby("trial_id", sort=False).indices.items()
    }
    runs = confirmed(trials).dropna(subset=["seed"])
    return {
        (str(arm), int(seed)): hash_of[str(trial)]
        for trial, arm, seed in zip(runs["trial_id"], runs["arm"], runs["seed"], strict=True)
        if str(trial) in hash_of
    }


def tied(weights: Mapping[str, float], seeds: Iterable[int], known: PredictionHashes) -> bool:
    """Whether a comparison is of the same predictions with both signs, on every seed."""
    for seed in seeds:
        total: dict[str, float] = {}
        for arm, weight in weights.items():
            if (arm, seed) not in known:
                return False
            total[known[arm, seed]] = total.get(known[arm, seed], 0.0) + weight
        if any(abs(weight) >= _WEIGHT_ROUNDING for weight in total.values()):
            return False
    return True
