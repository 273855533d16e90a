"""Regression: a number per text, or per pair of texts, learned by squared error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from adalayers.errors import BadInput
from adalayers.storage.to_json import JsonObject
from adalayers.tasks.kind import Gold, LabelColumn, LabelsByRole, Scores, TaskKind
from adalayers.tasks.metrics import PEARSON, R2, SPEARMAN, Answers, number_scores

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor

MAX_STRATA = 10
"""Most groups of similar labels from which validation is drawn in equal shares."""


class Regression(TaskKind):
    """One number per text or pair of texts.

    A model learns labels in standard deviations from their mean, and its outputs are turned back: a head then starts
    near the mean, and the learning rate suits labels of any scale.

    Attributes:
        mean: Of the labels of train.
        sd: Their standard deviation.
    """

    name = "regression"
    title = "regression"
    head = "sequence"
    input_shapes = ("text", "text pair")
    label_shapes = ("float32", "float64")
    named_only = True
    metrics = (PEARSON, SPEARMAN, R2)
    default_metric = "pearson"
    demo = "similarity-demo"
    first_mistakes = "largest"

    def __init__(self, mean: float = 0.0, sd: float = 1.0):
        self.mean, self.sd = mean, sd

    def read_labels(self, column: LabelColumn) -> LabelsByRole:
        """Return no names and, by role, the numbers as float32 [items]."""
        labels = {role: np.array(values, dtype=np.float32) for role, values in column.values.items()}
        bad = sum(int((~np.isfinite(numbers)).sum()) for numbers in labels.values())
        if bad:
            raise BadInput(f"wanted finite numbers in {column.where}, got {bad} others; fix or drop them")
        return (), labels

    def fitted(self, labels: np.ndarray) -> Regression:
        """Return the kind with the mean and standard deviation of labels [n].

        Raises:
            BadInput: If the labels are all the same, for nothing can be learned from them.
        """
        mean, sd = float(labels.mean(dtype=np.float64)), float(labels.std(dtype=np.float64))
        if not sd > 0:
            raise BadInput(
                f"wanted numbers that differ as labels of train, got {mean:g} for each of {len(labels)} examples; "
                "raise --train-examples, or name another --label-column"
            )
        return Regression(mean, sd)

    def about(self) -> JsonObject:
        """Return the mean and standard deviation that a model's outputs are in."""
        return {"label_scale": {"mean": self.mean, "sd": self.sd}}

    def as_saved(self, about: Mapping[str, Any]) -> Regression:
        """Return the kind with the scale that a model was trained on.

        Raises:
            KeyError: If `about` does not hold it.
        """
        return Regression(**about["label_scale"])

    def describe_labels(self, gold: Gold) -> Scores:
        """Return mean, standard deviation, and the quartiles with the ends."""
        names = ("lowest", "first quartile", "median", "third quartile", "highest")
        quartiles = np.quantile(gold.labels.astype(np.float64), [0, 0.25, 0.5, 0.75, 1])
        return {
            "mean": float(gold.labels.mean(dtype=np.float64)),
            "standard deviation": float(gold.labels.std(dtype=np.float64)),
            **dict(zip(names, quartiles.tolist(), strict=True)),
        }

    def notes(self, gold: Mapping[str, Gold]) -> list[str]:
        """Return whether the numbers look like classes."""
        values = np.unique(gold["train"].labels)
        if len(values) > MAX_STRATA or not (values == np.round(values)).all():
            return []
        found = ", ".join(f"{value:g}" for value in values)
        return [f"labels are learned as numbers, though but {found}: without a point they are classes"]

    def n_outputs(self, label_names: tuple[str, ...]) -> int:
        """Return 1."""
        return 1

    def strata(self, labels: np.ndarray) -> np.ndarray:
        """Return the tenth of the labels, in order, that each belongs to; fewer groups where there are few labels.

        Equal labels share a group, and no group has fewer than two.
        """
        # Validation, a tenth, has one of each group.
        groups = max(1, min(MAX_STRATA, len(labels) // MAX_STRATA))
        begins = np.arange(1, groups) * len(labels) // groups
        edges = np.unique(np.sort(labels)[begins]).tolist()
        while True:
            strata = np.searchsorted(edges, labels, side="right")
            small = np.flatnonzero(np.bincount(strata, minlength=len(edges) + 1) < 2)
            if not edges or not len(small):
                return strata
            del edges[min(int(small[0]), len(edges) - 1)]  # joins it with its neighbour

    def loss(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the squared errors, in units of train's variance."""
        return (outputs.squeeze(1) - (labels - self.mean) / self.sd).square()

    def decode(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return numbers on the labels' own scale, and ones."""
        numbers = outputs.squeeze(1).double() * self.sd + self.mean
        return numbers, numbers.new_ones(len(numbers))

    def truncated_prediction(self, label_names: tuple[str, ...]) -> float:
        """Return the mean; truncation leaves something of every text, so it is never used."""
        return self.mean

    def scores(self, gold: Gold, predictions: np.ndarray, probabilities: np.ndarray | None = None) -> Scores:
        """Return Pearson and Spearman correlation and R², and errors on the labels' scale: `rmse`, `mae`."""
        return number_scores(gold.labels, predictions)

    def constant(self, gold: Gold) -> float:
        """Return the mean."""
        return float(gold.labels.mean())

    def baseline(self, metric: str, gold: Gold) -> float:
        """Return 0: a constant explains nothing; its own score is that but for rounding."""
        return 0.0

    def as_text(self, gold: Gold, values: np.ndarray) -> list[str]:
        """Return numbers to nine digits, which give a float32 back."""
        return [f"{value:.9g}" for value in values]

    def rescored(self, answers: Answers) -> Scores:
        """Return the scores of numbers."""
        return number_scores(*(np.array(texts, dtype=np.float64) for texts in answers[:2]))

    def mistakes(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return all rows, the largest errors first."""
        error = (rows["label"].astype(float) - rows["prediction"].astype(float)).abs()
        return rows.loc[error.sort_values(ascending=False, kind="stable").index]
