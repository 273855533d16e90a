"""Token classification: one tag per word, scored over entities (thesis 5.2.2)."""

from __future__ import annotations

import numpy as np

from adalayers.tasks.kind import Gold
from adalayers.tasks.kinds.classes import Classification
from adalayers.tasks.metrics import OUTSIDE, entities, is_entity_tag, published_token_scores, token_scores


class TokenClassification(Classification):
    """One tag per word of texts that come as words."""

    name = "token"
    title = "token classification"
    head = "token"
    input_shapes = ("words",)
    label_shapes = ("tags",)
    metrics = ("precision", "recall", "f1")
    default_metric = "f1"
    demo = "entities-demo"

    def fits(self, label_names: tuple[str, ...]) -> bool:
        """Return whether the tags mark entities: O is one of them, or a tag has a prefix, such as B-."""
        return any(map(is_entity_tag, label_names))

    def truncated_prediction(self, label_names: tuple[str, ...]) -> int:
        """Return O where there is one, else the first tag."""
        return label_names.index(OUTSIDE) if OUTSIDE in label_names else 0

    def metrics_of(self, label_names: tuple[str, ...]) -> tuple[str, ...]:
        """Return precision, recall and F1 over all entities, and F1 of each type of entity."""
        types: dict[str, int] = {}
        entities([label_names], types)
        return (*self.metrics, *(f"f1/{name}" for name in sorted(types)))

    def scores(self, gold: Gold, predictions: np.ndarray) -> dict[str, float]:
        """Return precision, recall and F1 over entities, and `f1/<TYPE>` for each type in the labels."""
        return token_scores(tags(gold, gold.labels), tags(gold, predictions))

    def published_scores(self, gold: Gold, predictions: np.ndarray) -> dict[str, float]:
        """Return the same scores by seqeval, which is slower."""
        return published_token_scores(tags(gold, gold.labels), tags(gold, predictions))

    def baseline(self, metric: str, gold: Gold) -> float:
        """Return 0, for the most frequent tag is O."""
        return 0.0

    def as_text(self, gold: Gold, values: np.ndarray) -> list[str]:
        """Return the tags of a sentence joined by spaces."""
        return [" ".join(sentence) for sentence in tags(gold, values)]


def tags(gold: Gold, values: np.ndarray) -> list[list[str]]:
    """Return labels or predictions [words] by name, a list per sentence."""
    names = np.array(gold.names)
    return [names[sentence].tolist() for sentence in gold.by_example(values)]
