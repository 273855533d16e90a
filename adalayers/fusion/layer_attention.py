"""Attention over layers: mix weights that a learned query reads off the states (after arXiv 2603.15031)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from adalayers.config import bounded
from adalayers.fusion.fusion import Fusion, Lengths, States
from adalayers.fusion.projections import Projected, ProjectedConfig, starts
from adalayers.states import Pooling, Shape, State
from adalayers.tensors.ragged import sequence_means

Keys = Literal["tokens", "texts", "static"]


@dataclass(frozen=True, kw_only=True)
class LayerAttentionConfig(ProjectedConfig):
    """Hyperparameters of attention over layers, next to those of every method and of `ProjectedConfig`.

    keys    what the weights depend on. tokens: each token's own states; texts: their means over the token's text;
            static: the layer alone, by N(0, 1) in R^width, drawn once and not trained: a mix by weights that do not
            depend on the input, with as many parameters, and steps of the same size, as where they do
    mix_lr  learning rate of w, which has no weight decay (None: that of lr)
    """

    fusion: ClassVar[str] = "layer-attention"
    token_by_token: ClassVar[bool] = True

    keys: Keys = "tokens"
    mix_lr: float | None = bounded(None, above=0)

    def _pooling(self) -> Pooling | None:
        return None if self.keys == "texts" else super()._pooling()


class LayerAttention(Fusion, config=LayerAttentionConfig):
    """The mix of a token's hidden states x_i, i = 1..l, as they are or projected (`Projected`):

        a_i = softmax_i(w . RMSNorm(key_i))    w in R^width, initialised to zeros; RMSNorm without scale
        F   = sum_i a_i x_i

    w is all that it has more than the uniform mix, as which it starts. In Attention Residuals (Kimi Team 2026) the
    input of a layer within a language model is such a sum over the outputs of earlier layers, with key_i = x_i: that is
    `keys=tokens`. A fusion of frozen hidden states, the other keys, projections and an RMSNorm without scale are ours.

    A state that `without` takes away has no score: the weights of the rest sum to 1 either way.
    """

    undecayed = ("w",)

    def __init__(self, config: LayerAttentionConfig, shape: Shape):
        super().__init__(config, shape)
        self.projected = Projected(self.states, shape.width, config.projected_to)
        self.keys = config.keys
        self.w = nn.Parameter(torch.zeros(self.width))
        names = [state.key for state in self.states] if self.keys == "static" else []
        drawn = starts(names, lambda: torch.randn(self.width))
        self.static = nn.Buffer(torch.stack(drawn)) if drawn else None

    def fuse(self, states: States, lengths: Lengths, live: list[State]) -> Float[Tensor, "tokens width"]:
        """Return F, float32."""
        read = torch.stack([self.projected(state, states[state]) for state in live])
        with torch.autocast(read.device.type, enabled=False):
            return torch.einsum("lt,ltk->tk", self.attention(read, lengths, live), read)

    def attention(
        self, read: Float[Tensor, "live tokens width"], lengths: Lengths, live: Sequence[State]
    ) -> Float[Tensor, "live some"]:
        """Return a of each token, or of all alike."""
        if self.static is not None:
            scores = self._scores(self.static[[self.states.index(state) for state in live]]).unsqueeze(1)
        elif self.keys == "texts":
            means = torch.stack([self._scores(sequence_means(state, lengths)) for state in read])
            scores = means.repeat_interleave(lengths.to(read.device), dim=1)
        else:
            scores = self._scores(read)
        return torch.softmax(scores, dim=0)

    def _scores(self, keys: Float[Tensor, "*some width"]) -> Float[Tensor, "*some"]:
        return functional.rms_norm(keys, (self.width,)) @ self.w

    def diagnostics(self) -> dict[str, float]:
        """Return ||w||: 0 is the uniform mix; static weights themselves, `layer_attention/weight_<state>`."""
        noted = {"layer_attention/norm": float(self.w.detach().norm())}
        if self.static is None:
            return noted
        weights = torch.softmax(self._scores(self.static), dim=0).tolist()
        return noted | self.by_state("layer_attention/weight_", weights)

    def kept_at_use(self, inner: int) -> int:
        """Return the width and 2: a softmax whose query is known adds up while states come in.

        Of texts' keys it is the width of each layer read: their means are known at the end.
        """
        return len(self.live()) * self.width if self.keys == "texts" else self.width + 2
