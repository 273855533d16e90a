"""Layers as a set: a DeepSet over one vector per layer (Ulanovski et al. 2026, ILSE, arXiv 2603.22665)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from adalayers.config import TextVectorConfig, WidthConfig
from adalayers.fusion.fusion import Fusion, Lengths, States
from adalayers.states import Pooling, Shape, State
from adalayers.tensors.ragged import pooled


@dataclass(frozen=True, kw_only=True)
class LayerSetConfig(TextVectorConfig, WidthConfig):
    """Hyperparameters of layers as a set, of one vector each: h_i = act(W pool_t(Z_i) + b).

    k              width of h_i and of what follows; published: 256
    token_pooling  what stands for the tokens of a text in each layer: their mean, the first or the last one's state
    layer_pooling  how the layers become one vector: mean or sum
    activation     relu, or none: all is linear but norms
    """

    fusion: ClassVar[str] = "layer-set"

    token_pooling: Pooling = "mean"
    layer_pooling: Literal["mean", "sum"] = "mean"
    activation: Literal["relu", "none"] = "relu"

    def _pooling(self) -> Pooling | None:
        return self.token_pooling


class LayerVectors(nn.Module):
    """h_i = act(W pool_t(Z_i) + b) in R^k, with one W in R^{k x K} and b for all layers.

    Args:
        inner:   K.
        config:  How tokens and layers are pooled, and act.
    """

    def __init__(self, inner: int, config: LayerSetConfig):
        super().__init__()
        self.pooling, self.layer_pooling = config.token_pooling, config.layer_pooling
        self.project = nn.Linear(inner, config.k)
        self.act = nn.ReLU() if config.activation == "relu" else nn.Identity()

    def forward(self, states: States, lengths: Lengths, live: list[State]) -> Float[Tensor, "batch live k"]:
        """Return the vectors of each text, one state at a time: its pooled tokens are all that is kept."""
        vectors = [pooled(states[state].float(), lengths, self.pooling) for state in live]
        return self.act(self.project(torch.stack(vectors, dim=1)))

    def pooled(self, vectors: Float[Tensor, "batch layers k"]) -> Float[Tensor, "batch k"]:
        """Return the mean or sum over the layers, float32."""
        vectors = vectors.float()
        return vectors.mean(dim=1) if self.layer_pooling == "mean" else vectors.sum(dim=1)


class LayerSet(Fusion, config=LayerSetConfig):
    """The paper's Set-Encoder, a DeepSet in which no layer knows which one it is:

        h_i = relu(W mean_t(Z_i) + b)      W in R^{k x K}, one for all layers
        v   = relu(V pool_i(h_i) + c)      V in R^{k x k}; pool: mean or sum over layers

    As in the released code with one layer before and one behind the pool; its inner dropout is left out, that of the
    head stays. A layer that `without` takes away is no element of the set.
    """

    of_texts = True

    def __init__(self, config: LayerSetConfig, shape: Shape):
        super().__init__(config, shape)
        self.layers = LayerVectors(shape.width, config)
        self.after = nn.Linear(config.k, config.k)

    def fuse(self, states: States, lengths: Lengths, live: list[State]) -> Float[Tensor, "batch k"]:
        """Return v, float32."""
        vectors = self.layers(states, lengths, live)
        return self.layers.act(self.after(self.layers.pooled(vectors))).float()
