"""The scalar mix: hidden states added up by softmax weights and scaled (Peters et al. 2018, ELMo, equation 1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from adalayers.fusion.fusion import Fusion, ParameterGroup, Term, check_states
from adalayers.fusion.projections import Projected, ProjectedConfig
from adalayers.states import Shape, State


@dataclass(frozen=True, kw_only=True)
class ScalarMixConfig(ProjectedConfig):
    """Hyperparameters of the scalar mix, next to those of every method.

    mix    learned: gamma * softmax(w); uniform; single: all weight on `layer`; last: on the last. The latter three have
           neither gamma nor w: with own_width=True, read_out=linear and mix=uniform it is "Average" of ElNokrashy et
           al. 2024, with mix=last its "Base"
    layer  for `single`: the hidden state used, 0 = embeddings
    """

    fusion: ClassVar[str] = "scalar-mix"

    mix: Literal["learned", "uniform", "single", "last"] = "learned"
    layer: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(
            "layer",
            (self.layer is not None) == (self.mix == "single"),
            f"a hidden state for mix=single alone, mix is {self.mix}",
        )

    def unused(self, shape: Shape) -> set[str]:
        return super().unused(shape) | (set() if self._variant(shape) == "single" else {"layer"})

    def resolved(self, shape: Shape) -> dict[str, Any]:
        return {**super().resolved(shape), "mix": self._variant(shape)}

    def _variant(self, shape: Shape) -> str:
        """Return `mix`, where `single` on the last hidden state is `last`: one trial has one name."""
        last = self.mix == "single" and self.layer == self.states(shape)[-1].number
        return "last" if last else self.mix

    def check(self, shape: Shape) -> None:
        super().check(shape)
        one = self.mix != "single" or len({state.stream for state in self.states(shape)}) == 1
        self.require("stream", one, "encoder or decoder where mix=single, whose layer is of one of them")
        numbers = [state.number for state in self.states(shape)]
        self.require("layer", self.layer is None or self.layer in numbers, f"one of {numbers}")

    def build(self, shape: Shape) -> ScalarMix:
        states = self.states(shape)
        single = None if self.layer is None else [state.number for state in states].index(self.layer)
        return ScalarMix(states, shape.width, self.projected_to, variant=self.mix, single=single)


class ScalarMix(Fusion):
    """The mix of hidden states x_i, i = 1..l, as they are or projected (`Projected`):

        s = softmax(w)               w in R^l, initialised to zeros
        F = gamma * sum_i s_i x_i    gamma a number, initialised to 1

    The variants `uniform`, `single` and `last` fix s and have no gamma. ELMo decays w weakly; here neither w nor gamma
    has weight decay, as p has none in the layer mix.

    states: the l hidden states mixed
    inner:  K, their width
    k:      the width that they are projected to; None: they are mixed as they are
    single: the position (0..l-1) that holds all weight in the variant `single`

    Raises `ValueError` for a `single` out of range.
    """

    def __init__(
        self,
        states: Sequence[State],
        inner: int,
        k: int | None,
        *,
        variant: Literal["learned", "uniform", "single", "last"] = "learned",
        single: int | None = None,
    ):
        super().__init__(states, inner if k is None else k)
        n_states = len(self.states)
        if variant == "single" and (single is None or not 0 <= single < n_states):
            raise ValueError(f"wanted single to be a position 0..{n_states - 1}, got {single}")
        self.variant = variant
        self.projected = Projected(self.states, inner, k)
        self.fixed_weights: Tensor
        if variant == "learned":
            self.w, self.gamma = nn.Parameter(torch.zeros(n_states)), nn.Parameter(torch.ones(()))
        else:
            fixed = torch.zeros(n_states)
            chosen = {"uniform": slice(None), "single": single, "last": n_states - 1}[variant]
            fixed[chosen] = 1.0
            self.register_buffer("fixed_weights", fixed / fixed.sum(), persistent=False)

    def weights(self) -> Float[Tensor, " states"]:
        """Return s: non-negative, sum 1 (less what `without` takes away)."""
        weights = torch.softmax(self.w, dim=0) if self.variant == "learned" else self.fixed_weights
        if not self._dropped:
            return weights
        kept = torch.tensor([state not in self._dropped for state in self.states], device=weights.device)
        weights = weights * kept
        return weights / weights.sum() if self._renormalise and weights.sum() > 0 else weights

    def live(self) -> list[State]:
        """Return the hidden states that the next `forward` needs, in order."""
        left = [state for state in self.states if state not in self._dropped]
        if self.variant == "learned":
            return left
        fixed = dict(zip(self.states, self.fixed_weights.tolist(), strict=True))
        return [state for state in left if fixed[state] > 0]

    def forward(
        self, states: Mapping[State, Float[Tensor, "tokens K"]], lengths: Int[Tensor, " batch"]
    ) -> Float[Tensor, "tokens width"]:
        """Return F, float32, of the hidden states; those that are not live may be absent.

        Raises `ValueError` where a live one is missing or one is unknown.
        """
        live = self.live()
        check_states(live, states, self.states)
        weights = self.weights()
        if not live:  # all were taken away
            return weights.new_zeros(int(lengths.sum()), self.width)
        if self.variant == "learned":
            weights = self.gamma * weights
        each = dict(zip(self.states, weights.unbind(), strict=True))
        read = torch.stack([self.projected(state, states[state]) for state in live])
        with torch.autocast(read.device.type, enabled=False):  # F is float32, whatever the projections were
            return torch.einsum("l,ltk->tk", torch.stack([each[state] for state in live]), read)

    @torch.no_grad()
    def diagnostics(self) -> dict[str, float]:
        """Return the weights s by state, `scalar_mix/weight_<state>`, and `scalar_mix/gamma` where there is one."""
        noted = {
            f"scalar_mix/weight_{state.name}": weight
            for state, weight in zip(self.states, self.weights().tolist(), strict=True)
        }
        return {**noted, "scalar_mix/gamma": float(self.gamma)} if self.variant == "learned" else noted

    def parameter_groups(self) -> list[ParameterGroup]:
        """Return the projections, and w and gamma without weight decay."""
        groups = [ParameterGroup(list(self.projected.parameters()))]
        if self.variant == "learned":
            groups.append(ParameterGroup([self.w, self.gamma], weight_decay=0.0))
        return groups

    def unused_parameters(self) -> int:
        """Return the parameters of projections whose hidden state is fixed at weight 0."""
        if self.variant == "learned" or self.projected.project is None:
            return 0
        unread = int((self.fixed_weights == 0).sum())
        return unread * sum(parameter.numel() for parameter in self.projected.project[0].parameters())

    def kept_at_use(self, inner: int) -> int:
        """Return the width of F, which is added up while the base model runs."""
        return self.width

    @torch.no_grad()
    def terms(self) -> dict[State, Term]:
        """Return the share of each live hidden state, as it is or projected."""
        weights = self.weights() if self.variant != "learned" else self.gamma * self.weights()
        each = dict(zip(self.states, weights.tolist(), strict=True))
        return {state: self.projected.term(state, each[state]) for state in self.live()}
