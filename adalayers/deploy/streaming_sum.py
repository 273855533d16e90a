"""Sums over hidden states, added up while a base model runs: one gelu of a hidden state for all tasks that read it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from adalayers.fusion.fusion import Term


@torch.no_grad()
def add_terms(
    sums: dict[Any, Tensor],
    hidden: Float[Tensor, "batch time K"],
    terms: Mapping[str, Term],
    devices: Mapping[str, torch.device],
) -> None:
    """Add the terms of a hidden state to the sums F = sum_i w_i N(gelu(Z_i) W_i^T) of tasks (thesis 5.3).

    Work is done as precise as the matrices are, float32 where there is none; N and the sums are float32, on the device
    of the task's own matrices, wherever a hidden state comes from.

    Args:
        sums:    The sum of each task so far, by name.
        hidden:  The hidden state.
        terms:   What it adds (`Fusion.terms`), of each task that reads it.
        devices: Where each task is.
    """
    hidden = hidden.detach()
    activated: dict[torch.dtype, Tensor] = {}
    with torch.autocast(hidden.device.type, enabled=False):
        for task, term in terms.items():
            values, dtype = hidden, torch.float32 if term.matrix is None else term.matrix.dtype
            if term.gelu:
                if dtype not in activated:
                    activated[dtype] = functional.gelu(hidden.to(dtype))
                values = activated[dtype]
            if term.matrix is not None:
                values = functional.linear(values.to(dtype), term.matrix.to(values.device))
            values = values.float()
            if term.eps is not None:
                values = functional.layer_norm(values, values.shape[-1:], eps=term.eps)
            values = values.to(devices[task])
            if task in sums:
                sums[task].add_(values, alpha=term.weight)
            else:
                sums[task] = values * term.weight
