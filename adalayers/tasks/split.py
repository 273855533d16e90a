"""Examples of one split: inputs, labels, and where they come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from adalayers.tasks.kind import Inputs, Labels


@dataclass(frozen=True)
class Split:
    """Examples of one split.

    Attributes:
        inputs: n texts, n pairs of texts, or n lists of words.
        labels: [n], or n arrays [words]; classes are int64, numbers float32.
        index: int64 [n], the row of each example in the source split it came from.
        groups: int64 [n], a number of those that belong together, the same in all splits; None where nothing says.
    """

    inputs: Inputs
    labels: Labels
    index: np.ndarray
    groups: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.index)

    @property
    def offsets(self) -> np.ndarray | None:
        """Where the labels of each example begin and end among all: int64 [n + 1]; None with one label each."""
        if isinstance(self.labels, np.ndarray):
            return None
        return np.cumsum([0, *map(len, self.labels)])

    @property
    def flat_labels(self) -> np.ndarray:
        """The labels end to end: [n], or those of all words."""
        return self.labels if isinstance(self.labels, np.ndarray) else np.concatenate(self.labels)

    def take(self, rows: np.ndarray) -> Split:
        """Return the examples at `rows` [m] of this split, in that order."""
        inputs: Any = [self.inputs[row] for row in rows]
        labels = (
            self.labels[rows] if isinstance(self.labels, np.ndarray) else [self.labels[row] for row in rows]
        )
        groups = None if self.groups is None else self.groups[rows]
        return Split(inputs, labels, self.index[rows], groups)
