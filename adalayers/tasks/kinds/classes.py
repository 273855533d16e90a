"""What all kinds of classification share: one output per class, softmax, and weights per class."""

from __future__ import annotations

import itertools
from abc import ABC
from typing import TYPE_CHECKING

import numpy as np

from adalayers.errors import BadInput
from adalayers.tasks.columns import shape_of
from adalayers.tasks.kind import Gold, LabelColumn, LabelsByRole, TaskKind
from adalayers.tasks.metrics import OUTSIDE, sequence_scores

if TYPE_CHECKING:
    from torch import Tensor

MAX_CLASSES = 200
"""A label column with more distinct values than this holds something other than classes."""

OUTSIDE_WEIGHT, OTHER_WEIGHT = 0.0292, 0.12
"""Of the tag O and of all other labels in the configuration released with the thesis for CoNLL-2003."""


class Classification(TaskKind, ABC):
    """Labels are classes: int64 numbers of the label names."""

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
