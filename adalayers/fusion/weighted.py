"""Mixes by one weight per hidden state, learned or fixed: what the layer mix and the scalar mix share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from adalayers.config import TrialConfig
from adalayers.fusion.fusion import Fusion
from adalayers.states import Shape, State

Mix = Literal["learned", "uniform", "single", "last"]


@dataclass(frozen=True, kw_only=True)
class WeightedConfig(TrialConfig):
    """Hyperparameters of a mix by weights.

    mix    learned; uniform; single: all weight on `layer`; last: on the last
    layer  for `single`: the hidden state used, 0 = embeddings
    """

    mix: Mix = "learned"
    layer: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        fits = (self.layer is not None) == (self.mix == "single")
        self.require("layer", fits, f"a hidden state for mix=single alone, mix is {self.mix}")

    def unused(self, shape: Shape) -> set[str]:
        return super().unused(shape) | (set() if self._resolved_mix(shape) == "single" else {"layer"})

    def resolved(self, shape: Shape) -> dict[str, Any]:
        return {**super().resolved(shape), "mix": self._resolved_mix(shape)}

    def _resolved_mix(self, shape: Shape) -> str:
        """Return `mix`, where `single` on the last hidden state is `last`: one trial has one name."""
        last = self.mix == "single" and self.layer == self.states(shape)[-1].number
        return "last" if last else self.mix

    def check(self, shape: Shape) -> None:
        super().check(shape)
        states = self.states(shape)
        one_stream = self.mix != "single" or len({state.stream for state in states}) == 1
        self.require(
            "stream", one_stream, "encoder or decoder where mix=single, whose layer is of one of them"
        )
        numbers = [state.number for state in states]
        self.require("layer", self.layer is None or self.layer in numbers, f"one of {numbers}")

    def single(self, shape: Shape) -> int | None:
        """Return the position of `layer` among the hidden states read."""
        if self.layer is None:
            return None
        return [state.number for state in self.states(shape)].index(self.layer)


class WeightedFusion(Fusion):
    """A mix of hidden states by weights that sum to 1.

    Args:
        states: The l hidden states mixed.
        width:  Of the mix.
        mix:    learned, or how the weights are fixed.
        single: The position (0..l-1) that holds all weight where `mix` is single.
    """

    def __init__(self, states: Sequence[State], width: int, *, mix: Mix, single: int | None):
        super().__init__(states, width)
        n_states = len(self.states)
        self.mix = mix
        self.fixed_weights: Tensor
        if mix != "learned":
            fixed = torch.zeros(n_states)
            chosen = {"uniform": slice(None), "single": single, "last": n_states - 1}[mix]
            fixed[chosen] = 1.0
            self.register_buffer("fixed_weights", fixed / fixed.sum(), persistent=False)

    @abstractmethod
    def all_weights(self) -> Float[Tensor, " states"]:
        """Return the weights where no state is taken away: non-negative, sum 1."""

    def live(self) -> list[State]:
        """Return the hidden states that the next `forward` needs, in order."""
        left = super().live()
        if self.mix == "learned":
            return left
        fixed = dict(zip(self.states, self.fixed_weights.tolist(), strict=True))
        return [state for state in left if fixed[state] > 0]

    def weights(self) -> Float[Tensor, " states"]:
        """Return the weights: non-negative, sum 1 (less what `without` takes away)."""
        weights = self.all_weights()
        if not self._dropped:
            return weights
        kept = torch.tensor([state not in self._dropped for state in self.states], device=weights.device)
        weights = weights * kept
        return weights / weights.sum() if self._renormalise and weights.sum() > 0 else weights

    def _parameters_at_weight_0(self, projections: nn.ModuleList | None) -> int:
        """Return the trained parameters of projections whose hidden state is fixed at weight 0."""
        if self.mix == "learned" or projections is None:
            return 0
        return sum(
            parameter.numel()
            for projection, weight in zip(projections, self.fixed_weights.tolist(), strict=True)
            for parameter in projection.parameters()
            if weight == 0 and parameter.requires_grad
        )
