"""Tokens first, then layers: one aggregation within each layer, one over layers (Meyoyan and Del Corro 2026)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from adalayers.config import MAX_WIDTH, TextVectorConfig, bounded
from adalayers.fusion.fusion import Fusion, Lengths, States
from adalayers.fusion.projections import starts
from adalayers.states import Pooling, Shape, State
from adalayers.tensors.ragged import in_padded_groups, sequence_means

Aggregate = Literal["mean", "gate", "attention"]


@dataclass(frozen=True, kw_only=True)
class TokensFirstConfig(TextVectorConfig):
    """Hyperparameters of tokens first, then layers, next to those of every method.

    aggregate  A of both steps: mean, gate (weights by a learned vector) or attention (self-attention, then the mean)
    k          width of the attention's queries, keys and values, all heads together; published: K/16 or K/32
    """

    fusion: ClassVar[str] = "tokens-first"

    aggregate: Aggregate = "gate"
    k: int = bounded(64, least=1, most=MAX_WIDTH)

    def width(self, shape: Shape) -> int:
        return shape.width

    def check(self, shape: Shape) -> None:
        super().check(shape)
        divides = self.aggregate != "attention" or self.k % self.heads == 0
        self.require("heads", divides, f"a divisor of k = {self.k}")

    def unused(self, shape: Shape) -> set[str]:
        unused = super().unused(shape)
        return unused - {"heads"} if self.aggregate == "attention" else unused | {"k"}

    def _pooling(self) -> Pooling | None:
        return "mean" if self.aggregate == "mean" else None


class TokensFirst(Fusion, config=TokensFirstConfig):
    """Two steps of one kind (arXiv 2601.13288, section 3):

        v_i = A_i(tokens of Z_i), i = 1..l;  v = A(v_1, ..., v_l) in R^K, with rows x of their input

        mean:      the mean
        gate:      sum_t a_t x_t, a = softmax_t(tanh(w . x_t))             w in R^K: (l + 1) K parameters
        attention: mean_t of W_o softmax(Q K^T / sqrt(k / heads)) V        Q, K, V in R^k: (l + 1) 4 K k parameters

    As published, but for the hidden states (there the embeddings too: `hidden_states=with-embeddings`), the largest
    value as a further way to pool, which is left out, and w, which starts at 0 here, as the mean.

    A state that `without` takes away is no row of the second step.
    """

    of_texts = True

    def __init__(self, config: TokensFirstConfig, shape: Shape):
        super().__init__(config, shape)
        self.over_tokens, self.over_layers = None, None
        if config.aggregate != "mean":
            names = [*(state.key for state in self.states), "layers"]
            kind = {"gate": Gate, "attention": Attention}[config.aggregate]
            *of_tokens, of_layers = starts(names, lambda: kind(config, self.width))
            self.over_tokens, self.over_layers = nn.ModuleList(of_tokens), of_layers

    def fuse(self, states: States, lengths: Lengths, live: list[State]) -> Float[Tensor, "batch K"]:
        """Return v, float32."""
        vectors = torch.stack(
            [self._of_tokens(state, states[state].float(), lengths) for state in live], dim=1
        )
        return vectors.mean(dim=1) if self.over_layers is None else self.over_layers(vectors, None).float()

    def _of_tokens(
        self, state: State, hidden: Float[Tensor, "tokens K"], lengths: Lengths
    ) -> Float[Tensor, "batch K"]:
        if self.over_tokens is None:
            return sequence_means(hidden, lengths)
        module = self.over_tokens[self.states.index(state)]
        return in_padded_groups(hidden, lengths, math.inf, module).float()


class Gate(nn.Module):
    """sum_t a_t x_t, a = softmax_t(tanh(w . x_t))."""

    def __init__(self, config: TokensFirstConfig, inner: int):
        super().__init__()
        self.w = nn.Parameter(torch.zeros(inner))

    def forward(
        self, x: Float[Tensor, "batch time K"], padding: Bool[Tensor, "batch time"] | None
    ) -> Float[Tensor, "batch K"]:
        scores = torch.tanh(x @ self.w)
        if padding is not None:
            scores = scores.masked_fill(padding, -torch.inf)
        return (torch.softmax(scores, dim=1).unsqueeze(1) @ x).squeeze(1)


class Attention(nn.Module):
    """Self-attention of an inner width k without biases, and the mean of what it gives over all that is no padding."""

    def __init__(self, config: TokensFirstConfig, inner: int):
        super().__init__()
        self.heads = config.heads
        self.into = nn.Linear(inner, 3 * config.k, bias=False)
        self.out = nn.Linear(config.k, inner, bias=False)

    def forward(
        self, x: Float[Tensor, "batch time K"], padding: Bool[Tensor, "batch time"] | None
    ) -> Float[Tensor, "batch K"]:
        queries, keys, values = self.into(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        mask = None if padding is None else ~padding[:, None, None]
        mixed = functional.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
        mixed = mixed.transpose(1, 2).flatten(-2)
        real = mixed.new_ones(mixed.shape[:2]) if padding is None else (~padding).to(mixed.dtype)
        mean = (mixed * real.unsqueeze(-1)).sum(dim=1) / real.sum(dim=1, keepdim=True)
        return self.out(mean)  # linear: the mean of what it gives of each
