"""Word classification: one class per word, each scored by itself, as parts of speech are."""

from __future__ import annotations

import numpy as np

from adalayers.tasks.kind import Gold
from adalayers.tasks.kinds.classes import Classification
from adalayers.tasks.metrics import CUT, word_scores


class WordClassification(Classification):
    """One class per word of texts that come as words; no class stands for words outside any entity."""

    name = "word"
    title = "word classification"
    head = "token"
    input_shapes = ("words",)
    label_shapes = ("tags",)
    metrics = ("accuracy", "f1_macro")
    default_metric = "accuracy"
    demo = "word-classes-demo"

    def truncated_prediction(self, label_names: tuple[str, ...]) -> int:
        """Return a number that is no class: a word that truncation cut away is wrong, whatever it is."""
        return len(label_names)

    def scores(self, gold: Gold, predictions: np.ndarray) -> dict[str, float]:
        """Return accuracy and macro F1 over all words."""
        return word_scores(gold.labels, predictions, len(gold.names))

    def as_text(self, gold: Gold, values: np.ndarray) -> list[str]:
        """Return the classes of a sentence's words joined by spaces; within a name they become underscores."""
        names = np.array(["_".join(name.split()) for name in (*gold.names, CUT)])
        return [" ".join(names[sentence]) for sentence in gold.by_example(values)]
