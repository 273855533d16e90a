"""Which arms give the very same predictions: what can be said exactly, however few the seeds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import pandas as pd

from reports.tables.arms import confirmed

_WEIGHT_ROUNDING = 1e-9

PredictionHashes = Mapping[tuple[str, int], str]
"""(arm, seed) -> what stands for all its predictions, equal where they are."""


def answers(trials: pd.DataFrame) -> dict[tuple[str, int], str]:
    """Return what stands for the predictions of each confirmed trial; trials without any are left out."""
    runs = confirmed(trials).dropna(subset=["seed"])
    said = zip(runs["arm"], runs["seed"], runs["predictions"], strict=True)
    return {(str(arm), int(seed)): str(text) for arm, seed, text in said if text}


def tied(weights: Mapping[str, float], seeds: Iterable[int], known: PredictionHashes) -> bool:
    """Whether a comparison is of the same predictions with both signs, on every seed."""
    for seed in seeds:
        total: Counter[str | None] = Counter()
        for arm, weight in weights.items():
            total[known.get((arm, seed))] += weight  # type: ignore[assignment]  # weights are no whole numbers
        if None in total or any(abs(weight) >= _WEIGHT_ROUNDING for weight in total.values()):
            return False
    return True
