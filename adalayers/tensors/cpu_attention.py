"""Self-attention that is quick where sequences are short: PyTorch's own kernels are made for long ones.

On 2 cores, forward and backward, batch 64, 8 heads of width 8: 0.6 of `nn.MultiheadAttention`'s time at 12 tokens,
0.7 at 20, 0.9 at 64, 2.1 times as much at 256.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from adalayers.tensors import ragged
from adalayers.tensors.cpu_dropout import Dropout
from adalayers.tensors.members import linear

WRITTEN_OUT_TOKENS = 64
"""Tokens up to which attention is written out; above, PyTorch's kernel is quicker unless it has to drop out."""
VECTOR = 16
"""Numbers in the CPU's widest register: a softmax over fewer is not vectorised."""


class SelfAttention(nn.MultiheadAttention):
    """`nn.MultiheadAttention` over one sequence, batch first: the same parameters, the same numbers to rounding."""

    def __init__(self, width: int, heads: int, dropout: float = 0.0):
        super().__init__(width, heads, dropout=dropout, batch_first=True)
        self.drop_out = Dropout(dropout)

    def forward(self, x: Tensor, padding: Tensor | None = None) -> Tensor:  # type: ignore[override]
        """Return [batch, time, width] of `x`, the same; `padding` [batch, time] is True where nothing is.

        What is returned at padding means nothing. None: there is no padding. Of several models `x` is
        [members, batch, time, width], and so may `padding` be.
        """
        # PyTorch's own draws from the global stream. Of several models each has its own rate, the first may have none.
        drops = self.training and (self.dropout > 0 or self.drop_out.mask is not None)
        if drops or (not ragged.on_gpu(x.device) and x.shape[-2] <= WRITTEN_OUT_TOKENS):
            return self._written_out(x, padding)
        if x.dim() == 4:
            return self._several(x, padding)
        return super().forward(x, x, x, key_padding_mask=padding, need_weights=False)[0]

    def _several(self, x: Tensor, padding: Tensor | None) -> Tensor:
        """Return what PyTorch's own gives for several models."""
        joint = linear(x, self.in_proj_weight, self.in_proj_bias)
        # Four dimensions: PyTorch's quick kernels take no more.
        joint = joint.view(-1, x.shape[2], 3, self.num_heads, x.shape[3] // self.num_heads)
        queries, keys, values = joint.permute(2, 0, 3, 1, 4)  # each [members * batch, heads, time, each]
        mask = None if padding is None else ~padding.expand(x.shape[:3]).reshape(-1, 1, 1, x.shape[2])
        mixed = functional.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
        return linear(mixed.transpose(1, 2).reshape(x.shape), self.out_proj.weight, self.out_proj.bias)

    def _written_out(self, x: Tensor, padding: Tensor | None) -> Tensor:
        *members, batch, time, width = x.shape
        several = math.prod(members)
        each, n_keys = width // self.num_heads, time if ragged.on_gpu(x.device) else max(time, VECTOR)
        joint = linear(x, self.in_proj_weight, self.in_proj_bias)
        joint = joint.view(several * batch, time, 3, self.num_heads, each).permute(2, 0, 3, 1, 4)
        queries, keys, values = joint.reshape(3, several * batch * self.num_heads, time, each)
        if time < n_keys:
            keys, values = (functional.pad(part, (0, 0, 0, n_keys - time)) for part in (keys, values))
        bias = x.new_zeros(*((1,) if padding is None else padding.shape[:-1]), 1, 1, n_keys)
        bias[..., time:] = -math.inf
        if padding is not None:
            bias[..., 0, 0, :time].masked_fill_(padding, -math.inf)
        bias = bias.expand(*([several] if members else []), batch, self.num_heads, 1, n_keys)
        bias = bias.reshape(-1, 1, n_keys).expand(-1, time, -1)
        scores = torch.baddbmm(bias, queries, keys.transpose(1, 2), alpha=1 / math.sqrt(each))
        weights = self.drop_out(scores.softmax(dim=-1).view(*members, batch, self.num_heads, time, n_keys))
        mixed = torch.bmm(weights.view(-1, time, n_keys), values)
        mixed = mixed.view(several * batch, self.num_heads, time, each).transpose(1, 2).reshape(x.shape)
        return linear(mixed, self.out_proj.weight, self.out_proj.bias)
