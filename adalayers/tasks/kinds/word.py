"""Word classification: one class per word, each scored by itself, as parts of speech are."""

from __future__ import annotations

from typing import Any

import numpy as np

from adalayers.tasks.kinds.classes import Classification
from adalayers.tasks.kinds.token import sentence_columns
from adalayers.tasks.metrics import CUT, word_scores


class WordClassification(Classification):
    """One class per word of texts that come as words; no class marks what is no part of anything."""

    name = "word"
    title = "word classification"
    head = "token"
    input_shapes = ("words",)
    label_shapes = ("tags",)
    metrics = ("accuracy", "f1_macro")
    default_metric = "accuracy"
    demo = "word-classes-demo"

    def lost(self, label_names: tuple[str, ...]) -> int:
        """Return a number that is no class: a word that truncation cut away is wrong, whatever it is."""
        return len(label_names)

    def scores(
        self,
        labels: np.ndarray,
        predictions: np.ndarray,
        label_names: tuple[str, ...],
        offsets: np.ndarray | None = None,
    ) -> dict[str, float]:
        """Return accuracy and macro F1 over all words [items], wherever they stand."""
        return word_scores(labels, predictions, len(label_names))

    def prediction_columns(
        self,
        labels: np.ndarray,
        predictions: np.ndarray,
        probabilities: np.ndarray,
        label_names: tuple[str, ...],
        offsets: np.ndarray | None = None,
    ) -> dict[str, list[Any]]:
        """Return the classes of a sentence's words joined by spaces, and the mean probability of the predicted ones."""
        names = tuple("_".join(name.split()) for name in (*label_names, CUT))
        return sentence_columns(labels, predictions, probabilities, names, offsets)
