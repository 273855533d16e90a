"""The heads over the mixed states F: one label per sequence, or one per token (thesis section 5.2).

They are of one model, or of several, whose parameters then have a leading dimension of members.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from adalayers.config import POOLED, HeadConfig
from adalayers.states import Shape
from adalayers.tensors.dropout import Dropout
from adalayers.tensors.layers import LayerNorm, Linear, SelfAttention
from adalayers.tensors.ragged import to_device

Mixed = Float[Tensor, "*members batch time k"]
Padding = Bool[Tensor, "... batch time"] | None
"""True where no token is; None: nowhere."""


def mean_of_real(values: Mixed, padding: Padding) -> Float[Tensor, "*members batch k"]:
    """Return the mean over the tokens that are no padding."""
    if padding is None:
        return values.mean(dim=-2)
    real = ~padding.unsqueeze(-1)
    return (values * real).sum(dim=-2) / real.sum(dim=-2)


class Head(nn.Module, ABC):
    """Reads mixed states of width k out, and classifies what it has read.

    Attributes:
        pass_tokens: About as many tokens of padding cost as much as a further pass over a group of sequences.
        positions:   Whether sinusoidal positions are added to the mixed states.
    """

    pass_tokens = 256
    positions = False
    classify: Linear

    @abstractmethod
    def read(self, mixed: Mixed, padding: Padding = None) -> Float[Tensor, "*members batch *time k"]:
        """Return what `classify` takes."""

    def forward(self, mixed: Mixed, padding: Padding = None) -> Float[Tensor, "*members batch *time labels"]:
        """Return logits."""
        return self.classify(self.read(self.placed(mixed), padding))

    def placed(self, mixed: Mixed) -> Mixed:
        """Return mixed states with their positions added, if the head is to know them."""
        if not self.positions:
            return mixed
        return mixed + _positions(*mixed.shape[-2:], mixed.dtype, mixed.device)


class SequenceHead(Head):
    """Self-attention over F, or none -> gelu -> dropout -> mean over the real tokens -> linear (thesis 5.2.1)."""

    def __init__(self, config: HeadConfig, k: int, n_labels: int):
        super().__init__()
        self.attention = SelfAttention(k, config.heads) if config.read_out == "attention" else None
        self.dropout = Dropout(config.dropout)
        self.classify = Linear(k, n_labels)

    def read(self, mixed: Mixed, padding: Padding = None) -> Float[Tensor, "*members batch k"]:
        """Return a vector of each sequence; padding is neither attended to nor averaged."""
        read = mixed if self.attention is None else self.attention(mixed, padding)
        return mean_of_real(self.dropout(functional.gelu(read)), padding)


class PooledHead(Head):
    """Dropout -> linear of one vector for the sequence; of two layers, linear -> tanh of the same width is before.

    The vector is the first or the last token's, which stands for its sequence in models pretrained so (BERT's, or one
    that reads from left to right), or the mean over the real tokens.
    """

    pass_tokens = 1 << 30  # nothing is worked out at padding

    def __init__(self, config: HeadConfig, k: int, n_labels: int):
        super().__init__()
        self.pooling = config.read_out
        self.dropout, self.dropout_before = Dropout(config.dropout), Dropout(config.dropout)
        self.before = Linear(k, k) if config.classifier_layers == 2 else None
        self.classify = Linear(k, n_labels)

    def read(self, mixed: Mixed, padding: Padding = None) -> Float[Tensor, "*members batch k"]:
        """Return a vector of each sequence, which begins with a token; padding, never pooled, follows its last one."""
        pooled = self._pooled(mixed, padding)
        if self.before is not None:
            pooled = torch.tanh(self.before(self.dropout_before(pooled)))
        return self.dropout(pooled)

    def _pooled(self, mixed: Mixed, padding: Padding) -> Float[Tensor, "*members batch k"]:
        if self.pooling == "first-token":
            return mixed[..., 0, :]
        if self.pooling == "mean":
            return mean_of_real(mixed, padding)
        if padding is None:
            return mixed[..., -1, :]
        last = (~padding).sum(dim=-1) - 1
        return mixed.take_along_dim(last.expand(mixed.shape[:-2])[..., None, None], dim=-2).squeeze(-2)


class EncoderLayer(nn.Module):
    """A pre-norm transformer encoder layer with gelu: `nn.TransformerEncoderLayer`, its parameters' names included."""

    def __init__(self, k: int, heads: int, feedforward: int, dropout: float):
        super().__init__()
        self.self_attn = SelfAttention(k, heads, dropout)
        self.linear1 = Linear(k, feedforward)
        self.linear2 = Linear(feedforward, k)
        self.norm1, self.norm2 = LayerNorm(k), LayerNorm(k)
        self.dropout, self.dropout1, self.dropout2 = (Dropout(dropout) for _ in range(3))

    def forward(self, x: Mixed, padding: Padding = None) -> Mixed:
        """Return x + attention, then + feed-forward, each of the normalised input; `padding` is not attended to."""
        x = x + self.dropout1(self.self_attn(self.norm1(x), padding))
        inner = self.dropout(functional.gelu(self.linear1(self.norm2(x))))
        return x + self.dropout2(self.linear2(inner))


class TokenHead(Head):
    """Pre-norm transformer encoder layers over F, or dropout in their place, then linear per token (thesis 5.2.2)."""

    def __init__(self, config: HeadConfig, k: int, n_labels: int):
        super().__init__()
        layers = config.encoder_layers if config.read_out == "attention" else 0
        # Where a token passes through the wide feed-forward, padding costs more.
        self.pass_tokens = 32 if layers else 256
        self.layers = nn.ModuleList(
            EncoderLayer(k, config.heads, config.feedforward, config.dropout) for _ in range(layers)
        )
        self.dropout = Dropout(0.0 if layers else config.dropout)
        self.classify = Linear(k, n_labels)

    def read(self, mixed: Mixed, padding: Padding = None) -> Mixed:
        """Return a vector of each token; those at `padding` mean nothing."""
        for layer in self.layers:
            mixed = layer(mixed, padding)
        return self.dropout(mixed)


def sinusoidal_positions(length: int, k: int) -> Float[Tensor, "length k"]:
    """Return sin and cos of position / 10000^(2i/k), interleaved (Vaswani et al. 2017, section 3.5)."""
    rate = torch.exp(torch.arange(0, k, 2, dtype=torch.float32) * (-math.log(10000.0) / k))
    angles = torch.outer(torch.arange(length, dtype=torch.float32), rate)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :k]


@functools.lru_cache(maxsize=256)
def _positions(length: int, k: int, dtype: torch.dtype, device: torch.device) -> Float[Tensor, "length k"]:
    return to_device(sinusoidal_positions(length, k).to(dtype), device)


def build_head(config: HeadConfig, shape: Shape, width: int) -> Head:
    """Return the head that the task and `config.read_out` ask for, over fused states of `width`."""
    pooled = config.read_out in POOLED
    kind = PooledHead if pooled else TokenHead if shape.per_token else SequenceHead
    head = kind(config, width, shape.n_outputs)
    head.positions = config.positions
    return head
