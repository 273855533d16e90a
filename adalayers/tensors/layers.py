"""Layers of one model, or of several at once: parameters and inputs then have a leading dimension of members."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from adalayers.tensors import ragged
from adalayers.tensors.dropout import Dropout

DRAWN = 16
"""On a CPU what drops out of the weights of a shorter sequence is drawn for so many keys: a trial of an earlier version
is repeated with the same draws."""


def linear(x: Float[Tensor, "... i"], weight: Tensor, bias: Tensor) -> Float[Tensor, "... o"]:
    """Return x W^T + b, of W [o, i], or of W [members, o, i] and x [members, ..., i], each with its own."""
    if weight.dim() == 2:
        return functional.linear(x, weight, bias)
    product = torch.baddbmm(bias.unsqueeze(1), x.flatten(1, -2), weight.transpose(1, 2))
    return product.view(*x.shape[:-1], product.shape[-1])


class Linear(nn.Linear):
    """`nn.Linear`, of one model or of several."""

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)


class LayerNorm(nn.LayerNorm):
    """`nn.LayerNorm` of the last dimension, of one model or of several."""

    def forward(self, x: Tensor) -> Tensor:
        if self.weight.dim() == 1:
            return super().forward(x)
        several = (len(x), *[1] * (x.dim() - 2), -1)
        normal = functional.layer_norm(x, self.normalized_shape, eps=self.eps)
        return normal * self.weight.view(several) + self.bias.view(several)


class SelfAttention(nn.MultiheadAttention):
    """`nn.MultiheadAttention` over one sequence, batch first: the same parameters, the same numbers to rounding.

    Its dropout is its own: PyTorch's draws from the global stream.
    """

    def __init__(self, width: int, heads: int, dropout: float = 0.0):
        super().__init__(width, heads, dropout=dropout, batch_first=True)
        self.drop_out = Dropout(dropout)

    def forward(self, x: Tensor, padding: Tensor | None = None) -> Tensor:  # type: ignore[override]
        """Return [batch, time, width] of `x`, the same; `padding` [batch, time] is True where nothing is.

        What is returned at padding means nothing. None: there is no padding. Of several models `x` is
        [members, batch, time, width], and so may `padding` be.
        """
        members, time, width = x.shape[:-3], x.shape[-2], x.shape[-1]
        joint = linear(x, self.in_proj_weight, self.in_proj_bias)
        # Four dimensions, [members * batch, heads, time, each]: PyTorch's quick kernels take no more.
        joint = joint.view(-1, time, 3, self.num_heads, width // self.num_heads).permute(2, 0, 3, 1, 4)
        queries, keys, values = joint
        real = None
        if padding is not None:
            real = ~padding.expand(*members, *padding.shape[-2:]).reshape(-1, 1, 1, time)
        if self.drop_out.drops:
            mixed = self._dropped_out(queries, keys, values, real, members)
        else:
            mixed = functional.scaled_dot_product_attention(queries, keys, values, attn_mask=real)
        return linear(mixed.transpose(1, 2).reshape(x.shape), self.out_proj.weight, self.out_proj.bias)

    def _dropped_out(
        self, queries: Tensor, keys: Tensor, values: Tensor, real: Tensor | None, members: Sequence[int]
    ) -> Tensor:
        """Return what each attends to, [members * batch, heads, time, each], some weights dropped."""
        scores = queries @ keys.transpose(2, 3) / math.sqrt(queries.shape[3])
        if real is not None:
            scores = scores.masked_fill(~real, -math.inf)
        weights = scores.softmax(dim=-1)
        time = weights.shape[-1]
        if not ragged.on_gpu(weights.device) and time < DRAWN:
            weights = functional.pad(weights, (0, DRAWN - time))
        dropped = self.drop_out(weights.view(*members, -1, *weights.shape[1:]))
        return torch.matmul(dropped.view(weights.shape)[..., :time], values)
