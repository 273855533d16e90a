"""Extra transformer layers on the last hidden state, the deeper baseline of ElNokrashy et al. 2024 (section 4.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from adalayers.config import bounded
from adalayers.fusion.fusion import Fusion, Lengths, States
from adalayers.fusion.projections import Projected, ProjectedConfig
from adalayers.states import Settings, Shape, State, chosen_streams
from adalayers.tensors.dropout import Dropout
from adalayers.tensors.layers import SelfAttention
from adalayers.tensors.ragged import in_padded_groups

PASS_TOKENS = 32
"""About as many tokens of padding cost as much as a further pass of the layers over a group of sequences."""
HEAD_WIDTH = 64
"""Width of an attention head in RoBERTa and BERT, base and large."""
BASE_LAYERS = 12
"""Most layers of a base model that gets one more; a deeper one gets two (table 2)."""


@dataclass(frozen=True, kw_only=True)
class ExtraLayersConfig(ProjectedConfig):
    """Hyperparameters of the extra layers, next to those of every method.

    added_layers  how many; None: 1 on base models of at most 12 layers, 2 on deeper ones, as published
    k, own_width  the last hidden state is projected to k, and the layers have `heads` attention heads, which divide k;
                  or it is read as it is, and they have heads of width 64, as the base model's
    dropout       is theirs too
    """

    fusion: ClassVar[str] = "extra-layers"

    added_layers: int | None = bounded(None, least=1, most=2**8)

    def unused(self, shape: Shape) -> set[str]:
        return super().unused(shape) - (set() if self.own_width else {"heads"})

    def resolved(self, shape: Shape) -> Settings:
        return {**super().resolved(shape), "added_layers": self.n_layers(shape)}

    def n_layers(self, shape: Shape) -> int:
        """Return the number of layers added, by default as published for models of this depth."""
        published = 1 if chosen_streams(self.stream, shape)[-1].layers <= BASE_LAYERS else 2
        return self.added_layers or published

    def check(self, shape: Shape) -> None:
        super().check(shape)
        divides = self.own_width or self.k % self.heads == 0
        self.require("heads", divides, f"a divisor of the layers' width, {self.k}")


def own_heads(width: int) -> int:
    """Return how many attention heads go with a width: of width 64 each, or the next wider that divides it."""
    return next(heads for heads in range(max(1, width // HEAD_WIDTH), 0, -1) if width % heads == 0)


class PostNormLayer(nn.Module):
    """A transformer encoder layer as RoBERTa's: LN(x + attention), then LN(x + feed-forward), gelu, four times as wide.

    It has 12 d^2 + 13 d parameters at width d, and PyTorch's starts, which are as wide as RoBERTa's at its width.
    """

    def __init__(self, width: int, heads: int, dropout: float):
        super().__init__()
        self.attention = SelfAttention(width, heads, dropout)
        self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.dropout = Dropout(dropout)

    def forward(
        self, x: Float[Tensor, "batch time width"], padding: Bool[Tensor, "batch time"] | None
    ) -> Float[Tensor, "batch time width"]:
        """Return what the layer makes of `x`; `padding` is not attended to, and what stands there means nothing."""
        x = self.norm1(x + self.dropout(self.attention(x, padding)))
        return self.norm2(x + self.dropout(self.narrow(functional.gelu(self.widen(x)))))


class ExtraLayers(Fusion, config=ExtraLayersConfig):
    """Post-norm transformer encoder layers over the last hidden state, as it is or projected (`Projected`)."""

    def __init__(self, config: ExtraLayersConfig, shape: Shape):
        super().__init__(config, shape, config.states(shape)[-1:])
        heads = own_heads(shape.width) if config.own_width else config.heads
        self.projected = Projected(self.states, shape.width, config.projected_to)
        made = (PostNormLayer(self.width, heads, config.dropout) for _ in range(config.n_layers(shape)))
        self.layers = nn.ModuleList(made)

    def fuse(self, states: States, lengths: Lengths, live: list[State]) -> Float[Tensor, "tokens width"]:
        """Return the last layer's output, float32."""
        read = self.projected(live[0], states[live[0]])
        return in_padded_groups(read, lengths, PASS_TOKENS, self._padded_outputs)

    def _padded_outputs(
        self, rows: Float[Tensor, "batch time width"], padding: Tensor | None
    ) -> Float[Tensor, "batch time width"]:
        """Return what the layers make of a group of sequences that are padded to one length."""
        for layer in self.layers:
            rows = layer(rows, padding)
        return rows.float()

    def kept_at_use(self, inner: int) -> int:
        """Return the layers' width: the last hidden state is read as it comes."""
        return self.width
