"""Sums over hidden states, added up while a base model runs: one gelu of a hidden state for all tasks that read it."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from adalayers.fusion.fusion import Term
from adalayers.states import State


class StreamingSum:
    """F = sum_i w_i N(gelu(Z_i) W_i^T) of one or more tasks, a hidden state at a time (thesis 5.3).

    Work is done as precise as the matrices are, float32 where there is none; N and the sums are float32, on the device
    of the task's own matrices, wherever a hidden state comes from.

    Args:
        terms:   Of each task, by hidden state (`Fusion.terms`); its weights as they are now.
        devices: Where each task is.

    Attributes:
        totals: The sum of each task so far.
    """

    def __init__(self, terms: Mapping[str, Mapping[State, Term]], devices: Mapping[str, torch.device]):
        self._terms, self._devices = terms, devices
        self.totals: dict[str, Tensor] = {}

    def states(self) -> list[State]:
        """Return the hidden states that some task reads, in order."""
        return sorted({state for of_task in self._terms.values() for state in of_task})

    def clear(self) -> None:
        """Set all sums to nothing."""
        self.totals = {}

    @torch.no_grad()
    def add(self, state: State, hidden: Float[Tensor, "batch time K"]) -> None:
        """Add the terms of the hidden state `state`; nothing where no task reads it."""
        hidden = hidden.detach()
        activated: dict[torch.dtype, Tensor] = {}
        with torch.autocast(hidden.device.type, enabled=False):
            for task, of_task in self._terms.items():
                if (term := of_task.get(state)) is None:
                    continue
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
                values = values.to(self._devices[task])
                if task in self.totals:
                    self.totals[task].add_(values, alpha=term.weight)
                else:
                    self.totals[task] = values * term.weight
