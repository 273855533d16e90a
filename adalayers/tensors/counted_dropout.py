"""Dropout without a stream: what is dropped follows from where it stands, not from what was drawn before.

On a GPU, where batches are padded and trials grouped, a number is dropped or kept by a hash of (seed, epoch, step,
place in the model, example, token, feature): the same whatever else a group holds, and in one operation for all of it.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from adalayers.tensors.cpu_dropout import P_LEVELS
from adalayers.tensors.ragged import to_device

_FACTORS = 0x85EBCA6B, 0xC2B2AE35
"""Of murmur3's last step on 32 bits (Appleby): every bit of what goes in changes every bit that comes out half of the
time."""
_NEXT = 0x9E3779B9
"""2^32 over the golden ratio: small numbers become far apart before they are mixed in."""
_SPAN = 8192
"""Numbers of one dimension of a place: a sequence has fewer tokens, a vector fewer features."""


def _mixed(x: NDArray[np.uint32]) -> NDArray[np.uint32]:
    for factor, shift in zip(_FACTORS, (16, 13), strict=True):
        x = (x ^ (x >> np.uint32(shift))) * np.uint32(factor)
    return x ^ (x >> np.uint32(16))


def row_keys(
    step: tuple[int, int, int],
    where: str,
    examples: NDArray[np.int64],
    tokens: NDArray[np.int64] | int = 0,
) -> NDArray[np.uint32]:
    """Return a key for each row, [rows], of an example or of a token of it.

    Args:
        step:  Seed, epoch and number of the step.
        where: The part of the model.
    """
    key = np.zeros(1, dtype=np.uint32)
    for number in (*step, zlib.crc32(where.encode()), examples, tokens):
        # What follows from a key and a number; they broadcast.
        own = np.asarray(number, dtype=np.int64).astype(np.uint32) * np.uint32(_NEXT)
        key = _mixed(np.bitwise_xor(key, own) + np.uint32(_NEXT))
    return key


@functools.lru_cache(maxsize=256)
def _columns(shape: tuple[int, ...], device: torch.device) -> Tensor:
    """Return a key for each place of a row, int32 like `shape`; it follows from the place, not from the row's size."""
    number = np.zeros((), dtype=np.int64)
    for size in shape:
        number = number[..., None] * _SPAN + np.arange(size)
    keys = _mixed(number.astype(np.uint32) * np.uint32(_NEXT))
    return to_device(torch.from_numpy(keys.view(np.int32)), device)


@functools.lru_cache(maxsize=256)
def _levels(ps: tuple[float, ...], device: torch.device, dtype: torch.dtype) -> tuple[Tensor, ...]:
    """Return of each probability the least hash that is kept, and the factor then; and 0."""
    dropped = [round(p * P_LEVELS) for p in ps]
    levels = torch.tensor([n * ((1 << 32) // P_LEVELS) - (1 << 31) for n in dropped], dtype=torch.int32)
    scales = torch.tensor([P_LEVELS / max(1, P_LEVELS - n) for n in dropped], dtype=dtype)
    return tuple(to_device(each, device) for each in (levels, scales, torch.zeros((), dtype=dtype)))


def hashed(keys: Int[Tensor, "*batches rows"], shape: Sequence[int]) -> Int[Tensor, "*batches rows ..."]:
    """Return a hash of each number of rows of a shape, int32 [*batches, rows, *shape], from the rows' keys."""
    mixed = keys.view(*keys.shape, *[1] * len(shape)) ^ _columns(tuple(shape), keys.device)
    for factor, shift in zip(_FACTORS, (16, 13), strict=True):
        mixed ^= (mixed >> shift) & (
            (1 << (32 - shift)) - 1
        )  # the shift keeps the sign, which is no number here
        mixed *= factor - (1 << 32)
    mixed ^= (mixed >> 16) & 0xFFFF
    return mixed


def factors(mixed: Int[Tensor, "members ..."], ps: tuple[float, ...]) -> Float[Tensor, "members ..."]:
    """Return what numbers with these hashes are multiplied by: 0 where one is dropped, else 1 / (1 - p).

    Args:
        mixed: Of each member, or [1, ...] that all share.
        ps:    Each member's probability, below 1.
    """
    own = ps[:1] if len({*ps}) == 1 else ps
    levels, scales, zero = _levels(own, mixed.device, torch.get_default_dtype())
    several = (len(own), *[1] * (mixed.dim() - 1))
    return torch.where(mixed >= levels.view(several), scales.view(several), zero)
