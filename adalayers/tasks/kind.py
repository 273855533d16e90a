"""What a kind of task is: all that data, training and reports need to know of it, in one object.

A further kind is one file in `kinds/` and one line of their registry; nothing else asks which kind a task is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from adalayers.errors import BadInput
from adalayers.states import Head
from adalayers.storage.to_json import JsonObject
from adalayers.tasks.metrics import Answers, Metric

if TYPE_CHECKING:  # reading the flags needs tasks, and importing torch takes seconds
    import pandas as pd
    from torch import Tensor

Inputs = list[str] | list[tuple[str, str]] | list[list[str]]
"""n texts, n pairs of texts, or n lists of words."""
Scores = dict[str, float]
"""Numbers by name."""
LabelsByRole = tuple[tuple[str, ...], dict[str, np.ndarray]]
"""The names of the classes, () where labels are numbers; and by role of a split its labels [items]."""


@dataclass(frozen=True)
class LabelColumn:
    """The label column of a dataset as it was read.

    Attributes:
        where: What messages call the column.
        feature: Its type in `datasets`.
        values: Its values by role of the split; those of words end to end.
        fallback_names: Names, in order, of classes that are numbers without names.
    """

    where: str
    feature: Any
    values: Mapping[str, list[Any]]
    fallback_names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Gold:
    """The labels of a split in one array, against which predictions [items] are scored.

    Attributes:
        labels: [items], one of each example, or those of the words of all examples end to end.
        names: Names of the classes, () where labels are numbers.
        offsets: int64 [n + 1]; example i owns the items offsets[i]..offsets[i + 1]. None where an example is one item.
    """

    labels: np.ndarray
    names: tuple[str, ...] = ()
    offsets: np.ndarray | None = None

    def by_example(self, values: np.ndarray) -> list[np.ndarray]:
        """Return values [items], one of each word, as an array per example."""
        assert self.offsets is not None
        return np.split(values, self.offsets[1:-1])


class TaskKind(ABC):
    """A kind of task, such as sequence classification. Stateless; one object per kind, in `kinds.KINDS`.

    Attributes:
        name: In `study.json`.
        title: In messages.
        head: Whether the head gives outputs per sequence or per token (thesis 5.2.1 and 5.2.2).
        input_shapes: Shapes of the text columns that make a dataset this kind, as `columns.shape_of` names them.
        label_shapes: Those of the label column.
        marks_entities: Whether labels are tags of entities.
        named_only: Whether a column holds its labels only where the user names the column.
        metrics: Its scores: pages and claims know of them what they say.
        default_metric: The name of the score that selects where nothing else is asked for.
        demo: An embedded dataset of this kind, None where there is none.
        first_mistakes: What the rows that `mistakes` gives first are called.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    head: ClassVar[Head]
    input_shapes: ClassVar[tuple[str, ...]]
    label_shapes: ClassVar[tuple[str, ...]]
    marks_entities: ClassVar[bool] = False
    named_only: ClassVar[bool] = False
    metrics: ClassVar[tuple[Metric, ...]]
    default_metric: ClassVar[str]
    demo: ClassVar[str | None] = None
    first_mistakes: ClassVar[str] = "surest"

    @property
    def per_word(self) -> bool:
        """Whether an example has a label per word."""
        return self.head == "token"

    @abstractmethod
    def read_labels(self, column: LabelColumn) -> LabelsByRole:
        """Read a column as labels; it is asked before `fits`.

        Raises:
            BadInput: If its values cannot be labels of this kind, nor of another that reads such columns.
        """

    def fits(self, label_names: tuple[str, ...], where: str) -> bool:
        """Return whether labels of these names can be this kind's, where several kinds read such a column.

        Args:
            label_names: Of the classes.
            where: What messages call the column.

        Raises:
            BadInput: If they are this kind's, and something is wrong with them.
        """
        return True

    def fitted(self, labels: np.ndarray) -> TaskKind:
        """Return the kind as it is for the labels [items] of train: itself, where nothing depends on them."""
        return self

    def about(self) -> JsonObject:
        """Return what reading a trained model's outputs takes besides the label names, in JSON's own types."""
        return {}

    def as_saved(self, about: Mapping[str, Any]) -> TaskKind:
        """Return the kind as `fitted` gave it, from what `about` left next to a trained model."""
        return self

    def describe_labels(self, gold: Gold) -> Scores:
        """Return how labels are distributed, by name, for reports; {} where there is nothing to say."""
        return {}

    def described(self, label_names: tuple[str, ...]) -> str:
        """Return what a task of this kind with these labels is, in words."""
        return self.title

    def notes(self, gold: Mapping[str, Gold]) -> list[str]:
        """Return what a reader of scores may not expect of labels, by role: clauses, as `Reading.notes` has them."""
        return []

    @abstractmethod
    def n_outputs(self, label_names: tuple[str, ...]) -> int:
        """Return how many numbers the head gives per item."""

    def classes(self, label_names: tuple[str, ...]) -> int:
        """Return how many classes examples are counted by: few shots are so many for each."""
        return self.n_outputs(label_names)

    def strata(self, labels: np.ndarray) -> np.ndarray | None:
        """Return the stratum of each label [n] by which validation is set aside; None draws without strata."""
        return None

    @abstractmethod
    def loss(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each item, [items], of outputs [items, n_outputs] for labels [items]."""

    @abstractmethod
    def decode(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return predictions [items] and their probabilities [items] (1 where there are none)."""

    def prediction_names(self, label_names: tuple[str, ...]) -> tuple[str, ...]:
        """Return the names of predictions, by number: the labels, and `truncated_prediction` where it is none."""
        return label_names

    def truncated_prediction(self, label_names: tuple[str, ...]) -> float:
        """Return what stands, with probability 1, for the prediction of an item that truncation cut away.

        Its type, int or float, is that of the array of predictions.
        """
        return 0

    @abstractmethod
    def scores(self, gold: Gold, predictions: np.ndarray, probabilities: np.ndarray | None = None) -> Scores:
        """Return scores by name: all `metrics` that are defined for these labels, and what others there are.

        Args:
            gold: The labels.
            predictions: [items].
            probabilities: Of the predictions, [items]; None leaves out the scores that follow from them.
        """

    def metrics_of(self, label_names: tuple[str, ...]) -> tuple[str, ...]:
        """Return the names of scores that can select a model on a task with these labels."""
        return tuple(metric.name for metric in self.metrics)

    @abstractmethod
    def constant(self, gold: Gold) -> float:
        """Return the best answer to all items without reading them: a label, as predictions [items] have it."""

    def baseline(self, metric: str, gold: Gold) -> float:
        """Return what the best constant answer scores; 0 where it leaves a score undefined."""
        answers = np.full_like(gold.labels, self.constant(gold))
        return self.scores(gold, answers, np.ones(len(answers))).get(metric, 0.0)

    def class_weights(self, scheme: str, gold: Gold) -> list[float] | None:
        """Return a weight per label name for the loss, from the labels of train; None for equal weights.

        Raises:
            BadInput: If this kind has no such scheme.
        """
        if scheme == "none":
            return None
        raise BadInput(f"wanted class_weights=none for {self.title}, got class_weights={scheme}; change it")

    @abstractmethod
    def as_text(self, gold: Gold, values: np.ndarray) -> list[str] | list[tuple[str, ...]]:
        """Return labels or predictions [items] by example, for `predictions.parquet`: a text, or one per word."""

    def rescored(self, answers: Answers) -> Scores | None:
        """Return the scores that rows of `predictions.parquet` give: what `as_text` wrote, read again.

        Returns:
            Scores by name, of those that `scores` gives; None where a kind does not say how its texts are read.

        Raises:
            ValueError: If they are no texts of this kind.
        """
        return None

    def prediction_columns(
        self, gold: Gold, predictions: np.ndarray, probabilities: np.ndarray
    ) -> dict[str, list[Any]]:
        """Return the columns label, prediction and score of `predictions.parquet`, a value per example.

        The score is the probability of the prediction, or the mean over an example's items.
        """
        scores = probabilities.tolist()
        if gold.offsets is not None:
            scores = [float(items.mean()) if len(items) else 1.0 for items in gold.by_example(probabilities)]
        return {
            "label": self.as_text(gold, gold.labels),
            "prediction": self.as_text(gold, predictions),
            "score": scores,
        }

    def mistakes(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of `predictions.parquet` that are wrong, the most telling first."""
        mistakes = rows[rows["label"] != rows["prediction"]]
        return mistakes.sort_values("score", ascending=False, kind="stable")
