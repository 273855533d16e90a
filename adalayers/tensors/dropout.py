"""Dropout, drawn from a stream of a trial's own, or counted.

On a CPU drawing one random number per element is most of PyTorch's own: here four share one.

On a GPU, where batches are padded and trials grouped, a number is dropped or kept by a hash of (seed, epoch, step,
place in the model, example, token, feature), without a stream: the same whatever else a group holds, and in one
operation for all of it.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn

from adalayers.tensors.ragged import to_device

if TYPE_CHECKING:
    from adalayers.training.batches import Batches

P_LEVELS = 1 << 16
"""Four elements share one 64-bit random number: a probability is rounded to one of this many levels."""


_FACTORS = 0x85EBCA6B, 0xC2B2AE35
"""Of murmur3's last step on 32 bits (Appleby): every bit of what goes in changes every bit that comes out half of the
time."""
_NEXT = 0x9E3779B9
"""2^32 over the golden ratio: small numbers become far apart before they are mixed in."""
_SPAN = 8192
"""Numbers of one dimension of a place: a sequence has fewer tokens, a vector fewer features."""


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
    """Dropout as a module of a model, or of several that are computed as one.

    Attributes:
        generator: The stream of its own that it draws from (`draw_from`).
        batches:   Of several models, those of the step, which give it factors; None: of one model.
        where:     Of several, its name in the model; ps: each one's probability.
    """

    def __init__(self, p: float):
        super().__init__()
        self.p, self.ps, self.where = p, [p], ""
        self.generator: torch.Generator | None = None
        self.batches: Batches | None = None

    def forward(self, x: Tensor) -> Tensor:
        if not self.drops:
            return x
        if self.batches is None:
            return x * dropout_mask(x, self.p, self.generator)
        return x * self.batches.factors(self.where, self.ps, x)

    @property
    def acts(self) -> bool:
        """Whether something drops out in training."""
        return any(round(p * P_LEVELS) > 0 for p in self.ps)

    @property
    def drops(self) -> bool:
        """Whether something drops out now."""
        return self.training and self.acts


def draw_from(model: nn.Module, generator: torch.Generator) -> None:
    """Let all dropout in `model` draw from `generator`, on the model's device."""
    for module in model.modules():
        if hasattr(module, "generator"):
            module.generator = generator  # type: ignore[assignment]


Numbers = TypeVar("Numbers", NDArray[np.int32], Tensor)


def _mixed(x: Numbers) -> Numbers:
    """Return a hash of each number of an array or a tensor, int32, in place."""
    for factor, shift in zip(_FACTORS, (16, 13), strict=True):
        x ^= (x >> shift) & ((1 << (32 - shift)) - 1)  # the shift keeps the sign, which is no number here
        x *= factor - (1 << 32)
    x ^= (x >> 16) & 0xFFFF
    return x


def _keys(numbers: NDArray[np.int64]) -> NDArray[np.int32]:
    return _mixed((numbers * _NEXT).astype(np.int32))


def row_keys(
    step: tuple[int, int, int],
    where: str,
    examples: NDArray[np.int64],
    tokens: NDArray[np.int64] | int = 0,
) -> NDArray[np.int32]:
    """Return a key for each row, [rows], of an example or of a token of it.

    Args:
        step:  Seed, epoch and number of the step.
        where: The part of the model.
    """
    of_step = zlib.crc32(f"{step} {where}".encode()) - (1 << 31)
    return _mixed(_keys(examples * _SPAN + tokens) ^ of_step)


@functools.lru_cache(maxsize=256)
def _columns(shape: tuple[int, ...], device: torch.device) -> Tensor:
    """Return a key for each place of a row, int32 like `shape`; it follows from the place, not from the row's size."""
    number = np.zeros((), dtype=np.int64)
    for size in shape:
        number = number[..., None] * _SPAN + np.arange(size)
    return to_device(_keys(number), device)


@functools.lru_cache(maxsize=256)
def _levels(ps: tuple[float, ...], device: torch.device, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return of each probability the least hash that is kept, and the factor then."""
    dropped = [round(p * P_LEVELS) for p in ps]
    levels = torch.tensor([n * ((1 << 32) // P_LEVELS) - (1 << 31) for n in dropped], dtype=torch.int32)
    scales = torch.tensor([P_LEVELS / max(1, P_LEVELS - n) for n in dropped], dtype=dtype)
    return to_device(levels, device), to_device(scales, device)


def hashed(keys: Int[Tensor, "*batches rows"], shape: Sequence[int]) -> Int[Tensor, "*batches rows ..."]:
    """Return a hash of each number of rows of a shape, int32 [*batches, rows, *shape], from the rows' keys."""
    return _mixed(keys.view(*keys.shape, *[1] * len(shape)) ^ _columns(tuple(shape), keys.device))


def factors(mixed: Int[Tensor, "members ..."], ps: Sequence[float]) -> Float[Tensor, "members ..."]:
    """Return what numbers with these hashes are multiplied by: 0 where one is dropped, else 1 / (1 - p).

    Args:
        mixed: Of each member, or [1, ...] that all share.
        ps:    Each member's probability, below 1.
    """
    own = tuple(ps[:1] if len({*ps}) == 1 else ps)
    several = (len(own), *[1] * (mixed.dim() - 1))
    levels, scales = (each.view(several) for each in _levels(own, mixed.device, torch.get_default_dtype()))
    return (mixed >= levels) * scales
