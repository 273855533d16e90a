"""Layers as a set: a DeepSet over one vector per layer (Ulanovski et al. 2026, ILSE, arXiv 2603.22665)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor, nn

from adalayers.fusion.fusion import Lengths, States
from adalayers.fusion.text_vectors import LayersConfig, LayerVectors, TextVector, pooled_layers
from adalayers.states import Shape, State


@dataclass(frozen=True, kw_only=True)
class LayerSetConfig(LayersConfig):
    """Hyperparameters of layers as a set: those of `LayersConfig`."""

    fusion: ClassVar[str] = "layer-set"

    def build(self, shape: Shape) -> LayerSet:
        return LayerSet(self, shape)


class LayerSet(TextVector):
    """The paper's Set-Encoder, a DeepSet in which no layer knows which one it is:

        h_i = relu(W mean_t(Z_i) + b)      W in R^{k x K}, one for all layers
        v   = relu(V pool_i(h_i) + c)      V in R^{k x k}; pool: mean or sum over layers

    As in the released code with one layer before and one behind the pool; its inner dropout is left out, that of the
    head stays. A layer that `without` takes away is no element of the set.
    """

    def __init__(self, config: LayerSetConfig, shape: Shape):
        super().__init__(config.states(shape), config.k)
        self.layers, self.pooling = LayerVectors(shape.width, config), config.layer_pooling
        self.after = nn.Linear(config.k, config.k)

    def fuse(self, states: States, lengths: Lengths, live: list[State]) -> Float[Tensor, "batch k"]:
        """Return v, float32."""
        vectors = self.layers(states, lengths, live)
        return self.layers.act(self.after(pooled_layers(vectors, self.pooling))).float()
