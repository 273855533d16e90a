"""DWAtt: each token attends to the layers of the base model (ElNokrashy et al. 2024, equations 3 to 11)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from adalayers.config import POOLED
from adalayers.fusion.fusion import Fusion, Lengths, States
from adalayers.fusion.projections import Projected, ProjectedConfig, starts
from adalayers.states import Pooling, Shape, State
from adalayers.tensors.ragged import sequence_means

KEY_LATENT = 24
"""Width of the layers' static embeddings p_n (table 4)."""
NEGLIGIBLE = 30.0
"""A score so far below a token's highest gets e^-30 of its share: a millionth of what float32 rounds off."""


@dataclass(frozen=True, kw_only=True)
class DWAttConfig(ProjectedConfig):
    """Hyperparameters of DWAtt, next to those of every method and of `ProjectedConfig`.

    attends  tokens: each token to its layers, as published; texts: the mean of a text's tokens does, as in ILSE
             (arXiv 2603.22665), which then compares it with layers as a set and a graph
    """

    fusion: ClassVar[str] = "dwatt"
    token_by_token: ClassVar[bool] = True

    attends: Literal["tokens", "texts"] = "tokens"

    def check(self, shape: Shape) -> None:
        super().check(shape)
        fits = self.attends == "tokens" or (not shape.per_token and self.read_out in POOLED)
        self.require("attends", fits, "tokens but for whole texts with read_out=mean")

    def unused(self, shape: Shape) -> set[str]:
        return super().unused(shape) | ({"positions"} if self.attends == "texts" else set())

    def _pooling(self) -> Pooling | None:
        return "mean" if self.attends == "texts" else super()._pooling()


class Bottleneck(nn.Module):
    """f(x) = W LN(gelu(U x)): U to half the width, W back, both without bias (equation 6, table 4)."""

    def __init__(self, width: int):
        super().__init__()
        half = max(1, width // 2)
        self.down = nn.Linear(width, half, bias=False)
        self.norm = nn.LayerNorm(half)
        self.up = nn.Linear(half, width, bias=False)

    def forward(self, x: Float[Tensor, "tokens width"]) -> Float[Tensor, "tokens width"]:
        return self.up(self.norm(functional.gelu(self.down(x))))


class DWAtt(Fusion, config=DWAttConfig):
    """Attention over layers n, of a token's hidden states z_n as they are or projected (`Projected`):

        k_n = W^K p_n                   p_n ~ N(0, 1) in R^24, drawn once, not trained
        v_n = LN_n(f_n(z_n))            f_n, f^Q: `Bottleneck`s; LN with scale and shift
        q   = 1 + elu(z_L + f^Q(z_L))   L: the deepest layer read
        h   = z_L + softmax(q K^T) V    without 1/sqrt(width), as equation 7 has none

    W^K is affine in the paper. Its shift b is left out: it would add q b to all scores of a token, and their softmax
    would take it away again.

    A state that `without` takes away has neither key nor value; renormalise=False keeps its part of the softmax's sum.
    Where it is the deepest, the deepest that is left takes its place as z_L.
    """

    def __init__(self, config: DWAttConfig, shape: Shape):
        super().__init__(config, shape)
        self.of_texts = config.attends == "texts"
        self.projected = Projected(self.states, shape.width, config.projected_to)
        made = starts((state.key for state in self.states), self._start)
        embeddings, values = zip(*made, strict=True)
        self.embeddings = nn.Buffer(torch.stack(embeddings))
        self.values = nn.ModuleList(values)
        self.query = Bottleneck(self.width)
        self.keys = nn.Linear(KEY_LATENT, self.width, bias=False)

    def _start(self) -> tuple[Tensor, nn.Module]:
        """Return p_n and LN_n after f_n of a layer."""
        return torch.randn(KEY_LATENT), nn.Sequential(Bottleneck(self.width), nn.LayerNorm(self.width))

    def fuse(self, states: States, lengths: Lengths, live: list[State]) -> Float[Tensor, "items width"]:
        """Return h, float32."""
        values = []
        for state in live:
            hidden = sequence_means(states[state].float(), lengths) if self.of_texts else states[state]
            read = self.projected(state, hidden)  # at last z_L
            values.append(self.values[self.states.index(state)](read))
        query = 1 + functional.elu(read + self.query(read))
        # Scores without 1/sqrt(width) are large: half precision would round them by more than their differences.
        with torch.autocast(read.device.type, enabled=False):
            attention = self.attention(query.float())
            return read + torch.einsum("tl,ltk->tk", attention, torch.stack(values).float())

    def attention(self, query: Float[Tensor, "tokens width"]) -> Float[Tensor, "tokens live"]:
        """Return softmax(q K^T), each live state's share of a token's attention (equation 7)."""
        scores = query @ self.keys(self.embeddings).T
        live = [self.states.index(state) for state in self.live()]
        if self._dropped and self._renormalise:
            scores = scores[:, live]
        # What float32 cannot tell from 0 next to the rest becomes 0: its products would be denormal numbers, with which
        # a CPU takes ten times as long for the whole step.
        scores = scores.masked_fill(scores < scores.amax(dim=-1, keepdim=True) - NEGLIGIBLE, -math.inf)
        shares = torch.softmax(scores, dim=-1)
        return shares[:, live] if self._dropped and not self._renormalise else shares

    def weights_at_use(self) -> int:
        """Return all weights, the embeddings of the layers among them."""
        return super().weights_at_use() + self.embeddings.numel()

    def kept_at_use(self, inner: int) -> int:
        """Return a value's width for each layer read: the query that weighs them comes from the last; 0 of texts."""
        return 0 if self.of_texts else len(self.live()) * self.width
