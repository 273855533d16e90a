"""Heinsen routing: the vectors of all layers are routed to one score per class (Heinsen 2022; thesis section 3.3)."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from adalayers.config import bounded
from adalayers.fusion.fusion import Fusion, Lengths, States
from adalayers.fusion.projections import NORM_EPS, Projected, ProjectedConfig
from adalayers.states import Shape, State
from adalayers.tensors.ragged import in_padded_groups

ITERATIONS = 2
PASS_TOKENS = 64
"""About as many tokens of padding cost as much as routing a group of sequences apart."""


@dataclass(frozen=True, kw_only=True)
class RoutingConfig(ProjectedConfig):
    """Hyperparameters of Heinsen routing, next to those of every method.

    hidden_vectors  0: straight to the scores; more: a text's vectors are first routed to so many of the same width,
                    and these to as many again, as in the published classifier, which has 64
    """

    fusion: ClassVar[str] = "routing"
    own_read_out: ClassVar[bool] = True
    least_outputs: ClassVar[int] = 2  # they compete for what is routed

    hidden_vectors: int = bounded(0, least=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("hidden_vectors", self.hidden_vectors != 1, "0, or at least 2")

    def width(self, shape: Shape) -> int:
        return shape.n_outputs

    def unused(self, shape: Shape) -> set[str]:
        return super().unused(shape) | ({"hidden_vectors"} if shape.per_token else set())


class Routing(nn.Module):
    """Vectors x_i in R^d, i = 1..n, routed to m vectors y_j in R^h that explain them (Heinsen 2022, sections 2 and 3):

        A  a_i  = w_A . x_i n^-1/2 + b_A                      how active an input is
        F  V_ij = ((x_i n^-1/2) * f_j) F + c_j                its vote for output j; F is shared, f_j is j's own
        E  R_ij = 1/m, then softmax over j of log sigmoid(s_j x_i . p_j + t_j) with p_j = (N(y_j) G) * g_j + q_j,
                  what output j predicts of every input
        D  use_ij = sigmoid(a_i) R_ij,  ignore_ij = sigmoid(a_i) - use_ij
        M  phi_ij = beta_use_ij use_ij - beta_ignore_ij ignore_ij,  y_j = sum_i phi_ij V_ij

    E, D and M are repeated twice, and N normalises at the end too where h > 1: of a single number nothing would be
    left. Votes are never held: sum_i phi_ij x_i comes first.

    Args:
        n: None where the number of inputs varies: w_A, b_A, s and t are then shared by all, and both beta are linear in
           x_i; else each input has its own.
    """

    def __init__(self, d: int, m: int, h: int, n: int | None = None):
        super().__init__()
        rows = 1 if n is None else n
        self.h = h
        self.score = nn.Parameter(2 * d**-0.5 * torch.randn(rows, d))
        self.score_bias = nn.Parameter(torch.zeros(rows))
        self.vote_scale = nn.Parameter(torch.randn(m, d))
        self.vote = nn.Parameter(2 * d**-0.5 * torch.randn(d, h))
        self.vote_bias = nn.Parameter(torch.zeros(m, h))
        self.predict = nn.Parameter(h**-0.5 * torch.randn(h, d))
        self.predict_scale = nn.Parameter(torch.randn(m, d))
        self.predict_bias = nn.Parameter(torch.zeros(m, d))
        self.similarity = nn.Parameter(d**-0.5 * torch.randn(rows, m))
        self.similarity_bias = nn.Parameter(torch.zeros(rows, m))
        self.betas = nn.Linear(d, 2 * m) if n is None else None
        self.beta = nn.Parameter(torch.randn(n, 2 * m)) if n is not None else None

    def forward(
        self,
        x: Float[Tensor, "batch n d"],
        counts: Float[Tensor, " batch"],
        padding: Bool[Tensor, "batch n"] | None = None,
    ) -> tuple[Float[Tensor, "batch m h"], Float[Tensor, "batch n m"]]:
        """Return y and phi; `counts` are how many inputs are real, phi of the others is 0."""
        scale = counts.rsqrt().view(-1, 1)
        active, beta = self._scores(x)
        active = torch.sigmoid(active * scale + self.score_bias)
        if padding is not None:
            active = active.masked_fill(padding, 0.0)
        active = active.unsqueeze(2)
        beta_use, beta_ignore = beta.chunk(2, dim=-1)
        share: Tensor | float = 1 / len(self.vote_scale)
        for last in [False] * (ITERATIONS - 1) + [True]:
            use = active * share
            phi = beta_use * use - beta_ignore * (active - use)
            pooled = phi.transpose(1, 2) @ x * scale.unsqueeze(2)
            out = (pooled * self.vote_scale) @ self.vote
            out = out + phi.sum(dim=1).unsqueeze(2) * self.vote_bias
            if self.h > 1:
                out = functional.layer_norm(out, (self.h,), eps=NORM_EPS)
            if not last:
                predicted = (out @ self.predict) * self.predict_scale + self.predict_bias
                product = (predicted @ x.transpose(1, 2)).transpose(1, 2)
                similarity = product * self.similarity + self.similarity_bias
                share = torch.softmax(functional.logsigmoid(similarity), dim=2)
        return out, phi

    def _scores(self, x: Float[Tensor, "batch n d"]) -> tuple[Float[Tensor, "batch n"], Tensor]:
        """Return w_A . x_i, and both beta side by side, [batch, n, 2 m] or [n, 2 m]."""
        if self.betas is None:
            assert self.beta is not None
            return (x * self.score).sum(dim=2), self.beta
        # One product: reading all vectors is what costs.
        both = functional.linear(x, torch.cat([self.score, self.betas.weight]))
        return both[:, :, 0], both[:, :, 1:] + self.betas.bias


class RoutedLayers(Fusion, config=RoutingConfig):
    """The vectors of all l layers and all tokens of a text, routed to one score per class (thesis section 3.3):

        x_ti = N(Z_i)_t * w_i + b_i          w_i, b_i in R^d, the layer's own; they start at 1 and 0
        out  = Routing({x_ti})               in R^{labels x 1}

    d is K, as published, or k: N(Z_i) is then f_i = N(gelu(Z_i) W_i^T) of the layer mix. The published classifier
    routes three times, through two rows of 64 hidden vectors of the same width, and leaves the last one,
    whose vectors are the scores, without normalisation. Its vectors are those of the embeddings and all layers, here
    those of the hidden states chosen.

    Of a task with labels per word each token's l vectors are routed by themselves, straight to a score per label: our
    extension, of which the paper says nothing.

    All layers are needed at once: their l vectors per token are held until the second iteration has read them.
    """

    def __init__(self, config: RoutingConfig, shape: Shape):
        super().__init__(config, shape)
        self.of_texts, labels = not shape.per_token, shape.n_outputs
        hidden = config.hidden_vectors if self.of_texts else 0
        self.read = Projected(self.states, shape.width, config.projected_to)
        width = self.read.width
        self.scale = nn.Parameter(torch.ones(len(self.states), width))
        self.shift = nn.Parameter(torch.zeros(len(self.states), width))
        self.first = Routing(width, hidden or labels, width if hidden else 1)
        self.rest = nn.ModuleList(
            [Routing(width, hidden, width, hidden), Routing(width, labels, 1, hidden)] if hidden else []
        )
        self._credit: dict[State, Tensor] = {}

    def fuse(self, states: States, lengths: Lengths, live: list[State]) -> Float[Tensor, "items labels"]:
        """Return the scores of each sequence, or of each token, float32."""
        vectors = torch.stack([self._vectors(state, states[state]) for state in live], dim=1)
        if self.training:
            self._credit = {}
        tokens = lengths if self.of_texts else torch.ones(len(vectors), dtype=torch.long)
        routed = functools.partial(self._routed, live)
        with torch.autocast(vectors.device.type, enabled=False):
            return in_padded_groups(vectors.flatten(1), tokens, PASS_TOKENS, routed)

    def _vectors(self, state: State, hidden: Float[Tensor, "tokens K"]) -> Float[Tensor, "tokens d"]:
        """Return x of one layer, float32."""
        read, position = self.read(state, hidden), self.states.index(state)
        scale, shift = self.scale[position], self.shift[position]
        if self.read.project is None:
            return functional.layer_norm(read, (self.read.width,), scale, shift, eps=NORM_EPS)
        return read * scale + shift  # f_i is normalised already

    def _routed(
        self, live: list[State], rows: Tensor, padding: Bool[Tensor, "batch time"] | None
    ) -> Float[Tensor, "batch labels"]:
        """Return the scores of sets of vectors, those of a token's layers side by side; note their credit."""
        x = rows.view(len(rows), -1, self.read.width)
        layers = len(live) if self._renormalise else len(self.states)
        counts = x.new_full((len(x),), layers * rows.shape[1])
        if padding is not None:
            counts = counts - layers * padding.sum(dim=1)
            padding = padding.repeat_interleave(len(live), dim=1)
        y, credit = self.first(x, counts, padding)
        for routing in self.rest:
            y, phi = routing(y, counts.new_full(counts.shape, y.shape[1]))
            credit = credit @ phi
        if not self.training:
            by_layer = credit.detach().abs().sum(dim=2).view(-1, len(live)).sum(dim=0)
            for state, layer_credit in zip(live, by_layer, strict=True):
                self._credit[state] = self._credit.get(state, 0) + layer_credit
        return y.squeeze(2)

    def diagnostics(self) -> dict[str, float]:
        """Return by state its share of the credit, sum |phi| over all inputs and outputs, `routing/credit_<state>`.

        It follows from the input: it is that of all that was evaluated since the last step of training, so there is
        none before, nor while training. Through hidden vectors it is the product of the routings' phi (Heinsen 2022,
        appendix A).
        """
        if self.training or not self._credit:
            return {}
        total = float(sum(self._credit.values()))
        return {f"routing/credit_{state.name}": float(part) / total for state, part in self._credit.items()}

    def kept_at_use(self, inner: int) -> int:
        """Return l * d: the second iteration reads all vectors again."""
        return len(self.live()) * self.read.width
