"""Self-attention that is quick where sequences are short: PyTorch's own kernels are made for long ones.

On 2 cores, forward and backward, batch 64, 8 heads of width 8: 0.6 of `nn.MultiheadAttention`'s time at 12 tokens,
0.7 at 20, 0.9 at 64, 2.1 times as much at 256.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

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
        members, time, width = x.shape[:-3], x.shape[-2], x.shape[-1]
        joint = linear(x, self.in_proj_weight, self.in_proj_bias)
        # Four dimensions, [members * batch, heads, time, each]: PyTorch's quick kernels take no more.
        joint = joint.view(-1, time, 3, self.num_heads, width // self.num_heads).permute(2, 0, 3, 1, 4)
        queries, keys, values = joint
        if padding is not None:
            padding = padding.expand(*members, *padding.shape[-2:]).reshape(-1, 1, 1, time)
        # PyTorch's own draws from the global stream. Of several models each has its own rate, the first may have none.
        drops = self.training and (self.dropout > 0 or self.drop_out.mask is not None)
        if drops or (not ragged.on_gpu(x.device) and time <= WRITTEN_OUT_TOKENS):
            mixed = self._written_out(queries, keys, values, padding, members)
        else:
            mask = None if padding is None else ~padding
            mixed = functional.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
        return linear(mixed.transpose(1, 2).reshape(x.shape), self.out_proj.weight, self.out_proj.bias)

    def _written_out(
        self, queries: Tensor, keys: Tensor, values: Tensor, padding: Tensor | None, members: Sequence[int]
    ) -> Tensor:
        """Return what each attends to, [members * batch, heads, time, each]."""
        batch, heads, time, each = queries.shape
        n_keys = time if ragged.on_gpu(queries.device) else max(time, VECTOR)
        bias = queries.new_zeros(1 if padding is None else batch, 1, 1, n_keys)
        bias[..., time:] = -math.inf
        if padding is not None:
            bias[..., :time].masked_fill_(padding, -math.inf)
        bias = bias.expand(batch, heads, 1, n_keys).reshape(-1, 1, n_keys).expand(-1, time, -1)
        if time < n_keys:
            keys, values = (functional.pad(part, (0, 0, 0, n_keys - time)) for part in (keys, values))
        queries, keys, values = (part.reshape(batch * heads, -1, each) for part in (queries, keys, values))
        scores = torch.baddbmm(bias, queries, keys.transpose(1, 2), alpha=1 / math.sqrt(each))
        weights = self.drop_out(scores.softmax(dim=-1).view(*members, -1, heads, time, n_keys))
        return torch.bmm(weights.view(-1, time, n_keys), values).view(batch, heads, time, each)
