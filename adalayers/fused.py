"""The mix's arithmetic for CPUs, with a backward pass of its own: fewer passes over memory, fewer small operations.

`LayerMix` says what it computes; this is the same in one autograd node, all layers in each operation.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class Workspace(threading.local):
    """Memory for one tensor at a time, kept from step to step: fresh pages cost about as much as filling them.

    Where the tensor handed out before is still needed (its backward pass is to come), the next has memory of
    its own.
    """

    def __init__(self) -> None:
        self._memory = torch.empty(0)
        self._out: weakref.ref[Tensor] | None = None

    def take(self, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
        """Return an uninitialised tensor on the CPU."""
        if self._out is not None and self._out() is not None:
            return torch.empty(shape, dtype=dtype)
        size = math.prod(shape)
        if self._memory.dtype != dtype or self._memory.numel() < size:
            self._memory = torch.empty(0)  # given back before more is asked for
            self._memory = torch.empty(size, dtype=dtype)
        taken = self._memory[:size].view(shape)
        self._out = weakref.ref(taken)
        return taken


ACTIVATIONS = Workspace()


class GeluProjectNormaliseMix(torch.autograd.Function):
    """F = sum_i w_i N(gelu(Z_i) W_i^T) of frozen Z_i [tokens, K], matrices W_i [k, K] and weights w [layers].

    apply(weights, eps, [Z_i, ...], *matrices) -> [tokens, k]; no gradient reaches Z_i
    """

    @staticmethod
    def forward(ctx: Any, weights: Tensor, eps: float, states: Sequence[Tensor], *matrices: Tensor) -> Tensor:
        layers, (tokens, width) = len(states), states[0].shape
        activations = ACTIVATIONS.take((layers, tokens, width), matrices[0].dtype)
        for activation, state in zip(activations, states, strict=True):
            activation.copy_(state)
        torch.ops.aten.gelu_(activations)
        projected = torch.bmm(activations, torch.stack(matrices).transpose(1, 2))
        k = projected.shape[-1]
        normal, mean, scale = torch.native_layer_norm(projected, (k,), None, None, eps)
        ctx.save_for_backward(weights, activations, projected, normal, mean, scale)
        return (weights @ normal.view(layers, -1)).view(tokens, k)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        weights, activations, projected, normal, mean, scale = ctx.saved_tensors
        layers, _, k = projected.shape
        grad_weights = normal.view(layers, -1) @ grad.reshape(-1) if ctx.needs_input_grad[0] else None
        if not any(ctx.needs_input_grad[3:]):
            return grad_weights, None, None, *[None] * layers
        outer = weights.view(layers, 1, 1) * grad
        inner, _, _ = torch.ops.aten.native_layer_norm_backward(
            outer, projected, (k,), mean, scale, None, None, (True, False, False)
        )
        grad_matrices = torch.bmm(inner.transpose(1, 2), activations)
        return grad_weights, None, None, *grad_matrices
