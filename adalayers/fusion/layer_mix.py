"""LayerMix: every hidden state projected to k dimensions, mixed by learned weights (thesis section 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from adalayers.cpu.mix import GeluProjectNormaliseMix

NORM_EPS = 1e-5


class LayerMix(nn.Module):
    """The mix of frozen hidden states Z_i in R^{... x K}, i = 1..l:

        f_i = N(gelu(Z_i) W_i^T)     W_i in R^{k x K}; N normalises the last dimension, no scale, no shift
        p~  = softmax(alpha * p)     p in R^l, initialised to ones
        F   = sum_i p~_i f_i         in R^{... x k}

    Weights p~_i <= cutoff become exactly 0 and the rest are renormalised: a layer so cut is neither read nor
    projected. The variants `uniform`, `single` and `last` fix p~ and share everything else.

    n_states:  l, the number of hidden states mixed
    width:     K, their width
    single:    the position (0..l-1) that holds all weight in the variant `single`
    train_projections: False leaves every W_i at its random start (the released code's frozen-mix baselines)

    Raises `ValueError` for a cutoff of 1/l or more, or a `single` out of range.
    """

    def __init__(
        self,
        n_states: int,
        width: int,
        k: int,
        *,
        variant: Literal["learned", "uniform", "single", "last"] = "learned",
        single: int | None = None,
        alpha: float = 1.0,
        cutoff: float = 0.0,
        train_projections: bool = True,
    ):
        super().__init__()
        if variant == "learned" and cutoff * n_states >= 1:
            raise ValueError(
                f"wanted a cutoff below 1/{n_states}, got {cutoff}: every layer would be cut at the start"
            )
        if variant == "single" and (single is None or not 0 <= single < n_states):
            raise ValueError(f"wanted single to be a position 0..{n_states - 1}, got {single}")
        self.n_states, self.width, self.k = n_states, width, k
        self.variant, self.alpha, self.cutoff = variant, alpha, cutoff
        self.cutoff_active = True
        self.fixed_weights: Tensor
        self.projections = nn.ModuleList(nn.Linear(width, k, bias=False) for _ in range(n_states))
        self.projections.requires_grad_(train_projections)
        if variant == "learned":
            self.p = nn.Parameter(torch.ones(n_states))
        else:
            fixed = torch.zeros(n_states)
            chosen = {"uniform": slice(None), "single": single, "last": n_states - 1}[variant]
            fixed[chosen] = 1.0
            self.register_buffer("fixed_weights", fixed / fixed.sum(), persistent=False)

    @property
    def _cuts(self) -> bool:
        return self.variant == "learned" and self.cutoff > 0 and self.cutoff_active

    def log_weights(self) -> Float[Tensor, " states"]:
        """Return log p~, -inf where a weight is cut."""
        if self.variant != "learned":
            return self.fixed_weights.log()
        logits = self.alpha * self.p
        if self._cuts:
            # Renormalising the kept weights is a softmax over the kept logits: exact zeros, and no gradient
            # reaches a cut p_i.
            logits = logits.masked_fill(torch.softmax(logits, dim=0) <= self.cutoff, float("-inf"))
        return torch.log_softmax(logits, dim=0)

    def weights(self) -> Float[Tensor, " states"]:
        """Return p~, cut and renormalised: non-negative, sum 1."""
        return self.log_weights().exp()

    def live(self) -> list[int]:
        """Return the positions whose hidden state the next `forward` needs, in order."""
        if self.variant == "learned" and not self._cuts:
            return list(range(self.n_states))
        return [i for i, weight in enumerate(self.weights().tolist()) if weight > 0]

    def entropy(self) -> Float[Tensor, ""]:
        """Return H(p~) = -sum p~ log p~ in nats, with 0 log 0 = 0."""
        logs = self.log_weights()
        # Cut weights are taken out before the product: the gradient of x log x at 0 is infinite.
        return -(logs.exp() * logs.masked_fill(logs.isneginf(), 0.0)).sum()

    def forward(self, states: Mapping[int, Float[Tensor, "*tokens width"]]) -> Float[Tensor, "*tokens k"]:
        """Return F, float32, of the hidden states by position; positions that are not live may be absent.

        Raises `ValueError` where a live position is missing or one is out of range.
        """
        live = self.live()
        missing, beyond = set(live) - set(states), set(states) - set(range(self.n_states))
        if missing or beyond:
            raise ValueError(
                f"wanted the hidden states {live} of 0..{self.n_states - 1}, got {sorted(states)}: "
                f"missing {sorted(missing)}, out of range {sorted(beyond)}"
            )
        matrices: list[Tensor] = [self.projections[i].weight for i in live]  # type: ignore[misc]
        weights = self.weights()
        if len(live) < self.n_states:
            weights = weights[live]
        # Read one at a time: together, hidden states are most of a trial's memory.
        last = states[live[-1]]
        hidden = chain((states[i] for i in live[:-1]), [last])
        if last.device.type == "cpu" and not last.requires_grad:
            mixed = GeluProjectNormaliseMix.apply(weights, NORM_EPS, hidden, *matrices)
            return mixed.view(*last.shape[:-1], self.k)
        return mix_batched(weights, list(hidden), matrices)

    def unused_parameters(self) -> int:
        """Return how many parameters can never affect the output: projections of states fixed at weight 0."""
        if self.variant == "learned":
            return 0
        return (self.n_states - len(self.live())) * self.width * self.k


def mix_batched(
    weights: Float[Tensor, " live"],
    hidden: Sequence[Float[Tensor, "*tokens width"]],
    matrices: Sequence[Float[Tensor, "k width"]],
) -> Float[Tensor, "*tokens k"]:
    """Return sum_i w_i N(gelu(Z_i) W_i^T), all layers in each operation: on a GPU their number is what costs."""
    stacked = functional.gelu(torch.stack(list(hidden)).flatten(1, -2).to(weights.dtype))
    projected = torch.bmm(stacked, torch.stack(list(matrices)).transpose(1, 2))
    normal = functional.layer_norm(projected, projected.shape[-1:], eps=NORM_EPS)
    mixed = torch.einsum("l,ltk->tk", weights, normal)
    return mixed.view(*hidden[0].shape[:-1], -1)
