"""Token classification: one tag per word, scored over entities (thesis 5.2.2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from adalayers.tasks.kinds.classes import Classification
from adalayers.tasks.metrics import OUTSIDE, entities, is_entity_tag, token_scores
from adalayers.tasks.published import published_token_scores


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
        """Say whether the tags mark entities: O is one of them, or a tag has a prefix, such as B-."""
        return any(map(is_entity_tag, label_names))

    def lost(self, label_names: tuple[str, ...]) -> int:
        """Return O where there is one, else the first tag."""
        return label_names.index(OUTSIDE) if OUTSIDE in label_names else 0

    def metrics_of(self, label_names: tuple[str, ...]) -> tuple[str, ...]:
        """Return precision, recall and F1 over all entities, and F1 of each type of entity."""
        types: dict[str, int] = {}
        entities([list(label_names)], types)
        return (*self.metrics, *(f"f1/{name}" for name in sorted(types)))

    def scores(
        self,
        labels: np.ndarray,
        predictions: np.ndarray,
        label_names: tuple[str, ...],
        offsets: np.ndarray | None = None,
    ) -> dict[str, float]:
        """Return precision, recall and F1 over entities, and `f1/<TYPE>` for each type in `labels`."""
        return token_scores(
            sentences(labels, label_names, offsets), sentences(predictions, label_names, offsets)
        )

    def published_scores(
        self,
        labels: np.ndarray,
        predictions: np.ndarray,
        label_names: tuple[str, ...],
        offsets: np.ndarray | None = None,
    ) -> dict[str, float]:
        """Return the same scores by seqeval, which is slower."""
        return published_token_scores(
            sentences(labels, label_names, offsets), sentences(predictions, label_names, offsets)
        )

    def prediction_columns(
        self,
        labels: np.ndarray,
        predictions: np.ndarray,
        probabilities: np.ndarray,
        label_names: tuple[str, ...],
        offsets: np.ndarray | None = None,
    ) -> dict[str, list[Any]]:
        """Return the tags of a sentence joined by spaces, and the mean probability of the predicted ones."""
        return sentence_columns(labels, predictions, probabilities, label_names, offsets)


def sentence_columns(
    labels: np.ndarray,
    predictions: np.ndarray,
    probabilities: np.ndarray,
    names: tuple[str, ...],
    offsets: np.ndarray | None,
) -> dict[str, list[Any]]:
    """Return a sentence's labels and predictions [words] by name, joined by spaces, and the mean probability."""
    return {
        "label": [" ".join(tags) for tags in sentences(labels, names, offsets)],
        "prediction": [" ".join(tags) for tags in sentences(predictions, names, offsets)],
        "score": [
            float(words.mean()) if len(words) else 1.0 for words in per_sentence(probabilities, offsets)
        ],
    }


def per_sentence(flat: np.ndarray, offsets: np.ndarray | None) -> list[np.ndarray]:
    """Return what belongs to each sentence of flat values [words]. Raises `ValueError` where they are no such."""
    if offsets is None or len(flat) != offsets[-1]:
        wanted = "the offsets of sentences" if offsets is None else f"{offsets[-1]} words"
        raise ValueError(f"wanted {wanted}, got {len(flat)} words")
    return np.split(flat, offsets[1:-1])


def sentences(flat: np.ndarray, label_names: tuple[str, ...], offsets: np.ndarray | None) -> list[list[str]]:
    """Return the tags of each sentence by name."""
    names = np.array(label_names)
    return [names[tags].tolist() for tags in per_sentence(flat, offsets)]
