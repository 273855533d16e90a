"""Dropout that is quick on CPUs, where drawing one random number per element is most of PyTorch's own."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

LEVELS = 1 << 16
"""Four elements share one 64-bit random number: a probability is rounded to one of this many levels."""


def kept(x: Tensor, p: float) -> Tensor | None:
    """Return what to multiply `x` with to drop out: 0 with probability `p`, else 1 / (1 - p); None: nothing to drop."""
    dropped = round(p * LEVELS)
    if dropped == 0:
        return None
    if x.device.type != "cpu" or dropped == LEVELS:
        return functional.dropout(torch.ones_like(x), p)
    words = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(1 << 63), None)
    drawn = words.view(torch.int16)[: x.numel()].view(x.shape)
    mask = torch.empty_like(x, memory_format=torch.contiguous_format)
    return torch.ge(drawn, dropped - LEVELS // 2, out=mask).mul_(LEVELS / (LEVELS - dropped))


def dropout(x: Tensor, p: float, training: bool = True) -> Tensor:
    """Return `x` with each element set to 0 with probability `p`, and the rest divided by 1 - p."""
    if x.device.type != "cpu":
        return functional.dropout(x, p, training)
    mask = kept(x, p) if training else None
    return x if mask is None else x * mask


class Dropout(nn.Module):
    """`dropout` as a module."""

    def __init__(self, p: float):
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.p, self.training)

    def extra_repr(self) -> str:
        return f"p={self.p:g}"
