"""The mix's arithmetic for CPUs, with a backward pass of its own: fewer passes over memory, fewer small operations.

`LayerMix` says what it computes; this is the same in one autograd node. Everything that is one number per layer
and token is done for all layers at once; products stay one per layer, whose buffers the allocator reuses.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class ProjectNormaliseMix(torch.autograd.Function):
    """F = sum_i w_i N(G_i W_i^T) of activations G_i [tokens, K], matrices W_i [k, K] and weights w [layers].

    apply(weights, eps, *activations, *matrices) -> [tokens, k]
    """

    @staticmethod
    def forward(ctx: Any, weights: Tensor, eps: float, *tensors: Tensor) -> Tensor:
        layers = len(tensors) // 2
        activations, matrices = tensors[:layers], tensors[layers:]
        tokens, k = activations[0].shape[0], matrices[0].shape[0]
        projected = activations[0].new_empty(layers, tokens, k)
        for out, activation, matrix in zip(projected, activations, matrices, strict=True):
            torch.mm(activation, matrix.t(), out=out)
        normal, mean, scale = torch.native_layer_norm(projected, (k,), None, None, eps)
        ctx.save_for_backward(weights, projected, normal, mean, scale, *tensors)
        return (weights @ normal.view(layers, -1)).view(tokens, k)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        weights, projected, normal, mean, scale, *tensors = ctx.saved_tensors
        layers, _, k = projected.shape
        activations, matrices = tensors[:layers], tensors[layers:]
        grad_weights = normal.view(layers, -1) @ grad.reshape(-1) if ctx.needs_input_grad[0] else None
        outer = weights.view(layers, 1, 1) * grad
        inner, _, _ = torch.ops.aten.native_layer_norm_backward(
            outer, projected, (k,), mean, scale, None, None, (True, False, False)
        )
        needs = ctx.needs_input_grad[2:]
        grad_activations = [
            row @ matrix if need else None
            for row, matrix, need in zip(inner, matrices, needs[:layers], strict=True)
        ]
        grad_matrices = [
            row.t() @ activation if need else None
            for row, activation, need in zip(inner, activations, needs[layers:], strict=True)
        ]
        return grad_weights, None, *grad_activations, *grad_matrices
