"""What a kind of task is: all that data, training and reports need to know of it, in one object.

A further kind is one file in `kinds/` and one line of their registry; nothing else asks which kind a task is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from adalayers.errors import BadInput
from adalayers.states import Head

if TYPE_CHECKING:  # reading the flags needs tasks, and importing torch takes seconds
    import pandas as pd
    from torch import Tensor

Inputs = list[str] | list[tuple[str, str]] | list[list[str]]
"""n texts, n pairs of texts, or n lists of words."""
Labels = np.ndarray | list[np.ndarray]
"""One label of an example each, [n]; or n arrays [words], one label of a word each."""


class TaskKind(ABC):
    """A kind of task, such as sequence classification. Stateless; one object per kind, in `kinds.KINDS`.

    Labels and predictions of a split are flat arrays: [n], or the words of all sentences end to end, [items].
    `offsets` is then int64 [n + 1], example i owns the items offsets[i]..offsets[i + 1]; None where an example is
    one item.

    name, title:     in `study.json` and in messages
    head:            whether the head gives outputs per sequence or per token (thesis 5.2.1 and 5.2.2)
    input_shapes, label_shapes: columns of a dataset that make it this kind, as `columns.shape_of` names them
    named_only:      whether a column holds its labels only where somebody names it
    metrics:         scores, without prefix; default_metric selects where nothing else is said
    demo:            an embedded dataset of this kind, None where there is none
    first_mistakes:  what those are called that `mistakes` gives first
    """

    name: ClassVar[str]
    title: ClassVar[str]
    head: ClassVar[Head]
    input_shapes: ClassVar[tuple[str, ...]]
    label_shapes: ClassVar[tuple[str, ...]]
    named_only: ClassVar[bool] = False
    metrics: ClassVar[tuple[str, ...]]
    default_metric: ClassVar[str]
    demo: ClassVar[str | None] = None
    first_mistakes: ClassVar[str] = "surest"

    @property
    def per_word(self) -> bool:
        """Whether an example has a label per word."""
        return self.head == "token"

    @abstractmethod
    def read_labels(
        self, where: str, feature: Any, values: Mapping[str, list[Any]], fallback_names: tuple[str, ...]
    ) -> tuple[tuple[str, ...], dict[str, np.ndarray]]:
        """Return the label names (none where labels are no classes) and, by role, the labels [items].

        where:          what messages call the column
        feature:        its type in `datasets`
        values:         its values by role, end to end
        fallback_names: of classes that are numbers without names, in order

        Raises `BadInput` for labels that cannot be had.
        """

    def fits(self, label_names: tuple[str, ...]) -> bool:
        """Say whether labels of these names can be this kind's, where several kinds read such a column."""
        return True

    def fitted(self, labels: np.ndarray) -> TaskKind:
        """Return the kind as it is for labels [items] of train: itself, where nothing depends on them."""
        return self

    def about(self) -> dict[str, Any]:
        """Return what reading a trained model's outputs takes, besides the label names, in JSON's own types."""
        return {}

    def as_saved(self, about: Mapping[str, Any]) -> TaskKind:
        """Return the kind as `fitted` made it, of what `about` left next to a trained model."""
        return self

    def about_labels(self, labels: np.ndarray, label_names: tuple[str, ...]) -> dict[str, float]:
        """Return how flat labels of a split are distributed, by name, for reports; {} where nothing is known."""
        return {}

    @abstractmethod
    def n_outputs(self, label_names: tuple[str, ...]) -> int:
        """Return how many numbers the head gives per item."""

    def strata(self, labels: Labels) -> np.ndarray | None:
        """Return the class of each example [n] by which validation is set aside; None draws without strata."""
        return None

    @abstractmethod
    def loss(self, outputs: Tensor, labels: Tensor, weights: Tensor | None) -> Tensor:
        """Return the mean loss of outputs [items, n_outputs] for labels [items]; weights: one per label name."""

    @abstractmethod
    def decode(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return predictions [items] and their probabilities [items] (1 where there are none)."""

    def lost(self, label_names: tuple[str, ...]) -> float:
        """Return what an item that truncation cut away counts as, with probability 1."""
        return 0

    @abstractmethod
    def scores(
        self,
        labels: np.ndarray,
        predictions: np.ndarray,
        label_names: tuple[str, ...],
        offsets: np.ndarray | None = None,
    ) -> dict[str, float]:
        """Return all `metrics`, and what else there is to say, by name."""

    def published_scores(
        self,
        labels: np.ndarray,
        predictions: np.ndarray,
        label_names: tuple[str, ...],
        offsets: np.ndarray | None = None,
    ) -> dict[str, float]:
        """Return `scores` as a study publishes them of its best model, by the tool that the field uses for it."""
        return self.scores(labels, predictions, label_names, offsets)

    def metrics_of(self, label_names: tuple[str, ...]) -> tuple[str, ...]:
        """Return the scores that can select a model on a task with these labels."""
        return self.metrics

    @abstractmethod
    def baseline(self, metric: str, labels: np.ndarray, label_names: tuple[str, ...]) -> float:
        """Return what the best constant answer scores on flat labels: the floor to stand above."""

    def class_weights(
        self, scheme: str, labels: np.ndarray, label_names: tuple[str, ...]
    ) -> list[float] | None:
        """Return a weight per label name for the loss, from the labels of train; None for equal weights.

        Raises `BadInput` for a scheme that this kind does not have.
        """
        if scheme == "none":
            return None
        raise BadInput(f"wanted class_weights=none for {self.title}, got class_weights={scheme}; change it")

    @abstractmethod
    def prediction_columns(
        self,
        labels: np.ndarray,
        predictions: np.ndarray,
        probabilities: np.ndarray,
        label_names: tuple[str, ...],
        offsets: np.ndarray | None = None,
    ) -> dict[str, list[Any]]:
        """Return the columns label, prediction and score of `predictions.parquet`, a value per example."""

    def mistakes(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of `predictions.parquet` that are wrong, those to be read first before others."""
        wrong = rows[rows["label"] != rows["prediction"]]
        return wrong.sort_values("score", ascending=False, kind="stable")
