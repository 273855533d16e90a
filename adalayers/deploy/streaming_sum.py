"""Sums over hidden states, added up while a base model runs: one gelu and one product for all tasks that read one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from adalayers.fusion.fusion import Term
from adalayers.states import State


class _TaskTerm(NamedTuple):
    """What one task adds to its sum."""

    task: str
    term: Term


@dataclass(frozen=True)
class _Product:
    """The product of a hidden state with the matrices of one or more tasks, end to end.

    matrix: [sum of widths, K], None where the state is taken as it is
    widths: of the terms' own matrices
    """

    gelu: bool
    matrix: Tensor | None
    widths: list[int]
    terms: tuple[_TaskTerm, ...]


class StreamingSum:
    """F = sum_i w_i N(gelu(Z_i) W_i^T) of one or more tasks, a hidden state at a time (thesis 5.3).

    Work is done as precise as the matrices are, float32 where there is none; N and the sums are float32, on the device
    of the task's own matrices, wherever a hidden state comes from.

    Args:
        terms:   Of each task, by hidden state (`Fusion.terms`); its weights as they are now.
        devices: Where each task is.
    """

    def __init__(self, terms: Mapping[str, Mapping[State, Term]], devices: Mapping[str, torch.device]):
        self._devices = dict(devices)
        self.totals: dict[str, Tensor] = {}
        by_state: dict[State, list[_TaskTerm]] = {}
        for task, terms_of_task in terms.items():
            for state, term in terms_of_task.items():
                by_state.setdefault(state, []).append(_TaskTerm(task, term))
        self._products = {state: _products(task_terms) for state, task_terms in by_state.items()}

    def states(self) -> list[State]:
        """Return the hidden states that some task reads, in order."""
        return sorted(self._products)

    def clear(self) -> None:
        """Set all sums to nothing."""
        self.totals = {}

    @torch.no_grad()
    def add(self, state: State, hidden: Float[Tensor, "batch time K"]) -> None:
        """Add the terms of the hidden state `state`; nothing where no task reads it."""
        hidden = hidden.detach()
        with torch.autocast(hidden.device.type, enabled=False):
            activated: dict[torch.dtype, Tensor] = {}
            for product in self._products.get(state, ()):
                self._multiply(product, hidden, activated)

    def _multiply(self, product: _Product, hidden: Tensor, activated: dict[torch.dtype, Tensor]) -> None:
        matrix = product.matrix
        dtype = torch.float32 if matrix is None else matrix.dtype
        values = hidden
        if product.gelu:
            if dtype not in activated:
                activated[dtype] = functional.gelu(hidden.to(dtype))
            values = activated[dtype]
        parts: Sequence[Tensor] = [values]
        if matrix is not None:
            multiplied = functional.linear(values.to(dtype), matrix.to(values.device))
            parts = multiplied.split(product.widths, dim=-1)
        for task_term, part in zip(product.terms, parts, strict=True):
            self._add_term(task_term, part.float())

    def _add_term(self, task_term: _TaskTerm, values: Float[Tensor, "batch time width"]) -> None:
        task, term = task_term
        if term.eps is not None:
            values = functional.layer_norm(values, values.shape[-1:], eps=term.eps)
        values = values.to(self._devices[task])
        if task in self.totals:
            self.totals[task].add_(values, alpha=term.weight)
        else:
            self.totals[task] = values * term.weight


def _products(task_terms: list[_TaskTerm]) -> tuple[_Product, ...]:
    """Return the products that all tasks together take of one hidden state, as few as there can be."""
    groups: dict[tuple[object, ...], list[_TaskTerm]] = {}
    for task_term in task_terms:
        matrix = task_term.term.matrix
        kind = (task_term.task,) if matrix is None else (matrix.dtype, matrix.device)
        groups.setdefault((task_term.term.gelu, *kind), []).append(task_term)
    return tuple(_product(group) for group in groups.values())


def _product(group: list[_TaskTerm]) -> _Product:
    matrices = [term.matrix.detach() for _, term in group if term.matrix is not None]
    matrix = None if not matrices else matrices[0] if len(matrices) == 1 else torch.cat(matrices)
    return _Product(group[0].term.gelu, matrix, [len(each) for each in matrices], tuple(group))
