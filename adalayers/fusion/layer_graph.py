"""Layers as a graph: messages between layers, full or on a Cayley graph (Ulanovski et al. 2026, arXiv 2603.22665)."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from adalayers.config import bounded
from adalayers.fusion.fusion import Fusion, Lengths, States
from adalayers.fusion.layer_set import LayerSetConfig, LayerVectors
from adalayers.states import Shape, State

Graph = Literal["cayley", "full"]


@dataclass(frozen=True, kw_only=True)
class LayerGraphConfig(LayerSetConfig):
    """Hyperparameters of layers as a graph, next to those of layers as a set.

    graph   cayley: of SL(2, Z_n) with the smallest n whose graph has a place for every layer; full: all to all
    rounds  how often messages are passed; published: 1 or 2
    """

    fusion: ClassVar[str] = "layer-graph"

    graph: Graph = "cayley"
    rounds: int = bounded(2, least=1, most=16)


def cayley_graph(n: int) -> Float[np.ndarray, "places places"]:
    """Return which elements of SL(2, Z_n) are neighbours: those that a generator takes to each other.

    Elements are 2 x 2 matrices of determinant 1 modulo n; generators add or subtract one row's other. Places are in
    breadth-first order from the identity. Every place has 4 neighbours, of n = 2, where both signs agree, 2.
    """
    generators = ((1, 1, 0, 1), (1, n - 1, 0, 1), (1, 0, 1, 1), (1, 0, n - 1, 1))
    places = {(1, 0, 0, 1): 0}
    edges: list[tuple[int, int]] = []
    for element in (queue := [*places]):
        a, b, c, d = element
        for p, q, r, s in generators:
            product = ((a * p + b * r) % n, (a * q + b * s) % n, (c * p + d * r) % n, (c * q + d * s) % n)
            if product not in places:
                places[product] = len(places)
                queue.append(product)
            edges.append((places[element], places[product]))
    graph = np.zeros((len(places), len(places)), dtype=np.float32)
    graph[tuple(np.array(edges).T)] = 1
    return graph


def neighbours(graph: Graph, layers: int) -> Float[np.ndarray, "places places"]:
    """Return the graph for so many layers; a Cayley graph may have more places."""
    if graph == "full":
        return 1 - np.eye(layers, dtype=np.float32)
    return next(made for n in itertools.count(2) if len(made := cayley_graph(n)) >= layers)


class LayerGraph(Fusion, config=LayerGraphConfig):
    """The paper's FC-Encoder and Cayley-Encoder: a graph isomorphism network whose nodes are layers.

        h_i = relu(W mean_t(Z_i) + b)                                      W in R^{k x K}, one for all layers
        h_i = LN_r(relu(V_r ((1 + e_r) h_i + sum_{j ~ i} h_j) + c_r))      r = 1..rounds; e_r a number, from 0
        v   = pool_i(h_i)                                                  mean or sum over layers

    Layer i has the i-th place of the graph. Places beyond the layers start at relu(b), the vector of a mean of 0, pass
    messages on and are left out of the pool, as in the released code. There, edges of a Cayley graph count twice; here
    once. Its graph convolutions (no inner layer) and inner dropout are left out; that of the head stays.

    The place of a layer that `without` takes away is one beyond the layers.
    """

    of_texts = True
    undecayed = ("eps",)

    def __init__(self, config: LayerGraphConfig, shape: Shape):
        super().__init__(config, shape)
        self.layers = LayerVectors(shape.width, config)
        graph = torch.tensor(neighbours(config.graph, len(self.states)))
        self.graph = nn.Buffer(graph, persistent=False)
        self.eps = nn.Parameter(torch.zeros(config.rounds))
        self.rounds = nn.ModuleList(nn.Linear(config.k, config.k) for _ in range(config.rounds))
        self.norms = nn.ModuleList(nn.LayerNorm(config.k) for _ in range(config.rounds))

    def fuse(self, states: States, lengths: Lengths, live: list[State]) -> Float[Tensor, "batch k"]:
        """Return v, float32."""
        vectors = self.layers(states, lengths, live)
        places = torch.tensor([self.states.index(state) for state in live], device=vectors.device)
        empty = self.layers.act(self.layers.project.bias).to(vectors.dtype)
        nodes = empty.expand(len(vectors), len(self.graph), -1).index_copy(1, places, vectors)
        for eps, linear, norm in zip(self.eps, self.rounds, self.norms, strict=True):
            nodes = norm(self.layers.act(linear((1 + eps) * nodes + self.graph @ nodes)))
        return self.layers.pooled(nodes.index_select(1, places))

    @torch.no_grad()
    def diagnostics(self) -> dict[str, float]:
        """Return e of each round, `layer_graph/eps_<round>`."""
        return {f"layer_graph/eps_{r}": eps for r, eps in enumerate(self.eps.tolist(), start=1)}
