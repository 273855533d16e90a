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


class _Part(NamedTuple):
    """What one task adds to its sum."""

    task: str
    term: Term


@dataclass(frozen=True)
class _Product:
    """What tasks with like matrices do with a hidden state: one product for all of them.

    matrix: [sum of widths, K], None where the state is taken as it is
    widths: of the parts' own matrices
    """

    gelu: bool
    matrix: Tensor | None
    widths: list[int]
    parts: tuple[_Part, ...]


class Sums:
    """F = sum_i w_i N(gelu(Z_i) W_i^T) of one or more tasks, a hidden state at a time (thesis 5.3).

    terms: of each task, by hidden state (`Fusion.terms`); its weights as they are now

    Work is done as precise as the matrices are, float32 where there is none; N and the sums are float32, on the device
    of the task's own matrices, wherever a hidden state comes from.
    """

    def __init__(self, terms: Mapping[str, Mapping[State, Term]], device: Mapping[str, torch.device]):
        self._device = dict(device)
        self.totals: dict[str, Tensor] = {}
        self._elsewhere: dict[tuple[int, torch.device], Tensor] = {}
        by_state: dict[State, list[_Part]] = {}
        for task, each in terms.items():
            for state, term in each.items():
                by_state.setdefault(state, []).append(_Part(task, term))
        self._products = {state: _products(found) for state, found in by_state.items()}

    def states(self) -> list[State]:
        """Return the hidden states that some task reads, in order."""
        return sorted(self._products)

    def clear(self) -> None:
        """Begin anew."""
        self.totals = {}

    @torch.no_grad()
    def add(self, state: State, hidden: Float[Tensor, "batch time K"]) -> None:
        """Add what `hidden`, the hidden state `state`, gives; nothing where no task reads it."""
        hidden = hidden.detach()
        with torch.autocast(hidden.device.type, enabled=False):
            activated: dict[torch.dtype, Tensor] = {}
            for product in self._products.get(state, ()):
                self._multiply(product, hidden, activated)

    def _multiply(self, product: _Product, hidden: Tensor, activated: dict[torch.dtype, Tensor]) -> None:
        matrix = product.matrix
        dtype = torch.float32 if matrix is None else matrix.dtype
        read = hidden
        if product.gelu:
            if dtype not in activated:
                activated[dtype] = functional.gelu(hidden.to(dtype))
            read = activated[dtype]
        if matrix is None:
            pieces: Sequence[Tensor] = [read]
        else:
            given = functional.linear(read.to(dtype), self._placed(matrix, read.device))
            pieces = given.split(product.widths, dim=-1)
        for part, piece in zip(product.parts, pieces, strict=True):
            self._sum(part, piece.float())

    def _placed(self, matrix: Tensor, device: torch.device) -> Tensor:
        """Return the matrix on the device of a layer, copied there once."""
        if matrix.device == device:
            return matrix
        key = (id(matrix), device)
        if key not in self._elsewhere:
            self._elsewhere[key] = matrix.to(device)
        return self._elsewhere[key]

    def _sum(self, part: _Part, columns: Float[Tensor, "batch time width"]) -> None:
        if part.term.eps is not None:
            columns = functional.layer_norm(columns, columns.shape[-1:], eps=part.term.eps)
        columns = columns.to(self._device[part.task])
        total = self.totals.get(part.task)
        if total is None:
            self.totals[part.task] = columns * part.term.weight
        else:
            total.add_(columns, alpha=part.term.weight)


def _products(found: list[_Part]) -> tuple[_Product, ...]:
    """Return the products that all tasks together take of one hidden state, as few as there can be."""
    alike: dict[tuple[object, ...], list[_Part]] = {}
    for part in found:
        matrix = part.term.matrix
        kind = (part.task,) if matrix is None else (matrix.dtype, matrix.device)
        alike.setdefault((part.term.gelu, *kind), []).append(part)
    return tuple(_product(group) for group in alike.values())


def _product(group: list[_Part]) -> _Product:
    matrices = [part.term.matrix.detach() for part in group if part.term.matrix is not None]
    matrix = None if not matrices else matrices[0] if len(matrices) == 1 else torch.cat(matrices)
    return _Product(group[0].term.gelu, matrix, [len(one) for one in matrices], tuple(group))
