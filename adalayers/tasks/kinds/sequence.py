"""Sequence classification: one class per text, or per pair of texts (thesis 5.2.1)."""

from __future__ import annotations

from typing import Any

import numpy as np

from adalayers.tasks.kind import Labels
from adalayers.tasks.kinds.classes import Classification
from adalayers.tasks.metrics import sequence_scores


class SequenceClassification(Classification):
    """One class per text or pair of texts."""

    name = "sequence"
    title = "sequence classification"
    head = "sequence"
    input_shapes = ("text", "text pair")
    label_shapes = ("class",)
    metrics = ("accuracy", "f1_macro", "matthews")
    default_metric = "f1_macro"
    demo = "acceptability-demo"

    def strata(self, labels: Labels) -> np.ndarray:
        """Return the classes themselves: each keeps its share in validation."""
        return np.asarray(labels)

    def scores(
        self,
        labels: np.ndarray,
        predictions: np.ndarray,
        label_names: tuple[str, ...],
        offsets: np.ndarray | None = None,
    ) -> dict[str, float]:
        """Return accuracy, macro F1 and Matthews correlation of classes [n]."""
        return sequence_scores(labels, predictions, len(label_names))

    def prediction_columns(
        self,
        labels: np.ndarray,
        predictions: np.ndarray,
        probabilities: np.ndarray,
        label_names: tuple[str, ...],
        offsets: np.ndarray | None = None,
    ) -> dict[str, list[Any]]:
        """Return class names, and the probability of the predicted class."""
        names = np.array(label_names)
        return {
            "label": names[labels].tolist(),
            "prediction": names[predictions].tolist(),
            "score": probabilities.tolist(),
        }
