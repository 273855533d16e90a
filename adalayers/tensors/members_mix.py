"""The mix of several models in one autograd node: products over pairs of a hidden state and a member that mixes it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

Places = slice | Tensor
"""Numbers of rows: next to each other, or any."""


@dataclass(frozen=True)
class Pairs:
    """Pairs of a hidden state and a member whose products are one operation.

    A cell is a hidden state of a batch; all cells have as many members.

    Attributes:
        cells:    Their places in [live states * batches].
        members:  Of all cells, one after the other.
        pairs:    The same in [states * members].
        by_state: Cells of one state, and their members: no member stands twice.
    """

    cells: Places
    members: Places
    pairs: Places
    by_state: Sequence[tuple[slice, Places]]

    def of_cells(self, x: Float[Tensor, "pairs ..."], cells: int) -> Float[Tensor, "cells each ..."]:
        """Return the pairs' parts of `x`, by cell."""
        return x[self.pairs].unflatten(0, (cells, -1))


def paired(
    of_state: Sequence[Sequence[int]], batches: Sequence[range], *, joined: bool, device: torch.device
) -> list[Pairs]:
    """Return all pairs to work on.

    Args:
        of_state: By hidden state, the members that mix it, in order.
        batches:  By batch, the members that read it.
        joined:   Whether cells of as many members are one operation, as a GPU wants it; else members that stand next to
                  each other are, which on a CPU copies nothing.
    """
    several = batches[-1].stop
    cells: list[tuple[int, int, list[int]]] = []  # place of the cell, state, members
    live = [state for state, members in enumerate(of_state) if members]
    for (row, state), (batch, own) in itertools.product(enumerate(live), enumerate(batches)):
        members = [member for member in of_state[state] if member in own]
        for run in [members] if joined else _runs(members):
            cells.append((row * len(batches) + batch, state, run))
    by_size: dict[int, list[tuple[int, int, list[int]]]] = {}
    for number, cell in enumerate(cells):
        if cell[2]:  # where they are not joined, each is an operation of its own
            by_size.setdefault(len(cell[2]) if joined else -number, []).append(cell)

    def places(all_numbers: Sequence[int]) -> Places:
        first, last = all_numbers[0], all_numbers[-1]
        if list(all_numbers) == list(range(first, last + 1)):
            return slice(first, last + 1)
        return torch.tensor(all_numbers, device=device)

    def pairs(some: list[tuple[int, int, list[int]]]) -> Pairs:
        by_state, first = [], 0
        for _, same in itertools.groupby(some, key=lambda cell: cell[1]):
            runs = [run for _, _, run in same]
            by_state.append((slice(first, first + len(runs)), places(list(itertools.chain(*runs)))))
            first += len(runs)
        return Pairs(
            places([cell for cell, _, _ in some]),
            places([member for _, _, run in some for member in run]),
            places([state * several + member for _, state, run in some for member in run]),
            by_state,
        )

    return [pairs(some) for some in by_size.values()]


def _runs(members: Sequence[int]) -> Iterator[list[int]]:
    """Yield runs of members that stand next to each other."""
    for _, run in itertools.groupby(enumerate(members), key=lambda place: place[1] - place[0]):
        yield [member for _, member in run]


class MixOfMembers(torch.autograd.Function):
    """F_m = sum_i w_mi N(A_i W_im^T) of activated states A_i [tokens, K] for members m, each over its own batch.

    apply(weights [members, states], matrices [states, members, k, K], activated [live states * batches, tokens, K],
    work, eps, masks [states * members, tokens, k] or None) -> [tokens, members, k]

    Args:
        work: All `Pairs`.
        eps:  Of N; None leaves N out.
        masks: What N's outputs are multiplied by; None: by nothing.
    """

    @staticmethod
    def forward(
        ctx: Any,
        weights: Tensor,
        matrices: Tensor,
        activated: Tensor,
        work: Sequence[Pairs],
        eps: float | None,
        masks: Tensor | None,
    ) -> Tensor:
        _, several, k, _ = matrices.shape
        by_pair, flat = weights.t().reshape(-1), matrices.flatten(0, 1)
        total = weights.new_zeros(activated.shape[1], several, k)
        kept: list[Tensor | None] = []
        for pairs in work:
            hidden = activated[pairs.cells]
            n = len(hidden)
            stacked = pairs.of_cells(flat, n).flatten(1, 2).to(hidden.dtype)
            projected = torch.bmm(hidden, stacked.transpose(1, 2)).unflatten(2, (-1, k)).to(weights.dtype)
            normal, mean, scale = projected, None, None
            if eps is not None:
                normal, mean, scale = torch.native_layer_norm(projected, (k,), None, None, eps)
            if masks is not None:
                normal = normal * pairs.of_cells(masks, n).transpose(1, 2)
            own = pairs.of_cells(by_pair, n)
            for part, members in pairs.by_state:
                rows, of_rows = normal[part].transpose(0, 1).flatten(1, 2), own[part].reshape(1, -1, 1)
                if isinstance(members, slice):
                    total[:, members].addcmul_(rows, of_rows)
                else:
                    total.index_add_(1, members, rows * of_rows)
            kept += [projected, normal, mean, scale]
        ctx.work = work
        ctx.save_for_backward(weights, matrices, activated, masks, *kept)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        weights, matrices, activated, masks, *kept = ctx.saved_tensors
        by_pair = weights.t().reshape(-1)
        grad_weights = torch.zeros_like(by_pair)
        grad_matrices = torch.empty_like(matrices) if ctx.needs_input_grad[1] else None
        for pairs, (projected, normal, mean, scale) in zip(
            ctx.work, zip(*[iter(kept)] * 4, strict=True), strict=True
        ):
            n, tokens, _, k = projected.shape
            own = grad[:, pairs.members].unflatten(1, (n, -1)).transpose(0, 1)
            grad_weights[pairs.pairs] = (normal * own).sum((1, 3)).flatten()
            if grad_matrices is None:
                continue
            inner = own * pairs.of_cells(by_pair, n).view(n, 1, -1, 1)
            if masks is not None:
                inner *= pairs.of_cells(masks, n).transpose(1, 2)
            if mean is not None:
                inner, _, _ = torch.ops.aten.native_layer_norm_backward(
                    inner, projected, (k,), mean, scale, None, None, (True, False, False)
                )
            product = inner.reshape(n, tokens, -1).transpose(1, 2).to(activated.dtype)
            found = torch.bmm(product, activated[pairs.cells]).view(-1, *matrices.shape[2:])
            grad_matrices.flatten(0, 1)[pairs.pairs] = found.to(matrices.dtype)
        whole = grad_weights.view(weights.shape[::-1]).t()
        return whole, grad_matrices, None, None, None, None
