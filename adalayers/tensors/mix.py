"""The mix of one model or of several, over hidden states that all of them read, and what a CPU keeps of it."""

from __future__ import annotations

import functools
import math
import sys
import threading
from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from adalayers.tensors import ragged


class Workspace(threading.local):
    """Memory for one tensor at a time, kept from step to step: fresh pages cost about as much as filling them.

    Without it a training step over 24 layers of width 1024 takes 1.4 times as long.

    Where the tensor handed out before is still needed (its backward pass is to come), the next has memory of
    its own.
    """

    def __init__(self) -> None:
        self._memory = np.empty(0, np.uint8)

    def _take(self, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """Return a tensor on the CPU, uninitialised."""
        size = math.prod(shape) * dtype.itemsize
        if sys.getrefcount(self._memory) > 2:  # a tensor, or what a backward pass has kept of it, lies there
            return torch.empty(shape, dtype=dtype)
        if len(self._memory) < size:
            self._memory = np.empty(0, np.uint8)  # given back before more is asked for
            self._memory = torch.empty(size, dtype=torch.uint8).numpy()
        return torch.from_numpy(self._memory[:size]).view(dtype).view(shape)

    def activated(self, layers: int, states: Iterator[Tensor], dtype: torch.dtype) -> Tensor:
        """Return gelu of states [layers, tokens, K].

        States that want gradients, or on a GPU, where memory costs little to take, get memory of their own. The first
        speaks for all: they are read one by one.
        """
        first = next(states)
        if ragged.on_gpu(first.device) or first.requires_grad:
            stacked, kind = torch.stack([first, *states]).flatten(1, -2), first.device.type
            if torch.is_autocast_enabled(kind):  # as precise as the products that follow
                return functional.gelu(stacked).to(torch.get_autocast_dtype(kind))
            return functional.gelu(stacked.to(dtype))
        taken = self._take((layers, first.shape[:-1].numel(), first.shape[-1]), dtype)
        for layer, state in zip(taken, chain([first], states), strict=True):
            torch.ops.aten.gelu_(layer.copy_(state.flatten(0, -2)))
        return taken


ACTIVATIONS = Workspace()


def mix_of_members(
    weights: Float[Tensor, "states members"],
    matrices: Float[Tensor, "states members k K"],
    activated: Float[Tensor, "states batches tokens K"],
    members: Sequence[int],
    eps: float | None,
    masks: Float[Tensor, "states members tokens k"] | None = None,
) -> Float[Tensor, "tokens members k"]:
    """Return F_m = sum_i w_im N(A_i W_im^T) of activated states A_i for members m, each over its own batch.

    Args:
        members: How many read each batch; those of one stand next to each other.
        eps:     Of N; None leaves N out.
        masks:   What N's outputs are multiplied by; None: by nothing.
    """
    # A CPU takes a state at a time, whose products stay in its cache, unless they are of one member.
    at_once = len(matrices) if len(members) == sum(members) or ragged.on_gpu(weights.device) else 1
    mixed = []
    with torch.autocast(weights.device.type, enabled=False):  # F is float32, whatever the products are
        of_members = [weights, matrices.to(activated.dtype), *([] if masks is None else [masks])]
        by_batch = zip(*(each.split([*members], dim=1) for each in of_members), strict=True)
        for hidden, own in zip(activated.unbind(1), by_batch, strict=True):
            parts = zip(*(each.split(at_once) for each in (hidden, *own)), strict=True)
            mixed.append(functools.reduce(torch.add, (_mix(eps, *part) for part in parts)))
    return torch.cat(mixed, dim=1) if mixed[1:] else mixed[0]


def _mix(
    eps: float | None, hidden: Tensor, weights: Tensor, matrices: Tensor, masks: Tensor | None = None
) -> Float[Tensor, "tokens members k"]:
    """Return what the members of one batch mix of some states."""
    k, transposed = matrices.shape[2], matrices.flatten(1, 2).transpose(1, 2)
    normal = torch.bmm(hidden, transposed).unflatten(2, (-1, k)).to(weights.dtype)
    if eps is not None:
        normal = functional.layer_norm(normal, (k,), eps=eps)
    if masks is not None:
        normal = normal * masks.transpose(1, 2)
    if weights.shape[1] == 1:
        return (weights.T @ normal.flatten(1)).view(normal.shape[1:])
    weighed = normal * weights[:, None, :, None]
    return weighed.sum(0) if len(weighed) > 1 else weighed[0]
