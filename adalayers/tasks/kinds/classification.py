"""Classification of texts and pairs (thesis 5.2.1), of words as tags of entities (5.2.2), and of single words."""

from __future__ import annotations

import itertools
from abc import ABC
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from adalayers.errors import BadInput
from adalayers.tasks.columns import MAX_CLASSES, shape_of
from adalayers.tasks.kind import Gold, LabelColumn, Labels, LabelsByRole, TaskKind
from adalayers.tasks.metrics import (
    CLASS_SCORES,
    CUT,
    ENTITY_SCORES,
    OUTSIDE,
    entities,
    is_entity_tag,
    published_token_scores,
    sequence_scores,
    token_scores,
    word_scores,
)

if TYPE_CHECKING:
    from torch import Tensor

OUTSIDE_WEIGHT, OTHER_WEIGHT = 0.0292, 0.12
"""Of the tag O and of all other labels in the configuration released with the thesis for CoNLL-2003."""


class Classification(TaskKind, ABC):
    """What all kinds of classification share: one output per class, softmax, and weights per class."""

    def read_labels(self, column: LabelColumn) -> LabelsByRole:
        """Return the class names and, by role, the classes as int64 [items].

        Raises:
            BadInput: If there are too many or too few classes, or numbers that are no class.
        """
        feature = getattr(column.feature, "feature", column.feature)
        names = tuple(getattr(feature, "names", None) or ())
        if not names and shape_of(feature) == "int":
            names = column.fallback_names
        values = column.values
        if not names:
            names, values = _named_by_values(column)
        labels = {role: np.array(numbers, dtype=np.int64) for role, numbers in values.items()}
        outside = sum(int(((ids < 0) | (ids >= len(names))).sum()) for ids in labels.values())
        if outside:
            raise BadInput(
                f"wanted labels in 0..{len(names) - 1} in {column.where}, got {outside} others; "
                "label or drop them"
            )
        if len(names) < 2:
            raise BadInput(
                f"wanted at least two classes in {column.where}, got {len(names)}; name another column"
            )
        return names, labels

    def n_outputs(self, label_names: tuple[str, ...]) -> int:
        """Return the number of classes."""
        return len(label_names)

    def loss(self, outputs: Tensor, labels: Tensor, weights: Tensor | None) -> Tensor:
        """Return the cross-entropy."""
        from torch.nn import functional

        return functional.cross_entropy(outputs, labels, weight=weights)

    def decode(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return the most probable classes, int64 [items], and their probabilities."""
        best = outputs.softmax(dim=-1).max(dim=-1)
        return best.indices, best.values

    def baseline(self, metric: str, gold: Gold) -> float:
        """Return what always answering the most frequent class scores."""
        most_frequent = np.full_like(gold.labels, np.bincount(gold.labels).argmax())
        return sequence_scores(gold.labels, most_frequent, len(gold.names))[metric]

    def describe_labels(self, gold: Gold) -> dict[str, float]:
        """Return how often each class occurs."""
        counts = np.bincount(gold.labels, minlength=len(gold.names))
        return dict(zip(gold.names, counts.tolist(), strict=True))

    def class_weights(self, scheme: str, gold: Gold) -> list[float] | None:
        """Return inverse frequencies (`balanced`), or the released CoNLL-2003 configuration's (`published`)."""
        if scheme == "published":
            return [OUTSIDE_WEIGHT if name == OUTSIDE else OTHER_WEIGHT for name in gold.names]
        if scheme == "balanced":
            counts = np.bincount(gold.labels, minlength=len(gold.names))
            return (counts.sum() / (len(counts) * np.maximum(counts, 1))).tolist()
        return super().class_weights(scheme, gold)


class SequenceClassification(Classification):
    """One class per text or pair of texts."""

    name = "sequence"
    title = "sequence classification"
    head = "sequence"
    input_shapes = ("text", "text pair")
    label_shapes = ("class",)
    metrics = CLASS_SCORES
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

    def rescored(
        self, labels: Sequence[str], predictions: Sequence[str], names: Sequence[str]
    ) -> dict[str, float]:
        """Return the scores of class names; one that is not in `names` is a class more."""
        number = {name: i for i, name in enumerate(dict.fromkeys([*names, *labels, *predictions]))}
        gold, predicted = (np.array([number[text] for text in texts]) for texts in (labels, predictions))
        return sequence_scores(gold, predicted, len(number))


class TokenClassification(Classification):
    """One tag per word of texts that come as words."""

    name = "token"
    title = "token classification"
    head = "token"
    input_shapes = ("words",)
    label_shapes = ("tags",)
    metrics = ENTITY_SCORES
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

    def rescored(
        self, labels: Sequence[str], predictions: Sequence[str], names: Sequence[str]
    ) -> dict[str, float]:
        """Return the scores of sentences of tags."""
        return token_scores([text.split() for text in labels], [text.split() for text in predictions])


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

    def prediction_names(self, label_names: tuple[str, ...]) -> tuple[str, ...]:
        """Return the classes, and what a word that was cut away is called."""
        return (*label_names, CUT)

    def scores(self, gold: Gold, predictions: np.ndarray) -> dict[str, float]:
        """Return accuracy and macro F1 over all words."""
        return word_scores(gold.labels, predictions, len(gold.names))

    def as_text(self, gold: Gold, values: np.ndarray) -> list[str]:
        """Return the classes of a sentence's words joined by spaces; within a name they become underscores."""
        names = np.array(["_".join(name.split()) for name in self.prediction_names(gold.names)])
        return [" ".join(names[sentence]) for sentence in gold.by_example(values)]

    def rescored(
        self, labels: Sequence[str], predictions: Sequence[str], names: Sequence[str]
    ) -> dict[str, float]:
        """Return the scores of the words of all sentences; one that was cut away is wrong, and of no class."""
        gold, predicted = ([text.split() for text in texts] for texts in (labels, predictions))
        if list(map(len, gold)) != list(map(len, predicted)):
            raise ValueError("wanted as many classes as words in each sentence")
        words, said = (list(itertools.chain.from_iterable(texts)) for texts in (gold, predicted))
        number = {
            name: i
            for i, name in enumerate(dict.fromkeys(["_".join(name.split()) for name in names] + words))
        }
        true, guessed = (np.array([number.get(word, len(number)) for word in of]) for of in (words, said))
        return word_scores(true, guessed, len(number))


def _named_by_values(column: LabelColumn) -> tuple[tuple[str, ...], dict[str, list[int]]]:
    """Return the values that occur as class names, and by role the number of each value's class."""
    values = set(itertools.chain.from_iterable(column.values.values()))
    # The hub's order where it is known, so that a copy with names for numbers stays the same task.
    names = column.fallback_names if values <= set(column.fallback_names) else sorted(values)
    if len(names) > MAX_CLASSES:
        raise BadInput(
            f"wanted at most {MAX_CLASSES} classes in {column.where}, got {len(names)}; name another column"
        )
    numbers = {name: number for number, name in enumerate(names)}
    return tuple(map(str, names)), {
        role: [numbers[value] for value in values] for role, values in column.values.items()
    }


def tags(gold: Gold, values: np.ndarray) -> list[list[str]]:
    """Return labels or predictions [words] by name, a list per sentence."""
    names = np.array(gold.names)
    return [names[sentence].tolist() for sentence in gold.by_example(values)]
