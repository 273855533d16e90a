"""The layer mix: every hidden state projected to k dimensions, mixed by learned weights (thesis section 5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from adalayers.config import AT_LEAST_1, BELOW_1, MAX_WIDTH, POSITIVE, bounded
from adalayers.errors import BadInput
from adalayers.fusion.fusion import ParameterGroup, Term
from adalayers.fusion.projections import NORM_EPS, projections
from adalayers.fusion.weighted import Mix, WeightedConfig, WeightedFusion
from adalayers.states import Shape, State
from adalayers.tensors.cpu_dropout import Dropout
from adalayers.tensors.cpu_mix import GeluProjectNormaliseMix

ROUNDING = 1e-5
"""How far a float32 softmax of equal logits may lie from 1/l, relatively, with room to spare."""

_LEARNED_ALONE = ("alpha", "entropy_weight", "entropy_scale", "cutoff", "cutoff_when", "mix_lr")


@dataclass(frozen=True, kw_only=True)
class LayerMixConfig(WeightedConfig):
    """Hyperparameters of the layer mix, next to those of every method and of `WeightedConfig`.

    mix                 learned: softmax(alpha * p)
    alpha               scale of the mix logits
    entropy_weight      lambda: the loss is that of the task + lambda * H(p~), H in nats
    entropy_scale       nats, or as-released: lambda divided by the number of hidden states mixed
    cutoff              mix weights at or below it become 0, the rest are renormalised
    cutoff_when         always, or after-training: only when the best model is scored
    train_projections   False freezes the projections at their start, as the released baselines did
    k                   width that every hidden state is projected to
    normalise           False leaves out N, which normalises every projection
    projection_dropout  of the normalised projections f_i, as in the released code
    gelu_after_mix      True applies one more gelu, to F, as the released code does
    mix_lr              learning rate of p, which has no weight decay (None: that of lr)
    """

    fusion: ClassVar[str] = "layer-mix"

    alpha: float = bounded(1.0, POSITIVE)
    entropy_weight: float = 0.0
    entropy_scale: Literal["nats", "as-released"] = "nats"
    cutoff: float = bounded(0.0, BELOW_1)
    cutoff_when: Literal["always", "after-training"] = "always"
    train_projections: bool = True
    k: int = bounded(64, AT_LEAST_1, maximum=MAX_WIDTH)
    normalise: bool = True
    projection_dropout: float = bounded(0.0, BELOW_1)
    gelu_after_mix: bool = False
    mix_lr: float | None = bounded(None, POSITIVE)

    def __post_init__(self) -> None:
        super().__post_init__()
        divides = self.read_out != "attention" or self.k % self.heads == 0
        self.require("heads", divides, f"a divisor of k = {self.k}")

    def width(self, shape: Shape) -> int:
        return self.k

    def unused(self, shape: Shape) -> set[str]:
        learned_alone = set() if self.mix == "learned" else set(_LEARNED_ALONE)
        scale = {"entropy_scale"} if self.entropy_weight == 0 else set()
        when = {"cutoff_when"} if self.cutoff == 0 else set()
        return super().unused(shape) | learned_alone | scale | when

    def resolved(self, shape: Shape) -> dict[str, Any]:
        return {**super().resolved(shape), "mix_lr": self.mix_lr or self.lr}

    def check(self, shape: Shape) -> None:
        super().check(shape)
        n_states = len(self.states(shape))
        if self.mix == "learned" and cuts_all(self.cutoff, n_states):
            raise BadInput(
                f"wanted a cutoff below 1/{n_states} = {1 / n_states:.4g} ({n_states} hidden states start at "
                f"that weight and would all be cut), got cutoff={self.cutoff:g}; lower cutoff"
            )

    def build(self, shape: Shape) -> LayerMix:
        states = self.states(shape)
        scale = len(states) if self.entropy_scale == "as-released" else 1
        return LayerMix(
            states,
            shape.width,
            self.k,
            mix=self.mix,
            single=self.single(shape),
            alpha=self.alpha,
            cutoff=self.cutoff,
            cutoff_active=self.cutoff_when == "always",
            entropy_weight=self.entropy_weight / scale,
            train_projections=self.train_projections,
            normalise=self.normalise,
            dropout=self.projection_dropout,
            gelu_after=self.gelu_after_mix,
            lr=self.mix_lr,
        )


def cuts_all(cutoff: float, n_states: int) -> bool:
    """Say whether a cutoff would cut every one of `n_states` equal weights, or is within rounding of it."""
    return cutoff * n_states >= 1 - ROUNDING


class LayerMix(WeightedFusion):
    """The mix of frozen hidden states Z_i in R^{tokens x K}, i = 1..l:

        f_i = N(gelu(Z_i) W_i^T)     W_i in R^{k x K}; N normalises the last dimension, no scale, no shift
        p~  = softmax(alpha * p)     p in R^l, initialised to ones
        F   = sum_i p~_i f_i         in R^{tokens x k}

    Weights p~_i <= cutoff become exactly 0 and the rest are renormalised: a layer so cut is neither read nor
    projected. The variants `uniform`, `single` and `last` fix p~ and share everything else.

    Args:
        states:    The l hidden states mixed.
        inner:     K, their width.
        single:    The position (0..l-1) that holds all weight in the variant `single`.
        cutoff_active: False lets the cutoff wait for `finish`.
        entropy_weight: Lambda in nats.
        train_projections: False leaves every W_i at its random start (the released code's frozen-mix baselines).
        normalise: False leaves N out.
        dropout:   Of f_i, while training.
        gelu_after: True gives gelu(F).
        lr:        That of p, None for that of the rest.

    Raises:
        ValueError: A cutoff of 1/l or more, or a `single` out of range.
    """

    def __init__(
        self,
        states: Sequence[State],
        inner: int,
        k: int,
        *,
        mix: Mix = "learned",
        single: int | None = None,
        alpha: float = 1.0,
        cutoff: float = 0.0,
        cutoff_active: bool = True,
        entropy_weight: float = 0.0,
        train_projections: bool = True,
        normalise: bool = True,
        dropout: float = 0.0,
        gelu_after: bool = False,
        lr: float | None = None,
    ):
        super().__init__(states, k, mix=mix, single=single)
        n_states = len(self.states)
        if mix == "learned" and cuts_all(cutoff, n_states):
            raise ValueError(
                f"wanted a cutoff below 1/{n_states}, got {cutoff}: every layer would be cut at the start"
            )
        self.alpha, self.cutoff = alpha, cutoff
        self.cutoff_active, self.entropy_weight, self.lr = cutoff_active, entropy_weight, lr
        self.eps, self.gelu_after = NORM_EPS if normalise else None, gelu_after
        self.dropout = Dropout(dropout)
        self.projections = nn.ModuleList(projections(self.states, inner, k))
        self.projections.requires_grad_(train_projections)
        if mix == "learned":
            self.p = nn.Parameter(torch.ones(n_states))

    @property
    def _cuts(self) -> bool:
        return self.mix == "learned" and self.cutoff > 0 and self.cutoff_active

    def log_weights(self) -> Float[Tensor, " states"]:
        """Return log p~, -inf where a weight is cut."""
        if self.mix != "learned":
            return self.fixed_weights.log()
        logits = self.alpha * self.p
        if self._cuts:
            # Renormalising the kept weights is a softmax over the kept logits: exact zeros, and no gradient
            # reaches a cut p_i.
            logits = logits.masked_fill(torch.softmax(logits, dim=0) <= self.cutoff, float("-inf"))
        return torch.log_softmax(logits, dim=0)

    def all_weights(self) -> Float[Tensor, " states"]:
        """Return p~, cut and renormalised."""
        return self.log_weights().exp()

    def live(self) -> list[State]:
        """Return the hidden states that the next `forward` needs, in order."""
        if not self._cuts:
            return super().live()
        weights = self.weights().tolist()
        return [state for state, weight in zip(self.states, weights, strict=True) if weight > 0]

    def entropy(self) -> Float[Tensor, ""]:
        """Return H(p~) = -sum p~ log p~ in nats, with 0 log 0 = 0."""
        logs = self.log_weights()
        # Cut weights are taken out before the product: the gradient of x log x at 0 is infinite.
        return -(logs.exp() * logs.masked_fill(logs.isneginf(), 0.0)).sum()

    def fuse(
        self,
        states: Mapping[State, Float[Tensor, "tokens K"]],
        lengths: Int[Tensor, " batch"],
        live: list[State],
    ) -> Float[Tensor, "tokens k"]:
        """Return F, float32."""
        positions = [self.states.index(state) for state in live]
        matrices: list[Tensor] = [self.projections[position].weight for position in positions]  # type: ignore[misc]
        weights = self.weights()
        if len(live) < len(self.states):
            weights = weights[positions]
        # Read one at a time: together, hidden states are most of a trial's memory.
        last = states[live[-1]]
        hidden = chain((states[state] for state in live[:-1]), [last])
        mask = self.dropout.mask
        if last.device.type == "cpu" and not last.requires_grad:
            mixed = GeluProjectNormaliseMix.apply(weights, self.eps, mask, hidden, *matrices)
        else:
            mixed = mix_batched(weights, list(hidden), matrices, self.eps, mask)
        return functional.gelu(mixed) if self.gelu_after else mixed

    def penalty(self) -> Float[Tensor, ""] | None:
        """Return lambda * H(p~); None where it is zero."""
        if self.mix != "learned" or self.entropy_weight == 0:
            return None
        return self.entropy_weight * self.entropy()

    def diagnostics(self) -> dict[str, float]:
        """Return the mix weights p~ by state, `mix/weight_<state>`."""
        return self.by_state("mix/weight_", self.weights().tolist())

    @torch.no_grad()
    def summary(self) -> dict[str, float]:
        """Return H(p~) in nats, and how many layers have a weight above 0."""
        return {"mix/entropy": float(self.entropy()), "mix/live_layers": int((self.weights() > 0).sum())}

    def parameter_groups(self) -> list[ParameterGroup]:
        """Return the projections, and p at its own rate without weight decay."""
        groups = [ParameterGroup([p for p in self.projections.parameters() if p.requires_grad])]
        if self.mix == "learned":
            groups.append(ParameterGroup([self.p], lr=self.lr, weight_decay=0.0))
        return groups

    def unused_parameters(self) -> int:
        """Return the parameters of trained projections whose hidden state is fixed at weight 0."""
        return self._parameters_at_weight_0(self.projections)

    def weights_at_use(self) -> int:
        """Return the weights of the live projections, and one mix weight each."""
        live = [self.projections[self.states.index(state)] for state in self.live()]
        return sum(parameter.numel() + 1 for projection in live for parameter in projection.parameters())

    @torch.no_grad()
    def terms(self) -> dict[State, Term]:
        """Return p~_i N(gelu(Z_i) W_i^T) by live hidden state."""
        live = set(self.live())
        parts = zip(self.states, self.weights().tolist(), self.projections, strict=True)
        return {
            state: Term(weight, projection.weight, gelu=True, eps=self.eps)  # type: ignore[arg-type]
            for state, weight, projection in parts
            if state in live
        }

    def whole(self, total: Float[Tensor, "... width"]) -> Float[Tensor, "... width"]:
        """Return F of the sum: the sum itself, or its gelu."""
        return functional.gelu(total) if self.gelu_after else total

    def finish(self) -> None:
        """Switch on a cutoff that was to wait until training is over."""
        self.cutoff_active = True


def mix_batched(
    weights: Float[Tensor, " live"],
    hidden: Sequence[Float[Tensor, "tokens K"]],
    matrices: Sequence[Float[Tensor, "k K"]],
    eps: float | None = NORM_EPS,
    mask: Callable[[Tensor], Tensor] | None = None,
) -> Float[Tensor, "tokens k"]:
    """Return sum_i w_i N(gelu(Z_i) W_i^T), all layers in each operation: on a GPU their number is what costs.

    Args:
        eps, mask: As for `GeluProjectNormaliseMix`, which gives the same numbers.
    """
    stacked = functional.gelu(torch.stack(list(hidden)).to(weights.dtype))
    projected = torch.bmm(stacked, torch.stack(list(matrices)).transpose(1, 2))
    if eps is not None:
        projected = functional.layer_norm(projected, projected.shape[-1:], eps=eps)
    with torch.autocast(projected.device.type, enabled=False):  # F is float32, whatever the products were
        normal = projected.to(weights.dtype)
        return torch.einsum("l,ltk->tk", weights, normal if mask is None else normal * mask(normal))
