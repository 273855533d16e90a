"""The scalar mix: hidden states added up by softmax weights and scaled (Peters et al. 2018, ELMo, equation 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from adalayers.fusion.fusion import Lengths, States, Term
from adalayers.fusion.projections import Projected, ProjectedConfig
from adalayers.fusion.weighted import WeightedConfig, WeightedFusion
from adalayers.states import Pooling, Shape, State


@dataclass(frozen=True, kw_only=True)
class ScalarMixConfig(WeightedConfig, ProjectedConfig):
    """Hyperparameters of the scalar mix, next to those of every method and of `WeightedConfig`.

    mix    learned: gamma * softmax(w). The others have neither gamma nor w: with own_width=True, read_out=linear and
           mix=uniform it is "Average" of ElNokrashy et al. 2024, with mix=last its "Base"
    """

    fusion: ClassVar[str] = "scalar-mix"
    token_by_token: ClassVar[bool] = True

    def _pooling(self) -> Pooling | None:
        return self._linear_pooling(self.own_width)


class ScalarMix(WeightedFusion, config=ScalarMixConfig):
    """The mix of hidden states x_i, i = 1..l, as they are or projected (`Projected`):

        s = softmax(w)               w in R^l, initialised to zeros
        F = gamma * sum_i s_i x_i    gamma a number, initialised to 1

    The variants `uniform`, `single` and `last` fix s and have no gamma. ELMo decays w weakly; here neither w nor gamma
    has weight decay, as p has none in the layer mix.
    """

    undecayed = ("w", "gamma")

    def __init__(self, config: ScalarMixConfig, shape: Shape):
        super().__init__(config, shape)
        self.projected = Projected(self.states, shape.width, config.projected_to)
        if self.mix == "learned":
            self.w, self.gamma = nn.Parameter(torch.zeros(len(self.states))), nn.Parameter(torch.ones(()))

    def all_weights(self) -> Float[Tensor, " states"]:
        """Return s."""
        return torch.softmax(self.w, dim=0) if self.mix == "learned" else self.fixed_weights

    def fuse(self, states: States, lengths: Lengths, live: list[State]) -> Float[Tensor, "tokens width"]:
        """Return F, float32."""
        weights = self._scaled_weights()[[self.states.index(state) for state in live]]
        projected = torch.stack([self.projected(state, states[state]) for state in live])
        # F is float32, whatever the projections were.
        with torch.autocast(projected.device.type, enabled=False):
            return torch.einsum("l,ltk->tk", weights, projected)

    def _scaled_weights(self) -> Float[Tensor, " states"]:
        return self.gamma * self.weights() if self.mix == "learned" else self.weights()

    @torch.no_grad()
    def diagnostics(self) -> dict[str, float]:
        """Return the weights s by state, `scalar_mix/weight_<state>`, and `scalar_mix/gamma` where there is one."""
        weights = self.by_state("scalar_mix/weight_", self.weights().tolist())
        return {**weights, "scalar_mix/gamma": float(self.gamma)} if self.mix == "learned" else weights

    @torch.no_grad()
    def terms(self) -> dict[State, Term]:
        """Return the share of each live hidden state, as it is or projected."""
        weights = dict(zip(self.states, self._scaled_weights().tolist(), strict=True))
        return {state: self.projected.term(state, weights[state]) for state in self.live()}
