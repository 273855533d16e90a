"""What a CPU keeps of the mix's inputs from step to step."""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Iterator
from itertools import chain

import torch
from torch import Tensor
from torch.nn import functional

from adalayers.tensors import ragged

READ_AGAIN = "read_again"
"""Attribute of tensors that several trials in turn are given, and that nobody changes."""


class Workspace(threading.local):
    """Memory for one tensor at a time, kept from step to step: fresh pages cost about as much as filling them.

    Without it a training step over 24 layers of width 1024 takes 1.4 times as long.

    Where the tensor handed out before is still needed (its backward pass is to come), the next has memory of
    its own.
    """

    def __init__(self) -> None:
        self._memory = torch.empty(0)
        self._out: weakref.ref[Tensor] | None = None
        self._row: tuple[int, ...] = ()
        self._made_of: list[weakref.ref[Tensor]] = []

    def _take(self, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """Return a tensor on the CPU, uninitialised but for rows that `_made_of` knows."""
        if self._out is not None and self._out() is not None:
            return torch.empty(shape, dtype=dtype)
        size = math.prod(shape)
        if self._memory.dtype != dtype or self._memory.numel() < size:
            self._memory = torch.empty(0)  # given back before more is asked for
            self._memory = torch.empty(size, dtype=dtype)
            self._made_of.clear()
        if self._row != shape[1:]:
            self._row, self._made_of = shape[1:], []
        taken = self._memory[:size].view(shape)
        self._out = weakref.ref(taken)
        return taken

    def activated(self, layers: int, states: Iterator[Tensor], dtype: torch.dtype) -> Tensor:
        """Return gelu of frozen states [layers, tokens, K]; of tensors `READ_AGAIN` it is not computed again.

        States on a GPU, where memory costs little to take, are computed there.
        """
        first = next(states)
        if ragged.on_gpu(first.device):
            stacked, kind = torch.stack([first, *states]).flatten(1, -2), first.device.type
            if torch.is_autocast_enabled(kind):  # as precise as the products that follow
                return functional.gelu(stacked).to(torch.get_autocast_dtype(kind))
            return functional.gelu(stacked.to(dtype))
        taken = self._take((layers, first.shape[:-1].numel(), first.shape[-1]), dtype)
        kept = self._made_of if self._out is not None and self._out() is taken else []
        for row, (layer, state) in enumerate(zip(taken, chain([first], states), strict=True)):
            if state.requires_grad:
                raise ValueError(
                    "wanted frozen hidden states, got one that wants a gradient: mix_batched gives it"
                )
            if row < len(kept) and kept[row]() is state and hasattr(state, READ_AGAIN):
                continue
            torch.ops.aten.gelu_(layer.copy_(state.flatten(0, -2)))
            kept[row : row + 1] = [weakref.ref(state)]
        return taken


ACTIVATIONS = Workspace()
