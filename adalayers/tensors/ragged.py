"""Sequences of unequal length laid end to end: which rows are theirs, and their way to a device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from adalayers.states import Pooling

Flat = Float[Tensor, "tokens k"]
"""Sequences end to end."""
Lengths = Int[Tensor, " batch"]
"""Tokens of each sequence; on the CPU, where they decide shapes."""
Groups = Iterator[tuple[Shaped[Tensor, "..."], Bool[Tensor, "..."] | None]]
"""Padded sequences, a group after the other, and where they are padding; None: nowhere in any group."""


def ragged_rows(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return the rows starts[i]..starts[i] + lengths[i] of every i, end to end, int64 [sum of lengths]."""
    shift = np.repeat(starts - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
    return np.arange(lengths.sum(), dtype=np.int64) + shift


def ragged_index(offsets: np.ndarray, examples: np.ndarray) -> np.ndarray:
    """Return the rows of `examples`, end to end, where example i owns the rows offsets[i]..offsets[i + 1]."""
    return ragged_rows(offsets[examples], offsets[examples + 1] - offsets[examples])


def token_batches(lengths: np.ndarray, most: int) -> list[np.ndarray]:
    """Return batches of sequences of like length, each of at most `most` tokens with padding, longest first.

    A sequence of more tokens than that is a batch of its own; none has less than one.
    """
    order, batches = np.argsort(-lengths, kind="stable"), []
    while len(order):
        n = max(1, most // int(lengths[order[0]]))
        batches.append(order[:n])
        order = order[n:]
    return batches


def on_gpu(device: torch.device) -> bool:
    """Return whether to work as a GPU wants it: in few operations, of which none is waited for."""
    return device.type != "cpu"


def to_device(numbers: Tensor | np.ndarray, device: torch.device) -> Tensor:
    """Return a tensor of `numbers` on `device`; a copy to a GPU does not wait for what the GPU is doing."""
    tensor = torch.as_tensor(numbers)
    waits = device.type == "cuda" and tensor.device.type == "cpu"
    return tensor.pin_memory().to(device, non_blocking=True) if waits else tensor.to(device)


def group_sizes(lengths: Iterable[int], most: float) -> list[int]:
    """Return how many neighbours of these lengths are padded together, with at most `most` tokens of padding."""
    sizes, longest, total = [0], 0, 0
    for length in lengths:
        longest, total = max(longest, length), total + length
        if longest * (sizes[-1] + 1) - total > most:
            sizes.append(0)
            longest, total = length, length
        sizes[-1] += 1
    return sizes


class PaddedGroups:
    """Sequences that lie end to end, as groups of neighbours that are padded to one length.

    Args:
        lengths: Int64 [batches, sequences], best sorted. Sequences of one place in several batches are computed as one:
                 each has as many rows as the longest of them, and padding from its own end on.
        most:    Tokens of padding that a group may have.
        device:  Where they lie.

    Attributes:
        sizes:   (sequences, time) of each group.
        longest: int64 [sequences], rows of each; starts: its first place in the padded groups.
        places:  int64 [tokens], where all rows go in the padded groups; None: nothing is padded.
        padding: bool [batches, padded tokens], True where nothing is.
    """

    def __init__(self, lengths: np.ndarray, most: float, device: torch.device):
        self.longest = lengths.max(axis=0)
        counts = group_sizes(self.longest.tolist(), most)
        times = np.maximum.reduceat(self.longest, np.cumsum([0, *counts[:-1]]))
        self.sizes = [*zip(counts, times.tolist(), strict=True)]
        padded = np.repeat(times, counts)
        self.starts = np.cumsum(padded) - padded
        padding = ragged_rows(np.zeros_like(padded), padded) >= np.repeat(lengths, padded, axis=1)
        self.padding, self.places = to_device(padding, device), None
        if padding.any():
            self.places = to_device(ragged_rows(self.starts, self.longest), device)

    def split(self, rows: Shaped[Tensor, "tokens ..."]) -> Groups:
        """Yield rows group by group, [sequences, time, ...], with their padding, [batches, sequences, time]."""
        sizes = [n * time for n, time in self.sizes]
        if self.places is not None:
            rows = rows.new_zeros(sum(sizes), *rows.shape[1:]).index_copy(0, self.places, rows)
        paddings = self.padding.split(sizes, 1)
        for size, own, padding in zip(self.sizes, rows.split(sizes), paddings, strict=True):
            yield own.unflatten(0, size), None if self.places is None else padding.unflatten(1, size)

    def real(self, padded: Shaped[Tensor, "padded ..."]) -> Shaped[Tensor, "tokens ..."]:
        """Return the rows of padded groups, end to end, that are no padding."""
        return padded if self.places is None else padded.index_select(0, self.places)


def in_padded_groups(
    flat: Flat, lengths: Lengths, most: float, run: Callable[[Tensor, Tensor | None], Tensor]
) -> Tensor:
    """Return what `run` gives of ragged sequences, neighbours padded together: a row of each, or of each real token.

    Args:
        lengths: On the CPU, best sorted.
        most:    Tokens of padding that a group may have.
        run:     Called with [batch, time, k] and where it is padding [batch, time], or None; gives [batch, o] or
                 [batch, time, o].
    """
    groups = PaddedGroups(lengths.numpy()[None], most, flat.device)
    found = [run(x, None if padding is None else padding[0]) for x, padding in groups.split(flat)]
    of_tokens = found[0].dim() == 3
    whole = torch.cat([own.flatten(0, 1) if of_tokens else own for own in found])
    return groups.real(whole) if of_tokens else whole


def stretched_rows(lengths: np.ndarray, to: np.ndarray) -> np.ndarray:
    """Return the rows of sequences that lie end to end, each repeating its first row until it has `to` rows."""
    starts, places = np.cumsum(lengths) - lengths, ragged_rows(np.zeros_like(to), to)
    return np.repeat(starts, to) + np.where(places < np.repeat(lengths, to), places, 0)


def sequence_means(flat: Flat, lengths: Lengths) -> Float[Tensor, "batch k"]:
    """Return the mean of each sequence's rows, as precise as they are; `lengths` are at least 1, and on the CPU."""
    counts = to_device(lengths, flat.device)
    if flat.device.type == "cuda":  # where the order in which index_add adds changes from run to run
        return torch.segment_reduce(flat, "mean", lengths=counts, unsafe=True)
    rows = torch.repeat_interleave(counts)
    return flat.new_zeros(len(counts), flat.shape[-1]).index_add(0, rows, flat) / counts.unsqueeze(1)


def pooled(flat: Flat, lengths: Lengths, pooling: Pooling) -> Float[Tensor, "batch k"]:
    """Return one row of each sequence: the mean of its rows, its first or its last one; `lengths` are on the CPU."""
    if pooling == "mean":
        return sequence_means(flat, lengths)
    ends = lengths.cumsum(0)
    return flat.index_select(0, to_device(ends - (lengths if pooling == "first-token" else 1), flat.device))
