"""Layers by their formulas, in NumPy and float64, to compare the library with."""

import math
from collections.abc import Sequence

import numpy as np
from torch import Tensor, nn

from adalayers.fusion.projections import Projected


def array(tensor: Tensor) -> np.ndarray:
    """Return a tensor's numbers in float64."""
    return tensor.detach().double().numpy()


def gelu(x: np.ndarray) -> np.ndarray:
    """Return x Phi(x)."""
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def softmax(x: np.ndarray) -> np.ndarray:
    """Return the softmax over the last dimension."""
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def normalised(x: np.ndarray, norm: nn.Module | None = None) -> np.ndarray:
    """Return (x - mean) / sqrt(var + 1e-5) over the last dimension, with the scale and shift of `norm`."""
    given = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return given if norm is None else given * array(norm.weight) + array(norm.bias)


def read(projected: Projected, hidden: Sequence[Tensor]) -> list[np.ndarray]:
    """Return all hidden states as a method reads them: as they are, or N(gelu(Z_i) W_i^T)."""
    if projected.project is None:
        return [array(state) for state in hidden]
    pairs = zip(hidden, projected.project, strict=True)
    return [normalised(gelu(array(state)) @ array(layer.weight).T) for state, layer in pairs]
