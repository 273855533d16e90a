"""Sequences of unequal length laid end to end: which rows are theirs, and their way to a device."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def ragged_rows(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return the rows starts[i]..starts[i] + lengths[i] of every i, end to end, int64 [sum of lengths]."""
    shift = np.repeat(starts - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
    return np.arange(lengths.sum(), dtype=np.int64) + shift


def ragged_index(offsets: np.ndarray, examples: np.ndarray) -> np.ndarray:
    """Return the rows of `examples`, end to end, where example i owns the rows offsets[i]..offsets[i + 1]."""
    return ragged_rows(offsets[examples], offsets[examples + 1] - offsets[examples])


def moved(tensor: Tensor, device: torch.device) -> Tensor:
    """Return `tensor` on `device`; a copy to a GPU does not wait for what the GPU is doing."""
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)
