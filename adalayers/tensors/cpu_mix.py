"""The mix's arithmetic for CPUs, with a backward pass of its own: fewer passes over memory, fewer small operations.

`LayerMix` says what it computes; this is the same in one autograd node, all layers in each operation.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

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
        if first.device.type != "cpu":
            return functional.gelu(torch.stack([first, *states]).to(dtype)).flatten(1, -2)
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


class GeluProjectNormaliseMix(torch.autograd.Function):
    """F = sum_i w_i N(gelu(Z_i) W_i^T) of frozen Z_i [tokens, K], matrices W_i [k, K] and weights w [layers].

    apply(weights, eps, mask, (Z_i, ...), *matrices) -> [tokens, k]; the tokens of Z_i may have more dimensions

    Args:
        eps: Of N; None leaves N out.
        mask: Gives what N's outputs [layers, tokens, k] are multiplied by, None: by nothing.

    Raises:
        ValueError: Where a Z_i wants a gradient.
    """

    @staticmethod
    def forward(
        ctx: Any,
        weights: Tensor,
        eps: float | None,
        mask: Callable[[Tensor], Tensor] | None,
        states: Iterable[Tensor],
        *matrices: Tensor,
    ) -> Tensor:
        activated = ACTIVATIONS.activated(len(matrices), iter(states), matrices[0].dtype)
        projected = torch.bmm(activated, torch.stack([matrix.t() for matrix in matrices]))
        layers, _, k = projected.shape
        normal, mean, scale = projected, None, None
        if eps is not None:
            normal, mean, scale = torch.native_layer_norm(projected, (k,), None, None, eps)
        factors = None if mask is None else mask(normal)
        if factors is not None:
            normal = normal * factors
        ctx.save_for_backward(weights, activated, projected, normal, factors, mean, scale)
        return (weights @ normal.view(layers, -1)).view(-1, k)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        weights, activated, projected, normal, factors, mean, scale = ctx.saved_tensors
        layers, _, k = projected.shape
        grad_weights = normal.view(layers, -1) @ grad.reshape(-1) if ctx.needs_input_grad[0] else None
        if not any(ctx.needs_input_grad[4:]):
            return grad_weights, None, None, None, *[None] * layers
        inner = weights.view(layers, 1, 1) * grad
        if factors is not None:
            inner *= factors
        if mean is not None:
            inner, _, _ = torch.ops.aten.native_layer_norm_backward(
                inner, projected, (k,), mean, scale, None, None, (True, False, False)
            )
        grad_matrices = torch.bmm(inner.transpose(1, 2), activated)
        return grad_weights, None, None, None, *grad_matrices
