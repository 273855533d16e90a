"""Concat: each hidden state has a linear map of its own, and they are added up (ElNokrashy et al. 2024, equation 2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from adalayers.fusion.fusion import Fusion, Lengths, States, Term
from adalayers.fusion.projections import ProjectedConfig, projections
from adalayers.states import Pooling, Shape, State


@dataclass(frozen=True, kw_only=True)
class ConcatConfig(ProjectedConfig):
    """Hyperparameters of Concat, next to those of every method.

    k          width that the hidden states are mapped to
    own_width  True maps them to the width K of the base model, as published
    """

    fusion: ClassVar[str] = "concat"
    token_by_token: ClassVar[bool] = True

    def _pooling(self) -> Pooling | None:
        return self._linear_pooling(linear=True)


class Concat(Fusion, config=ConcatConfig):
    """h = sum_n W_n z_n of hidden states z_n in R^K, with W_n in R^{width x K}: one linear layer over all of them, end
    to end, without bias (equation 2). Its start is that layer's too, so that h is of one size however many there are.

    A state that `without` takes away leaves its term out; there are no weights to renormalise.
    """

    def __init__(self, config: ConcatConfig, shape: Shape):
        super().__init__(config, shape)
        self.maps = nn.ModuleList(projections(self.states, shape.width, self.width))
        with torch.no_grad():
            for parameter in self.maps.parameters():
                parameter.div_(math.sqrt(len(self.states)))

    def fuse(self, states: States, lengths: Lengths, live: list[State]) -> Float[Tensor, "tokens width"]:
        """Return h, float32."""
        total = self._matrix(live[0]).new_zeros(int(lengths.sum()), self.width)
        for state in live:
            total = total + functional.linear(states[state].float(), self._matrix(state))
        return total

    def _matrix(self, state: State) -> Tensor:
        return self.maps[self.states.index(state)].weight  # type: ignore[return-value]

    def terms(self) -> dict[State, Term]:
        """Return W_n z_n by live hidden state: the slices of the one matrix."""
        return {state: Term(1.0, self._matrix(state)) for state in self.live()}
