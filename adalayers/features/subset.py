"""Some of a split's features: a view of those of the whole, nothing is copied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from adalayers.features.features import Features
from adalayers.states import State


class Subset:
    """The features of `examples` [m] of a split, numbered 0..m - 1; `Features` like those they are read from."""

    def __init__(self, features: Features, examples: np.ndarray):
        self._features, self._examples = features, examples
        self.lengths = features.lengths[examples]

    def read(
        self, examples: np.ndarray, states: Sequence[State], device: torch.device
    ) -> Mapping[State, Tensor]:
        """Return {state: [tokens, K]} of the sequences `examples` of this view, as `Features.read` does."""
        return self._features.read(self._examples[examples], states, device)
