"""The layer mix: every hidden state projected to k dimensions, mixed by learned weights (thesis section 5)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from adalayers.config import WidthConfig, bounded
from adalayers.fusion.fusion import Lengths, States, Term
from adalayers.fusion.projections import NORM_EPS, projections
from adalayers.fusion.weighted import WeightedConfig, WeightedFusion
from adalayers.states import Pooling, Shape, State
from adalayers.tensors import ragged
from adalayers.tensors.dropout import Dropout
from adalayers.tensors.mix import ACTIVATIONS, mix_of_members

if TYPE_CHECKING:  # a room above makes them
    from adalayers.training.batches import Batches

ROUNDING = 1e-5
"""How far a float32 softmax of equal logits may lie from 1/l, relatively, with room to spare."""

_LEARNED_ALONE = ("alpha", "entropy_weight", "entropy_scale", "cutoff", "cutoff_when", "mix_lr")


@dataclass(frozen=True, kw_only=True)
class LayerMixConfig(WeightedConfig, WidthConfig):
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
    token_by_token: ClassVar[bool] = True

    alpha: float = bounded(1.0, above=0)
    entropy_weight: float = 0.0
    entropy_scale: Literal["nats", "as-released"] = "nats"
    cutoff: float = bounded(0.0, least=0, below=1)
    cutoff_when: Literal["always", "after-training"] = "always"
    train_projections: bool = True
    normalise: bool = True
    projection_dropout: float = bounded(0.0, least=0, below=1)
    gelu_after_mix: bool = False
    mix_lr: float | None = bounded(None, above=0)

    def unused(self, shape: Shape) -> set[str]:
        learned_alone = set() if self.mix == "learned" else set(_LEARNED_ALONE)
        scale = {"entropy_scale"} if self.entropy_weight == 0 else set()
        when = {"cutoff_when"} if self.cutoff == 0 else set()
        return super().unused(shape) | learned_alone | scale | when

    def check(self, shape: Shape) -> None:
        super().check(shape)
        n_states = len(self.states(shape))
        keeps_some = self.mix != "learned" or self.cutoff * n_states < 1 - ROUNDING
        wanted = f"below 1/{n_states} = {1 / n_states:.4g}, at which {n_states} hidden states start: all would be cut"
        self.require("cutoff", keeps_some, wanted)

    def _pooling(self) -> Pooling | None:
        return super()._pooling() if self.projection_dropout == 0 else None


def log_mix(logits: Float[Tensor, "*members states"], cutoff: Tensor | float | None) -> Tensor:
    """Return log p~ of mix logits, -inf where a weight is at or below the cutoff; None cuts nothing."""
    if cutoff is not None:
        # Renormalising the kept weights is a softmax over the kept logits: exact zeros, and no gradient reaches a cut
        # p_i.
        logits = logits.masked_fill(torch.softmax(logits, dim=-1) <= cutoff, float("-inf"))
    return torch.log_softmax(logits, dim=-1)


def entropies(logs: Float[Tensor, "*members states"]) -> Float[Tensor, "*members"]:
    """Return H(p~) = -sum p~ log p~ in nats of log p~, with 0 log 0 = 0."""
    # Cut weights are taken out before the product: the gradient of x log x at 0 is infinite.
    return -(logs.exp() * logs.masked_fill(logs.isneginf(), 0.0)).sum(dim=-1)


class LayerMix(WeightedFusion, config=LayerMixConfig):
    """The mix of frozen hidden states Z_i in R^{tokens x K}, i = 1..l:

        f_i = N(gelu(Z_i) W_i^T)     W_i in R^{k x K}; N normalises the last dimension, no scale, no shift
        p~  = softmax(alpha * p)     p in R^l, initialised to ones
        F   = sum_i p~_i f_i         in R^{tokens x k}

    Weights p~_i <= cutoff become exactly 0 and the rest are renormalised: a layer so cut is neither read nor
    projected. The variants `uniform`, `single` and `last` fix p~ and share everything else.
    """

    undecayed = ("p",)

    def __init__(self, config: LayerMixConfig, shape: Shape):
        super().__init__(config, shape)
        self.alpha, self.cutoff = config.alpha, config.cutoff
        self.cutoff_active = config.cutoff_when == "always"
        scale = len(self.states) if config.entropy_scale == "as-released" else 1
        self.entropy_weight = config.entropy_weight / scale if self.mix == "learned" else 0.0
        self.eps, self.gelu_after = NORM_EPS if config.normalise else None, config.gelu_after_mix
        self.dropout = Dropout(config.projection_dropout)
        self.projections = nn.ModuleList(projections(self.states, shape.width, config.k))
        self.projections.requires_grad_(config.train_projections)
        if self.mix == "learned":
            self.p = nn.Parameter(torch.ones(len(self.states)))

    @property
    def cuts(self) -> bool:  # type: ignore[override]
        """Whether weights at or below the cutoff are cut now."""
        return self.mix == "learned" and self.cutoff > 0 and self.cutoff_active

    def log_weights(self) -> Float[Tensor, " states"]:
        """Return log p~, -inf where a weight is cut."""
        if self.mix != "learned":
            return self.fixed_weights.log()
        return log_mix(self.alpha * self.p, self.cutoff if self.cuts else None)

    def all_weights(self) -> Float[Tensor, " states"]:
        """Return p~, cut and renormalised."""
        return self.log_weights().exp()

    def entropy(self) -> Float[Tensor, ""]:
        """Return H(p~) = -sum p~ log p~ in nats, with 0 log 0 = 0."""
        return entropies(self.log_weights())

    def fuse(self, states: States, lengths: Lengths, live: list[State]) -> Float[Tensor, "tokens k"]:
        """Return F, float32."""
        positions = [self.states.index(state) for state in live]
        weights, every = self.weights(), self.matrices()
        if len(live) < len(self.states):  # an index is a copy from the host, at each step
            weights = weights[positions]
        matrices = torch.stack([every[position] for position in positions])
        activated = ACTIVATIONS.activated(len(live), (states[state] for state in live), weights.dtype)
        ones = weights.new_ones(len(live), 1, activated.shape[1], self.width)
        masks = self.dropout(ones) if self.dropout.drops else None
        one = weights[:, None], matrices[:, None], activated[:, None]
        return self.whole(mix_of_members(*one, [1], self.eps, masks).squeeze(1))

    def penalty(self) -> Float[Tensor, ""] | None:
        """Return lambda * H(p~); None where it is zero."""
        return None if self.entropy_weight == 0 else self.entropy_weight * self.entropy()

    def diagnostics(self) -> dict[str, float]:
        """Return the mix weights p~ by state, `mix/weight_<state>`."""
        return self.by_state("mix/weight_", self.weights().tolist())

    @torch.no_grad()
    def summary(self) -> dict[str, float]:
        """Return H(p~) in nats, and how many layers have a weight above 0."""
        return {"mix/entropy": float(self.entropy()), "mix/live_layers": int((self.weights() > 0).sum())}

    def weights_at_use(self) -> int:
        """Return the weights of the live projections, and one mix weight each."""
        return len(self.live()) * (self.matrices()[0].numel() + 1)

    @torch.no_grad()
    def terms(self) -> dict[State, Term]:
        """Return p~_i N(gelu(Z_i) W_i^T) by live hidden state."""
        live = set(self.live())
        parts = zip(self.states, self.weights().tolist(), self.matrices(), strict=True)
        return {state: Term(p, w, gelu=True, eps=self.eps) for state, p, w in parts if state in live}

    def whole(self, total: Float[Tensor, "... width"]) -> Float[Tensor, "... width"]:
        """Return F of the sum: the sum itself, or its gelu."""
        return functional.gelu(total) if self.gelu_after else total

    def alike(self) -> tuple[Any, ...] | None:
        """Return `LayerMixes`, and what must be the same of mixes that it computes as one."""
        if self._dropped:
            return None
        trained = self.matrices()[0].requires_grad
        read = self.states if self.mix == "learned" else tuple(self.live())
        return LayerMixes, self.states, read, self.width, self.eps, self.gelu_after, trained

    def finish(self) -> None:
        """Switch on a cutoff that was to wait until training is over."""
        self.cutoff_active = True


class LayerMixes:
    """What each of several `LayerMix`es gives, computed over the states that they read.

    Args:
        members: Alike but for their weights, and how these are learned or fixed.
    """

    def __init__(self, members: Sequence[LayerMix]):
        self.members, self._first, matrices = members, members[0], [each.matrices() for each in members]
        self.states, self._shape = self._first.states, matrices[0][0].shape
        self._frozen: Tensor | None = None
        if not matrices[0][0].requires_grad:
            self._frozen = torch.stack([torch.stack(own) for own in zip(*matrices, strict=True)]).detach()
        self._fixed = torch.stack([each.fixed_weights for each in members]).to(matrices[0][0]).log()
        learned = [member.mix == "learned" for member in members]
        self._any_learned, self._learned = any(learned), self._column(learned).bool()
        self._alpha = self._column(member.alpha for member in members)
        lambdas = [member.entropy_weight for member in members]
        self._lambda = self._column(lambdas).squeeze(1) if any(lambdas) else None
        self._log_weights = self._fixed
        self._read = [i for i, weight in enumerate(self._fixed[0].tolist()) if weight > -math.inf]
        self.prepare()

    def _column(self, numbers: Iterable[float]) -> Float[Tensor, "members 1"]:
        return self._fixed.new_tensor([[number] for number in numbers])

    def prepare(self) -> None:
        """Note whose cutoffs act now."""
        self._cutoffs = [member.cutoff if member.cuts else -1.0 for member in self.members]
        self._cutoff = self._column(self._cutoffs)

    def used(self) -> Float[Tensor, "members states"] | None:
        """Return 1 for the projections that the last `mixed` used, else 0; None where all are used."""
        if self._frozen is not None or (len(self._read) == len(self.states) and max(self._cutoffs) < 0):
            return None
        return (self._log_weights.detach() > -torch.inf).to(self._log_weights.dtype)

    @torch.no_grad()
    def weights(self, parameters: Sequence[Tensor]) -> Float[Tensor, "members states"]:
        """Return p~ of each member."""
        return self.log_weights(parameters).exp()

    def log_weights(self, parameters: Sequence[Tensor]) -> Float[Tensor, "members states"]:
        """Return log p~ of each member, -inf where a weight is cut."""
        logits = self._fixed  # of fixed weights their logarithms are logits
        if self._any_learned:
            logits = torch.where(self._learned, self._alpha * parameters[-1].squeeze(1), logits)
        return log_mix(logits, self._cutoff if max(self._cutoffs) >= 0 else None)

    def mixed(self, parameters: Sequence[Tensor], batches: Batches) -> Float[Tensor, "tokens members k"]:
        """Return F of each member, float32."""
        shape = (len(self.members), len(self.states), *self._shape)
        matrices = parameters[0].view(shape).transpose(0, 1) if self._frozen is None else self._frozen
        self._log_weights = self.log_weights(parameters)
        weights, live = self._log_weights.exp().T, self._read
        if max(self._cutoffs) >= 0 and not ragged.on_gpu(weights.device):  # there it would be waited for
            # NaN, of a loss that diverged, is read too.
            live = [i for i, own in enumerate(weights.tolist()) if any(own)]
        read = iter(batches.states([self.states[i] for i in live]))
        activated = ACTIVATIONS.activated(len(live), read, weights.dtype)
        activated = activated.unflatten(1, (len(batches.members), -1))
        if len(live) < len(self.states):
            weights, matrices = (
                torch.stack([each[i] for i in live]) for each in (weights, matrices.unbind())
            )
        masks = self._masks(live, batches, activated.shape[2])
        total = mix_of_members(weights, matrices, activated, batches.members, self._first.eps, masks)
        return self._first.whole(total)

    def _masks(
        self, live: Sequence[int], batches: Batches, tokens: int
    ) -> Float[Tensor, "states members tokens k"] | None:
        """Return what the members' dropout multiplies each f_i by; None where nothing drops out."""
        if not batches.training or not self.dropouts():
            return None
        ps = [each.dropout.p for each in self.members]
        like = self._fixed.new_empty(1, tokens, self._first.width)
        own = (batches.factors(self.dropouts()[i], ps, like).expand(len(ps), -1, -1) for i in live)
        return torch.stack([*own])

    def penalty(self) -> Float[Tensor, " members"] | None:
        """Return lambda * H(p~) of each member, of the weights of the last `mixed`."""
        return None if self._lambda is None else self._lambda * entropies(self._log_weights)

    def dropouts(self) -> list[str]:
        """Return the names of the dropout of each token that acts."""
        acts = any(member.dropout.acts for member in self.members)
        return [f"mix/{state.key}" for state in self.states] if acts else []

    def named(self, weights: Float[Tensor, "members states"]) -> list[dict[str, float]]:
        """Return each member's `weights` as its `diagnostics`."""
        return [self._first.by_state("mix/weight_", own) for own in weights.tolist()]
