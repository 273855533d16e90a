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

from adalayers.config import TrialConfig
from adalayers.errors import BadInput
from adalayers.fusion.fusion import Fusion, ParameterGroup, Term, check_states
from adalayers.fusion.projections import NORM_EPS, projections
from adalayers.states import Shape, State
from adalayers.tensors.cpu_dropout import Dropout
from adalayers.tensors.cpu_mix import GeluProjectNormaliseMix

ROUNDING = 1e-5
"""How far a float32 softmax of equal logits may lie from 1/l, relatively, with room to spare."""

_LEARNED_ALONE = ("alpha", "entropy_weight", "entropy_scale", "cutoff", "cutoff_when", "mix_lr")


@dataclass(frozen=True, kw_only=True)
class LayerMixConfig(TrialConfig):
    """Hyperparameters of the layer mix, next to those of every method.

    mix                 learned: softmax(alpha * p); uniform; single: all weight on `layer`; last: on the last
    layer               for `single`: the hidden state used, 0 = embeddings
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

    mix: Literal["learned", "uniform", "single", "last"] = "learned"
    layer: int | None = None
    alpha: float = 1.0
    entropy_weight: float = 0.0
    entropy_scale: Literal["nats", "as-released"] = "nats"
    cutoff: float = 0.0
    cutoff_when: Literal["always", "after-training"] = "always"
    train_projections: bool = True
    k: int = 64
    normalise: bool = True
    projection_dropout: float = 0.0
    gelu_after_mix: bool = False
    mix_lr: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("k", self.k >= 1, "a whole number of at least 1")
        self.require("alpha", self.alpha > 0, "a number above 0")
        self.require(
            "mix_lr", self.mix_lr is None or self.mix_lr > 0, "a number above 0, or none for that of lr"
        )
        self.require("cutoff", 0 <= self.cutoff < 1, "a share of at least 0 and below 1")
        self.require(
            "projection_dropout",
            0 <= self.projection_dropout < 1,
            "a probability of at least 0 and below 1",
        )
        self.require(
            "heads",
            self.read_out != "attention" or self.k % self.heads == 0,
            f"a divisor of k = {self.k}",
        )
        self.require(
            "layer",
            (self.layer is not None) == (self.mix == "single"),
            f"a hidden state for mix=single alone, mix is {self.mix}",
        )

    def width(self, shape: Shape) -> int:
        return self.k

    def unused(self, shape: Shape) -> set[str]:
        names = super().unused(shape)
        if self.mix != "learned":
            names |= set(_LEARNED_ALONE)
        if self._variant(shape) != "single":
            names.add("layer")
        if self.entropy_weight == 0:
            names.add("entropy_scale")
        if self.cutoff == 0:
            names.add("cutoff_when")
        return names

    def resolved(self, shape: Shape) -> dict[str, Any]:
        return {**super().resolved(shape), "mix": self._variant(shape), "mix_lr": self.mix_lr or self.lr}

    def _variant(self, shape: Shape) -> str:
        """Return `mix`, where `single` on the last hidden state is `last`: one trial has one name."""
        last = self.mix == "single" and self.layer == self.states(shape)[-1].number
        return "last" if last else self.mix

    def check(self, shape: Shape) -> None:
        super().check(shape)
        one = self.mix != "single" or len({state.stream for state in self.states(shape)}) == 1
        self.require("stream", one, "encoder or decoder where mix=single, whose layer is of one of them")
        states = self.states(shape)
        if self.mix == "learned" and cuts_all(self.cutoff, len(states)):
            raise BadInput(
                f"wanted a cutoff below 1/{len(states)} = {1 / len(states):.4g} ({len(states)} hidden states start at "
                f"that weight and would all be cut), got cutoff={self.cutoff:g}; lower cutoff"
            )
        if self.mix == "single" and self.layer not in [state.number for state in states]:
            raise BadInput(
                f"wanted layer to be one of the hidden states {[state.number for state in states]}, "
                f"got layer={self.layer}; change layer"
            )

    def build(self, shape: Shape) -> LayerMix:
        states = self.states(shape)
        numbers = [state.number for state in states]
        scale = len(states) if self.entropy_scale == "as-released" else 1
        return LayerMix(
            states,
            shape.width,
            self.k,
            variant=self.mix,
            single=None if self.layer is None else numbers.index(self.layer),
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


class LayerMix(Fusion):
    """The mix of frozen hidden states Z_i in R^{tokens x K}, i = 1..l:

        f_i = N(gelu(Z_i) W_i^T)     W_i in R^{k x K}; N normalises the last dimension, no scale, no shift
        p~  = softmax(alpha * p)     p in R^l, initialised to ones
        F   = sum_i p~_i f_i         in R^{tokens x k}

    Weights p~_i <= cutoff become exactly 0 and the rest are renormalised: a layer so cut is neither read nor
    projected. The variants `uniform`, `single` and `last` fix p~ and share everything else.

    states:    the l hidden states mixed
    inner:     K, their width
    single:    the position (0..l-1) that holds all weight in the variant `single`
    cutoff_active: False lets the cutoff wait for `finish`
    entropy_weight: lambda in nats
    train_projections: False leaves every W_i at its random start (the released code's frozen-mix baselines)
    normalise: False leaves N out
    dropout:   of f_i, while training
    gelu_after: True gives gelu(F)
    lr:        that of p, None for that of the rest

    Raises `ValueError` for a cutoff of 1/l or more, or a `single` out of range.
    """

    def __init__(
        self,
        states: Sequence[State],
        inner: int,
        k: int,
        *,
        variant: Literal["learned", "uniform", "single", "last"] = "learned",
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
        super().__init__(states, k)
        n_states = len(self.states)
        if variant == "learned" and cuts_all(cutoff, n_states):
            raise ValueError(
                f"wanted a cutoff below 1/{n_states}, got {cutoff}: every layer would be cut at the start"
            )
        if variant == "single" and (single is None or not 0 <= single < n_states):
            raise ValueError(f"wanted single to be a position 0..{n_states - 1}, got {single}")
        self.variant, self.alpha, self.cutoff = variant, alpha, cutoff
        self.cutoff_active, self.entropy_weight, self.lr = cutoff_active, entropy_weight, lr
        self.eps, self.gelu_after = NORM_EPS if normalise else None, gelu_after
        self.dropout = Dropout(dropout)
        self.fixed_weights: Tensor
        self.projections = nn.ModuleList(projections(self.states, inner, k))
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
        """Return p~, cut and renormalised: non-negative, sum 1 (less what `without` takes away)."""
        weights = self.log_weights().exp()
        if not self._dropped:
            return weights
        kept = torch.tensor([state not in self._dropped for state in self.states], device=weights.device)
        weights = weights * kept
        return weights / weights.sum() if self._renormalise and weights.sum() > 0 else weights

    def live(self) -> list[State]:
        """Return the hidden states that the next `forward` needs, in order."""
        if self.variant == "learned" and not self._cuts and not self._dropped:
            return list(self.states)
        weights = self.weights().tolist()
        return [state for state, weight in zip(self.states, weights, strict=True) if weight > 0]

    def entropy(self) -> Float[Tensor, ""]:
        """Return H(p~) = -sum p~ log p~ in nats, with 0 log 0 = 0."""
        logs = self.log_weights()
        # Cut weights are taken out before the product: the gradient of x log x at 0 is infinite.
        return -(logs.exp() * logs.masked_fill(logs.isneginf(), 0.0)).sum()

    def forward(
        self, states: Mapping[State, Float[Tensor, "tokens K"]], lengths: Int[Tensor, " batch"]
    ) -> Float[Tensor, "tokens k"]:
        """Return F, float32, of the hidden states; those that are not live may be absent.

        Raises `ValueError` where a live one is missing or one is unknown.
        """
        live = self.live()
        check_states(live, states, self.states)
        places = [self.states.index(state) for state in live]
        matrices: list[Tensor] = [self.projections[place].weight for place in places]  # type: ignore[misc]
        weights = self.weights()
        if not live:  # all were taken away
            return weights.new_zeros(int(lengths.sum()), self.width)
        if len(live) < len(self.states):
            weights = weights[places]
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
        if self.variant != "learned" or self.entropy_weight == 0:
            return None
        return self.entropy_weight * self.entropy()

    def diagnostics(self) -> dict[str, float]:
        """Return the mix weights p~ by state, `mix/weight_<state>`."""
        weights = self.weights().tolist()
        return {
            f"mix/weight_{state.name}": weight for state, weight in zip(self.states, weights, strict=True)
        }

    @torch.no_grad()
    def summary(self) -> dict[str, float]:
        """Return H(p~) in nats, and how many layers have a weight above 0."""
        return {"mix/entropy": float(self.entropy()), "mix/live_layers": int((self.weights() > 0).sum())}

    def parameter_groups(self) -> list[ParameterGroup]:
        """Return the projections, and p at its own rate without weight decay."""
        groups = [ParameterGroup([p for p in self.projections.parameters() if p.requires_grad])]
        if self.variant == "learned":
            groups.append(ParameterGroup([self.p], lr=self.lr, weight_decay=0.0))
        return groups

    def unused_parameters(self) -> int:
        """Return the parameters of trained projections whose hidden state is fixed at weight 0."""
        if self.variant == "learned":
            return 0
        return sum(
            parameter.numel()
            for projection, weight in zip(self.projections, self.fixed_weights.tolist(), strict=True)
            for parameter in projection.parameters()
            if weight == 0 and parameter.requires_grad
        )

    def weights_at_use(self) -> int:
        """Return the weights of the live projections, and one mix weight each."""
        live = [self.projections[self.states.index(state)] for state in self.live()]
        return sum(parameter.numel() + 1 for one in live for parameter in one.parameters())

    def kept_at_use(self, inner: int) -> int:
        """Return k: F is added up while the base model runs (thesis 5.3)."""
        return self.width

    @torch.no_grad()
    def terms(self) -> dict[State, Term]:
        """Return p~_i N(gelu(Z_i) W_i^T) by live hidden state."""
        live, weights = set(self.live()), self.weights().tolist()
        matrices: list[Tensor] = [one.weight for one in self.projections]  # type: ignore[misc]
        return {
            state: Term(weight, matrix, gelu=True, eps=self.eps)
            for state, weight, matrix in zip(self.states, weights, matrices, strict=True)
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

    eps, mask: as for `GeluProjectNormaliseMix`, which gives the same numbers
    """
    stacked = functional.gelu(torch.stack(list(hidden)).to(weights.dtype))
    projected = torch.bmm(stacked, torch.stack(list(matrices)).transpose(1, 2))
    if eps is not None:
        projected = functional.layer_norm(projected, projected.shape[-1:], eps=eps)
    with torch.autocast(projected.device.type, enabled=False):  # F is float32, whatever the products were
        normal = projected.to(weights.dtype)
        return torch.einsum("l,ltk->tk", weights, normal if mask is None else normal * mask(normal))
