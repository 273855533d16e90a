"""The mix of several models: products over pairs of a hidden state and a member that mixes it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

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
        state:   Whose they are; None: of several.
        states:  How many states have the same members; 1 where they do not.
        members: Of the cells of one such state, one after the other; else of all cells, some of them more than once.
                 None: all members, in order.
    """

    cells: Places
    pairs: Places
    state: int | None
    states: int
    members: Tensor | None


def paired(of_state: Sequence[Sequence[int]], batches: Sequence[range], device: torch.device) -> list[Pairs]:
    """Return all pairs to work on.

    Cells of as many members are one operation; on a CPU only those of one state, which stay in its cache, unless all
    are of one member.

    Args:
        of_state: By hidden state, the members that mix it, in order.
        batches:  By batch, the members that read it.
    """
    several = batches[-1].stop
    live = [state for state, members in enumerate(of_state) if members]
    alike: dict[tuple[int, int], list[tuple[int, int, list[int]]]] = {}  # place of the cell, state, members
    for (row, state), (batch, own) in itertools.product(enumerate(live), enumerate(batches)):
        if members := [member for member in of_state[state] if member in own]:
            apart = several > 1 and not ragged.on_gpu(device) and state
            cell = row * len(batches) + batch, state, members
            alike.setdefault((len(members), apart), []).append(cell)

    def index(numbers: Iterable[int]) -> Tensor:
        return ragged.to_device(torch.tensor([*numbers]), device)

    def places(numbers: Sequence[int]) -> Places:
        along = range(numbers[0], numbers[-1] + 1)
        return slice(along.start, along.stop) if [*numbers] == [*along] else index(numbers)

    def pairs(cells: Sequence[tuple[int, int, list[int]]]) -> Pairs:
        by_state: dict[int, list[int]] = {}
        for _, state, members in cells:
            by_state.setdefault(state, []).extend(members)
        first, *others = by_state.values()
        same = all(other == first for other in others)
        members = first if same else [*itertools.chain(first, *others)]
        return Pairs(
            places([cell for cell, _, _ in cells]),
            places([state * several + member for _, state, members in cells for member in members]),
            None if others else cells[0][1],
            len(by_state) if same else 1,
            None if members == [*range(several)] else index(members),
        )

    return [pairs(cells) for cells in alike.values()]


def mix_of_members(
    weights: Float[Tensor, "members states"],
    matrices: Float[Tensor, "states members k K"],
    activated: Float[Tensor, "cells tokens K"],
    work: Sequence[Pairs],
    eps: float | None,
    masks: Float[Tensor, "states*members tokens k"] | None = None,
) -> Float[Tensor, "tokens members k"]:
    """Return F_m = sum_i w_mi N(A_i W_mi^T) of activated states A_i for members m, each over its own batch.

    Args:
        activated: Of the live states, each of all batches.
        work:      All pairs, of the live states.
        eps:       Of N; None leaves N out.
        masks:     What N's outputs are multiplied by; None: by nothing.
    """
    _, several, k, inner = matrices.shape
    total = weights.new_zeros(activated.shape[1], several, k)
    with torch.autocast(weights.device.type, enabled=False):  # F is float32, whatever the products are
        by_pair, flat = weights.t().reshape(-1), matrices.flatten(0, 1).to(activated.dtype)
        by_state = flat.view(
            matrices.shape
        ).unbind()  # the gradient of a part is as large as what it is taken from
        for pairs in work:
            hidden, own = activated[pairs.cells], _rows(by_pair, pairs.pairs)
            if pairs.state is None:
                stacked = _rows(flat, pairs.pairs)
            else:
                stacked = by_state[pairs.state]
                stacked = stacked if pairs.members is None else stacked.index_select(0, pairs.members)
            stacked = stacked.reshape(len(hidden), -1, inner)
            normal = torch.bmm(hidden, stacked.transpose(1, 2)).unflatten(2, (-1, k)).to(weights.dtype)
            if eps is not None:
                normal = functional.layer_norm(normal, (k,), eps=eps)
            if masks is not None:
                normal = normal * masks[pairs.pairs].unflatten(0, (len(hidden), -1)).transpose(1, 2)
            if several == 1:
                total += (own.view(1, -1) @ normal.view(len(hidden), -1)).view(total.shape)
                continue
            summands = normal.unflatten(0, (pairs.states, -1)).transpose(1, 2).flatten(2, 3)
            weighed = summands * own.view(pairs.states, 1, -1, 1)
            part = weighed.sum(0) if pairs.states > 1 else weighed[0]
            if pairs.members is None:
                total += part
            else:
                total.index_add_(1, pairs.members, part)
    return total


def _rows(x: Float[Tensor, "rows ..."], places: Places) -> Float[Tensor, "some ..."]:
    if places == slice(0, len(x)):
        return x
    return x[places] if isinstance(places, slice) else x.index_select(0, places)
