"""What all kinds of classification share: one output per class, softmax, and weights per class."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from adalayers.tasks.columns import classes
from adalayers.tasks.kind import TaskKind
from adalayers.tasks.metrics import OUTSIDE, majority_score

if TYPE_CHECKING:
    from torch import Tensor

OUTSIDE_WEIGHT, OTHER_WEIGHT = 0.0292, 0.12
"""Of the tag O and of all other labels in the configuration released with the thesis for CoNLL-2003."""


class Classification(TaskKind, ABC):
    """Labels are classes: int64 numbers of `label_names`."""

    def read_labels(
        self, where: str, feature: Any, values: Mapping[str, list[Any]], fallback_names: tuple[str, ...]
    ) -> tuple[tuple[str, ...], dict[str, np.ndarray]]:
        """Return the class names and, by role, the classes as int64 [items]."""
        return classes(where, feature, values, fallback_names)

    def n_outputs(self, label_names: tuple[str, ...]) -> int:
        """Return the number of classes."""
        return len(label_names)

    def loss(self, outputs: Tensor, labels: Tensor, weights: Tensor | None) -> Tensor:
        """Return the cross-entropy."""
        from torch.nn import functional

        return functional.cross_entropy(outputs, labels, weight=weights)

    def decode(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return the most probable classes, int64 [items], and their probabilities."""
        import torch

        best = torch.softmax(outputs, dim=-1).max(dim=-1)
        return best.indices, best.values

    def baseline(self, metric: str, labels: np.ndarray, label_names: tuple[str, ...]) -> float:
        """Return what always answering the most frequent label scores."""
        return majority_score(metric, labels, len(label_names))

    def about_labels(self, labels: np.ndarray, label_names: tuple[str, ...]) -> dict[str, float]:
        """Return how often each class occurs."""
        counts = np.bincount(labels, minlength=len(label_names))
        return dict(zip(label_names, counts.tolist(), strict=True))

    def class_weights(
        self, scheme: str, labels: np.ndarray, label_names: tuple[str, ...]
    ) -> list[float] | None:
        """Return inverse frequencies (`balanced`), or the released CoNLL-2003 configuration's (`published`)."""
        if scheme == "published":
            return [OUTSIDE_WEIGHT if name == OUTSIDE else OTHER_WEIGHT for name in label_names]
        if scheme == "balanced":
            count = np.bincount(labels, minlength=len(label_names))
            return (count.sum() / (len(count) * np.maximum(count, 1))).tolist()
        return super().class_weights(scheme, labels, label_names)
