"""Dropout that is quick on CPUs, where drawing one random number per element is most of PyTorch's own."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

P_LEVELS = 1 << 16
"""Four elements share one 64-bit random number: a probability is rounded to one of this many levels."""


def dropout_mask(x: Tensor, p: float, generator: torch.Generator | None = None) -> Tensor:
    """Return what dropout multiplies `x` by: a tensor like it, each element 0 with probability `p`, else 1 / (1 - p).

    Args:
        generator: On the device of `x`; None: torch's global stream there.
    """
    dropped = round(p * P_LEVELS)
    if x.device.type != "cpu" or dropped == P_LEVELS:
        mask = torch.empty_like(x).bernoulli_(1 - p, generator=generator)
        return mask.div_(1 - p) if p < 1 else mask
    words = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(1 << 63), None, generator=generator)
    drawn = words.view(torch.int16)[: x.numel()].view(x.shape)
    mask = torch.empty(x.shape, dtype=x.dtype)
    torch.ge(drawn, dropped - P_LEVELS // 2, out=mask)  # 0 or 1, without a bool in between
    return mask.mul_(P_LEVELS / (P_LEVELS - dropped))


class Dropout(nn.Module):
    """Dropout as a module; `draw_from` gives it a stream of its own."""

    def __init__(self, p: float):
        super().__init__()
        self.p = p
        self.generator: torch.Generator | None = None

    def forward(self, x: Tensor) -> Tensor:
        return x if (mask := self.mask) is None else x * mask(x)

    @property
    def acts(self) -> bool:
        """Whether something drops out in training."""
        return round(self.p * P_LEVELS) > 0

    @property
    def mask(self) -> Callable[[Tensor], Tensor] | None:
        """What gives the factors of a tensor now, for arithmetic that drops out by itself; None: nothing drops out."""
        if not self.training or not self.acts:
            return None
        return lambda x: dropout_mask(x, self.p, self.generator)


def draw_from(model: nn.Module, generator: torch.Generator) -> None:
    """Let all dropout in `model` draw from `generator`, on the model's device."""
    for module in model.modules():
        if hasattr(module, "generator"):
            module.generator = generator  # type: ignore[assignment]
