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

from adalayers.tensors import ragged

Places = slice | Tensor
"""Numbers of rows: next to each other, or any."""


@dataclass(frozen=True)
class Pairs:
    """Pairs of a hidden state and a member whose products are one operation.

    A cell is a hidden state of a batch; all cells have as many members.

    Attributes:
        cells:   Their places in [live states * batches].
        pairs:   Their members, one after the other, in [states * members].
        states:  How many states have the same members; 1 where they do not.
        members: Of the cells of one such state, one after the other; else of all cells, some of them more than once.
    """

    cells: Places
    pairs: Places
    states: int
    members: Places

    def of_cells(self, x: Float[Tensor, "pairs ..."], cells: int) -> Float[Tensor, "cells each ..."]:
        """Return the pairs' parts of `x`, by cell."""
        return x[self.pairs].unflatten(0, (cells, -1))


def paired(of_state: Sequence[Sequence[int]], batches: Sequence[range], device: torch.device) -> list[Pairs]:
    """Return all pairs to work on.

    On a GPU cells of as many members are one operation; on a CPU only members of a state that stand next to each other,
    which copies nothing and stays in its cache, or all states of one member.

    Args:
        of_state: By hidden state, the members that mix it, in order.
        batches:  By batch, the members that read it.
    """
    joined, several = ragged.on_gpu(device), batches[-1].stop
    live = [state for state, members in enumerate(of_state) if members]
    alike: dict[Any, list[tuple[int, int, list[int]]]] = {}  # place of the cell, state, members
    for (row, state), (batch, own) in itertools.product(enumerate(live), enumerate(batches)):
        members = [member for member in of_state[state] if member in own]
        for run in [members] if joined else _runs(members):
            if run:
                key = len(run) if joined else (tuple(run), several > 1 and state)
                alike.setdefault(key, []).append((row * len(batches) + batch, state, run))

    def places(numbers: Sequence[int]) -> Places:
        if [*numbers] == [*range(numbers[0], numbers[-1] + 1)]:
            return slice(numbers[0], numbers[-1] + 1)
        return ragged.to_device(torch.tensor(numbers), device)

    def pairs(some: Sequence[tuple[int, int, list[int]]]) -> Pairs:
        by_state: dict[int, list[int]] = {}
        for _, state, run in some:
            by_state.setdefault(state, []).extend(run)
        first, *others = by_state.values()
        same = all(other == first for other in others)
        return Pairs(
            places([cell for cell, _, _ in some]),
            places([state * several + member for _, state, run in some for member in run]),
            len(by_state) if same else 1,
            places(first if same else [*itertools.chain(*by_state.values())]),
        )

    return [pairs(some) for some in alike.values()]


def _runs(members: Sequence[int]) -> Iterator[list[int]]:
    """Yield runs of members that stand next to each other."""
    for _, run in itertools.groupby(enumerate(members), key=lambda place: place[1] - place[0]):
        yield [member for _, member in run]


class MixOfMembers(torch.autograd.Function):
    """F_m = sum_i w_mi N(A_i W_mi^T) of activated states A_i [tokens, K] for members m, each over its own batch.

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
        by_pair, flat = weights.t().reshape(-1), matrices.flatten(0, 1).to(activated.dtype)
        total: Tensor | None = None
        kept: list[Tensor | None] = []
        for pairs in work:
            hidden = activated[pairs.cells]
            n = len(hidden)
            stacked = pairs.of_cells(flat, n).flatten(1, 2)
            projected = torch.bmm(hidden, stacked.transpose(1, 2)).unflatten(2, (-1, k)).to(weights.dtype)
            normal, mean, scale = projected, None, None
            if eps is not None:
                normal, mean, scale = torch.native_layer_norm(projected, (k,), None, None, eps)
            if masks is not None:
                normal = normal * pairs.of_cells(masks, n).transpose(1, 2)
            total = _added(total, several, pairs, normal, pairs.of_cells(by_pair, n))
            kept += [projected, normal, mean, scale]
        ctx.work = work
        ctx.save_for_backward(weights, matrices, activated, masks, *kept)
        return weights.new_zeros(activated.shape[1], several, k) if total is None else total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        weights, matrices, activated, masks, *kept = ctx.saved_tensors
        by_pair, shape = weights.t().reshape(-1), matrices.shape[2:]
        grad_weights, grad_matrices = torch.zeros_like(by_pair), None
        for pairs, (projected, normal, mean, scale) in zip(
            ctx.work, zip(*[iter(kept)] * 4, strict=True), strict=True
        ):
            n, tokens, each, k = projected.shape
            own = grad[:, pairs.members].unflatten(1, (-1, each)).transpose(0, 1)
            products = normal.unflatten(0, (pairs.states, -1)) * own
            grad_weights[pairs.pairs] = products.sum((2, 4)).flatten()
            if not ctx.needs_input_grad[1]:
                continue
            weighed = pairs.of_cells(by_pair, n).view(pairs.states, -1, 1, each, 1)
            inner = torch.mul(own, weighed, out=products).flatten(0, 1)
            if masks is not None:
                inner *= pairs.of_cells(masks, n).transpose(1, 2)
            if mean is not None:
                inner, _, _ = torch.ops.aten.native_layer_norm_backward(
                    inner, projected, (k,), mean, scale, None, None, (True, False, False)
                )
            product = inner.reshape(n, tokens, -1).transpose(1, 2).to(activated.dtype)
            found = torch.bmm(product, activated[pairs.cells]).view(-1, *shape).to(matrices.dtype)
            if len(found) == len(by_pair) and isinstance(pairs.pairs, slice):
                grad_matrices = found
            else:
                if grad_matrices is None:
                    grad_matrices = matrices.new_zeros(len(by_pair), *shape)
                grad_matrices[pairs.pairs] = found
        if grad_matrices is not None:
            grad_matrices = grad_matrices.view(matrices.shape)
        return grad_weights.view(weights.shape[::-1]).t(), grad_matrices, None, None, None, None


def _added(
    total: Float[Tensor, "tokens members k"] | None,
    several: int,
    pairs: Pairs,
    normal: Float[Tensor, "cells tokens each k"],
    weights: Float[Tensor, "cells each"],
) -> Float[Tensor, "tokens members k"]:
    """Return the total with the pairs' weighted outputs added, which may change it."""
    by_state, of_state = (
        x.unflatten(0, (pairs.states, -1)) for x in (normal, weights.view(len(normal), 1, -1, 1))
    )
    members, gpu = pairs.members, ragged.on_gpu(normal.device)
    if several == by_state.shape[1] == 1 and len(normal) == pairs.states and total is None:
        return (weights.view(1, -1) @ normal.view(len(normal), -1)).view(-1, 1, normal.shape[3])
    if not gpu and isinstance(members, slice) and by_state.shape[1] == 1:
        total = normal.new_zeros(normal.shape[1], several, normal.shape[3]) if total is None else total
        for own, weight in zip(by_state, of_state, strict=True):
            total[:, members].addcmul_(own[0], weight[0])
        return total
    new = (by_state * of_state).sum(0).transpose(0, 1).flatten(1, 2)
    if total is None and isinstance(members, slice) and new.shape[1] == several:
        return new
    total = normal.new_zeros(normal.shape[1], several, normal.shape[3]) if total is None else total
    if isinstance(members, slice):
        total[:, members] += new
        return total
    return total.index_add_(1, members, new)
