"""Sequence classification: one class per text, or per pair of texts (thesis 5.2.1)."""

from __future__ import annotations

import numpy as np

from adalayers.tasks.kind import Gold, Labels
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

    def scores(self, gold: Gold, predictions: np.ndarray) -> dict[str, float]:
        """Return accuracy, macro F1 and Matthews correlation."""
        return sequence_scores(gold.labels, predictions, len(gold.names))

    def as_text(self, gold: Gold, values: np.ndarray) -> list[str]:
        """Return the names of classes."""
        return np.array(gold.names)[values].tolist()
