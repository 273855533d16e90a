"""Sequences of unequal length laid end to end: which rows are theirs, and their way to a device."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from adalayers.states import Pooling

Flat = Float[Tensor, "tokens k"]
"""Sequences end to end."""
Lengths = Int[Tensor, " batch"]
"""Tokens of each sequence; on the CPU, where they decide shapes."""


def ragged_rows(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return the rows starts[i]..starts[i] + lengths[i] of every i, end to end, int64 [sum of lengths]."""
    shift = np.repeat(starts - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
    return np.arange(lengths.sum(), dtype=np.int64) + shift


def ragged_index(offsets: np.ndarray, examples: np.ndarray) -> np.ndarray:
    """Return the rows of `examples`, end to end, where example i owns the rows offsets[i]..offsets[i + 1]."""
    return ragged_rows(offsets[examples], offsets[examples + 1] - offsets[examples])


def token_batches(lengths: np.ndarray, most: int) -> list[np.ndarray]:
    """Return batches of sequences of like length, each of at most `most` tokens with padding, longest first.

    A sequence of more tokens than that is a batch of its own.
    """
    batches: list[np.ndarray] = []
    batch: list[int] = []
    for i in np.argsort(-lengths, kind="stable"):
        if batch and (len(batch) + 1) * lengths[batch[0]] > most:
            batches.append(np.array(batch))
            batch = []
        batch.append(i)
    if batch:
        batches.append(np.array(batch))
    return batches


def on_gpu(device: torch.device) -> bool:
    """Return whether to work as a GPU wants it: in few operations, of which none is waited for."""
    return device.type != "cpu"


def to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """Return `tensor` on `device`; a copy to a GPU does not wait for what the GPU is doing."""
    waits = device.type == "cuda" and tensor.device.type == "cpu"
    return tensor.pin_memory().to(device, non_blocking=True) if waits else tensor.to(device)


def group_sizes(lengths: Iterable[int], most: int) -> list[int]:
    """Return how many neighbours of these lengths are padded together, with at most `most` tokens of padding."""
    sizes, longest, total = [0], 0, 0
    for length in lengths:
        longest, total = max(longest, length), total + length
        if longest * (sizes[-1] + 1) - total > most:
            sizes.append(0)
            longest, total = length, length
        sizes[-1] += 1
    return sizes


def padded(flat: Flat, lengths: Lengths) -> tuple[Tensor, Bool[Tensor, "batch time"] | None, Tensor | None]:
    """Return ragged sequences one per row, where their rows are padding, and the tokens' places in [batch * time].

    The first are [batch, time, k]. The latter two are None where all are of one length.
    """
    time = int(lengths.max())
    if int(lengths.min()) == time:
        return flat.view(len(lengths), time, -1), None, None
    padding = torch.arange(time) >= lengths.unsqueeze(1)
    places = to_device((~padding).flatten().nonzero().squeeze(1), flat.device)
    padded = flat.new_zeros(padding.numel(), flat.shape[-1]).index_copy(0, places, flat)
    return padded.view(*padding.shape, -1), to_device(padding, flat.device), places


def in_padded_groups(
    flat: Flat, lengths: Lengths, most: int, run: Callable[[Tensor, Tensor | None], Tensor]
) -> Tensor:
    """Return what `run` gives of ragged sequences, neighbours padded together: a row of each, or of each real token.

    Args:
        lengths: On the CPU, best sorted.
        most:    Tokens of padding that a group may have.
        run:     Called with [batch, time, k] and where it is padding (`padded`); gives [batch, o] or [batch, time, o].
    """
    groups, found = lengths.split(group_sizes(lengths.tolist(), most)), []
    for part, group in zip(flat.split([int(group.sum()) for group in groups]), groups, strict=True):
        rows, padding, places = padded(part, group)
        given = run(rows, padding)
        if given.dim() == 3:
            given = given.flatten(0, 1)
            given = given if places is None else given.index_select(0, places)
        found.append(given)
    return torch.cat(found) if found[1:] else found[0]


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
