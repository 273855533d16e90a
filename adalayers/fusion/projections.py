"""Projections of hidden states as the layer mix makes them, for methods that are to be compared with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from adalayers.config import WidthConfig
from adalayers.fusion.fusion import Term
from adalayers.states import Shape, State
from adalayers.tensors.seeds import drawing

NORM_EPS = 1e-5
Made = TypeVar("Made")


def starts(names: Iterable[str], make: Callable[[], Made], seed: int | None = None) -> list[Made]:
    """Return what `make` gives for each name, drawn so that it depends on no other name; None: a new `start_seed`."""
    seed, made = start_seed() if seed is None else seed, []
    for name in names:
        with drawing(seed, name):
            made.append(make())
    return made


def start_seed() -> int:
    """Return a seed from torch's global stream, which all starts of a fusion then follow from."""
    return int(torch.randint(1 << 31, (), device="cpu"))


def projections(states: Sequence[State], inner: int, k: int, seed: int | None = None) -> list[nn.Linear]:
    """Return a W_i in R^{k x K} per hidden state; its start depends on the state, not on which others there are."""
    return starts((state.key for state in states), lambda: nn.Linear(inner, k, bias=False), seed)


def projected(project: nn.Linear, hidden: Float[Tensor, "tokens K"]) -> Float[Tensor, "tokens k"]:
    """Return f_i = N(gelu(Z_i) W_i^T) (thesis section 5), float32, without scale or shift in N."""
    normal = project(functional.gelu(hidden)).float()
    return functional.layer_norm(normal, normal.shape[-1:], eps=NORM_EPS)


def projected_term(project: nn.Linear, weight: float) -> Term:
    """Return `weight` times what `projected` gives, as a term of a sum."""
    return Term(weight, project.weight, gelu=True, eps=NORM_EPS)


@dataclass(frozen=True, kw_only=True)
class ProjectedConfig(WidthConfig):
    """What methods have in common that may read hidden states as they are, or projected as the layer mix does.

    k          width that every hidden state is projected to
    own_width  True reads them as they are, at the width K of the base model, as the method was published
    """

    own_width: bool = False

    @property
    def projected_to(self) -> int | None:
        """The width that hidden states are projected to; None: they are not."""
        return None if self.own_width else self.k

    def width(self, shape: Shape) -> int:
        return shape.width if self.own_width else self.k

    def unused(self, shape: Shape) -> set[str]:
        return super().unused(shape) | ({"k"} if self.own_width else set())


class Projected(nn.Module):
    """Hidden states as a method reads them: each as it is, or projected, f_i = N(gelu(Z_i) W_i^T) (thesis section 5).

    Args:
        k: The width that they are projected to, as in the layer mix with the same starts; None: as they are.

    Attributes:
        width: Of what a method reads.
    """

    def __init__(self, states: Sequence[State], inner: int, k: int | None):
        super().__init__()
        self._places = {state: index for index, state in enumerate(states)}
        self.width = inner if k is None else k
        self.project = None if k is None else nn.ModuleList(projections(states, inner, k))

    def forward(self, state: State, hidden: Float[Tensor, "tokens K"]) -> Float[Tensor, "tokens width"]:
        """Return the hidden state of `state`, float32."""
        hidden = hidden.float()
        if self.project is None:
            return hidden
        return projected(self.project[self._places[state]], hidden)  # type: ignore[arg-type]

    def term(self, state: State, weight: float) -> Term:
        """Return `weight` times what `forward` gives of `state`, as a term of a sum."""
        if self.project is None:
            return Term(weight)
        return projected_term(self.project[self._places[state]], weight)  # type: ignore[arg-type]
