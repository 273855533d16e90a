"""Mixes by one weight per hidden state, learned or fixed: what the layer mix and the scalar mix share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from adalayers.config import TrialConfig
from adalayers.fusion.fusion import Fusion
from adalayers.states import Settings, Shape, State

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

    def resolved(self, shape: Shape) -> Settings:
        return {**super().resolved(shape), "mix": self._resolved_mix(shape)}

    def _resolved_mix(self, shape: Shape) -> str:
        """Return `mix`, where `single` on the last hidden state is `last`: one trial has one name."""
        last = self.mix == "single" and self.layer == self.states(shape)[-1].number
        return "last" if last else self.mix

    def within(self, names: Collection[str], shape: Shape) -> Settings:
        values = super().within(names, shape)
        if "layer" not in names or self._resolved_mix(shape) != "last":
            return values
        single: Settings = {"mix": "single", "layer": self.states(shape)[-1].number}
        return values | {name: value for name, value in single.items() if name in names}

    def check(self, shape: Shape) -> None:
        super().check(shape)
        if self.mix == "single":
            self.check_layer(shape, self.layer)

    def fixed_weights(self, shape: Shape) -> Float[Tensor, " states"]:
        """Return the weights of the hidden states read where they are not learned; learned ones: all alike."""
        states = self.states(shape)
        single = [state for state in states if state.number == self.layer]
        read = {"single": single, "last": states[-1:]}.get(self.mix, states)
        return torch.tensor([(state in read) / len(read) for state in states])


class WeightedFusion(Fusion):
    """A mix of hidden states by weights that sum to 1.

    Attributes:
        cuts: Whether learned weights may be 0 now, which are then not read.
    """

    cuts = False

    def __init__(self, config: WeightedConfig, shape: Shape):
        super().__init__(config, shape)
        self.mix = config.mix
        self.fixed_weights = nn.Buffer(config.fixed_weights(shape), persistent=False)

    @abstractmethod
    def all_weights(self) -> Float[Tensor, " states"]:
        """Return the weights where no state is taken away: non-negative, sum 1."""

    def live(self) -> list[State]:
        """Return the hidden states that the next `forward` needs, in order."""
        if self.mix == "learned" and not self.cuts:
            return super().live()
        weights = self.weights().tolist()
        return [state for state, weight in zip(self.states, weights, strict=True) if weight > 0]

    def weights(self) -> Float[Tensor, " states"]:
        """Return the weights: non-negative, sum 1 (less what `without` takes away)."""
        weights = self.all_weights()
        if not self._dropped:
            return weights
        kept = torch.tensor([state not in self._dropped for state in self.states], device=weights.device)
        weights = weights * kept
        return weights / weights.sum() if self._renormalise and weights.sum() > 0 else weights

    def matrices(self) -> list[nn.Parameter]:
        """Return W_i of each hidden state; none where these are read as they are."""
        return [parameter for parameter in self.parameters() if parameter.dim() == 2]

    def unused_parameters(self) -> int:
        """Return the trained parameters of projections whose hidden state is fixed at weight 0."""
        fixed = zip(self.matrices(), self.fixed_weights.tolist(), strict=False)
        return sum(matrix.numel() for matrix, weight in fixed if weight == 0 and matrix.requires_grad)
