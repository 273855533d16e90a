"""What fusions have in common that make one vector of a text: how their configuration and read-out differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from adalayers.config import MAX_WIDTH, POOLED, TrialConfig, bounded
from adalayers.fusion.fusion import Fusion, Lengths, States
from adalayers.states import Head, Pooling, Settings, Shape, State
from adalayers.tensors.ragged import pooled


@dataclass(frozen=True, kw_only=True)
class TextVectorConfig(TrialConfig):
    """What methods have in common that give one vector of a text: texts only, dropout and a linear layer read it.

    read_out  one of the pooled ones, which all say the same of one vector
    """

    tasks: ClassVar[tuple[Head, ...]] = ("sequence",)

    read_out: Literal["attention", "linear", "mean", "first-token", "last-token"] = "mean"

    def check(self, shape: Shape) -> None:
        super().check(shape)
        wanted = f"mean with fusion={self.fusion}, which gives one vector of a text"
        self.require("read_out", self.read_out in POOLED, wanted)

    def unused(self, shape: Shape) -> set[str]:
        return super().unused(shape) | {"positions"}

    def resolved(self, shape: Shape) -> Settings:
        return {**super().resolved(shape), "read_out": "mean"}


@dataclass(frozen=True, kw_only=True)
class LayersConfig(TextVectorConfig):
    """Hyperparameters of methods whose inputs are one vector of each layer, h_i = act(W pool_t(Z_i) + b).

    k              width of h_i and of what follows; published: 256
    token_pooling  what stands for the tokens of a text in each layer: their mean, the first or the last one's state
    layer_pooling  how the layers become one vector: mean or sum
    activation     relu, or none: all is linear but norms
    """

    k: int = bounded(64, least=1, most=MAX_WIDTH)
    token_pooling: Pooling = "mean"
    layer_pooling: Literal["mean", "sum"] = "mean"
    activation: Literal["relu", "none"] = "relu"

    def width(self, shape: Shape) -> int:
        return self.k

    def _pooling(self) -> Pooling | None:
        return self.token_pooling


class TextVector(Fusion):
    """A fusion that gives one vector of a text, [batch, width]."""

    gives: Literal["tokens", "sequence", "logits"] = "sequence"

    def kept_at_use(self, inner: int) -> int:
        """Return 0: a token adds to its text's vector of each layer and is done with."""
        return 0


class LayerVectors(nn.Module):
    """h_i = act(W pool_t(Z_i) + b) in R^k, with one W in R^{k x K} and b for all layers.

    Args:
        inner:   K.
        config:  How tokens are pooled, and act.
    """

    def __init__(self, inner: int, config: LayersConfig):
        super().__init__()
        self.pooling, self.project = config.token_pooling, nn.Linear(inner, config.k)
        self.act = nn.ReLU() if config.activation == "relu" else nn.Identity()

    def forward(self, states: States, lengths: Lengths, live: list[State]) -> Float[Tensor, "batch live k"]:
        """Return the vectors of each text, one state at a time: its pooled tokens are all that is kept."""
        vectors = [pooled(states[state].float(), lengths, self.pooling) for state in live]
        return self.act(self.project(torch.stack(vectors, dim=1)))


def pooled_layers(
    vectors: Float[Tensor, "batch layers k"], pooling: Literal["mean", "sum"]
) -> Float[Tensor, "batch k"]:
    """Return the mean or sum over the layers, float32."""
    vectors = vectors.float()
    return vectors.mean(dim=1) if pooling == "mean" else vectors.sum(dim=1)
