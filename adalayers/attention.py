"""Self-attention that is quick where sequences are short: PyTorch's own kernels are made for long ones."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from adalayers.dropout import kept

SHORT = 64
"""Tokens up to which attention is written out; above, PyTorch's kernel is quicker unless it has to drop out."""
VECTOR = 16
"""Numbers in the CPU's widest register: a softmax over fewer is not vectorised."""


class SelfAttention(nn.MultiheadAttention):
    """`nn.MultiheadAttention` over one sequence, batch first: the same parameters, the same numbers to rounding."""

    def __init__(self, width: int, heads: int, dropout: float = 0.0):
        super().__init__(width, heads, dropout=dropout, batch_first=True)

    def forward(self, x: Tensor, padding: Tensor | None = None) -> Tensor:  # type: ignore[override]
        """Return [batch, time, width] of `x`, the same; `padding` [batch, time] is True where nothing is.

        What is returned at padding means nothing. None: there is no padding.
        """
        dropout = self.dropout if self.training else 0.0
        if x.device.type == "cpu" and (x.shape[1] <= SHORT or dropout > 0):
            return ShortAttention.apply(
                x,
                self.in_proj_weight,
                self.in_proj_bias,
                self.out_proj.weight,
                self.out_proj.bias,
                self.num_heads,
                padding,
                dropout,
            )
        return super().forward(x, x, x, key_padding_mask=padding, need_weights=False)[0]


class ShortAttention(torch.autograd.Function):
    """Multi-head self-attention in one autograd node; each operation is over all heads of all sequences.

    apply(x, in_weight, in_bias, out_weight, out_bias, heads, padding, dropout): `nn.MultiheadAttention`'s
    parameters; x [batch, time, width], padding [batch, time] or None -> [batch, time, width]
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        in_weight: Tensor,
        in_bias: Tensor,
        out_weight: Tensor,
        out_bias: Tensor,
        heads: int,
        padding: Tensor | None,
        dropout: float,
    ) -> Tensor:
        batch, time, width = x.shape
        each, keys = width // heads, max(time, VECTOR)
        flat = x.reshape(-1, width)
        joint = torch.addmm(in_bias, flat, in_weight.t()).view(batch, time, 3, heads, each)
        # Keys and values beyond the sequence's end are zeros, never attended to.
        apart = x.new_zeros(3, batch, heads, keys, each)
        apart[:, :, :, :time].copy_(joint.permute(2, 0, 3, 1, 4))
        q, k, v = apart.view(3, batch * heads, keys, each)
        bias = x.new_zeros(1 if padding is None else batch, 1, 1, keys)
        bias[..., time:] = -math.inf
        if padding is not None:
            bias[:, 0, 0, :time].masked_fill_(padding, -math.inf)
        bias = bias.expand(batch, heads, 1, keys).reshape(-1, 1, keys).expand(-1, time, -1)
        scores = torch.baddbmm(bias, q[:, :time], k.transpose(1, 2), alpha=each**-0.5)
        weights = scores.softmax(dim=-1)
        mask = kept(weights, dropout)
        used = weights if mask is None else weights * mask
        mixed = torch.bmm(used, v).view(batch, heads, time, each).transpose(1, 2).reshape(-1, width)
        ctx.heads = heads
        ctx.save_for_backward(flat, in_weight, out_weight, apart, weights, mask, used, mixed)
        return torch.addmm(out_bias, mixed, out_weight.t()).view(batch, time, width)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        flat, in_weight, out_weight, apart, weights, mask, used, mixed = ctx.saved_tensors
        batch, time, width = grad.shape
        heads, (_, _, _, keys, each) = ctx.heads, apart.shape
        q, k, v = apart.view(3, batch * heads, keys, each)
        grad = grad.reshape(-1, width)
        towards = (grad @ out_weight).view(batch, time, heads, each).transpose(1, 2)
        towards = towards.reshape(batch * heads, time, each)
        towards_used = torch.bmm(towards, v.transpose(1, 2))
        towards_weights = towards_used if mask is None else towards_used.mul_(mask)
        towards_scores = torch._softmax_backward_data(towards_weights, weights, -1, weights.dtype)
        towards_scores.mul_(each**-0.5)
        parts = (
            torch.bmm(towards_scores, k),
            torch.bmm(towards_scores.transpose(1, 2), q[:, :time]),
            torch.bmm(used.transpose(1, 2), towards),
        )
        joint = grad.new_empty(batch, time, 3, heads, each)
        for i, part in enumerate(parts):
            joint[:, :, i].copy_(part.view(batch, heads, -1, each)[:, :, :time].transpose(1, 2))
        joint = joint.view(-1, 3 * width)
        return (
            (joint @ in_weight).view(batch, time, width),
            joint.t() @ flat,
            joint.sum(dim=0),
            grad.t() @ mixed,
            grad.sum(dim=0),
            None,
            None,
            None,
        )
