"""Concat: each hidden state has a linear map of its own, and they are added up (ElNokrashy et al. 2024, equation 2)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from adalayers.fusion.fusion import Fusion, Term, check_states
from adalayers.fusion.projections import ProjectedConfig, projections
from adalayers.states import Shape, State


@dataclass(frozen=True, kw_only=True)
class ConcatConfig(ProjectedConfig):
    """Hyperparameters of Concat, next to those of every method.

    k          width that the hidden states are mapped to
    own_width  True maps them to the width K of the base model, as published
    """

    fusion: ClassVar[str] = "concat"

    def build(self, shape: Shape) -> Concat:
        return Concat(self.states(shape), shape.width, self.width(shape))


class Concat(Fusion):
    """h = sum_n W_n z_n of hidden states z_n in R^K, with W_n in R^{width x K}: one linear layer over all of them, end
    to end, without bias (equation 2). Its start is that layer's too, so that h is of one size however many there are.

    states: the hidden states read
    inner:  K, their width
    width:  of h; K in the paper

    A state that `without` takes away leaves its term out; there are no weights to renormalise.
    """

    def __init__(self, states: Sequence[State], inner: int, width: int):
        super().__init__(states, width)
        self.maps = nn.ModuleList(projections(self.states, inner, width))
        with torch.no_grad():
            for parameter in self.maps.parameters():
                parameter.div_(math.sqrt(len(self.states)))

    def forward(
        self, states: Mapping[State, Float[Tensor, "tokens K"]], lengths: Int[Tensor, " batch"]
    ) -> Float[Tensor, "tokens width"]:
        """Return h, float32, of the hidden states; those that are not live may be absent.

        Raises `ValueError` where a live one is missing or one is unknown.
        """
        live = self.live()
        check_states(live, states, self.states)
        matrices: list[Tensor] = [one.weight for one in self.maps]  # type: ignore[misc]
        total = matrices[0].new_zeros(int(lengths.sum()), self.width)
        for state in live:
            matrix = matrices[self.states.index(state)]
            total = total + functional.linear(states[state].float(), matrix)
        return total

    def kept_at_use(self, inner: int) -> int:
        """Return the width of h, which is added up while the base model runs."""
        return self.width

    def terms(self) -> dict[State, Term]:
        """Return W_n z_n by live hidden state: the slices of the one matrix."""
        matrices: list[Tensor] = [one.weight for one in self.maps]  # type: ignore[misc]
        return {state: Term(1.0, matrices[self.states.index(state)]) for state in self.live()}
