"""Convolution along depth, token by token (Shih and Harwath 2024, arXiv 2406.12209: Hierarchical Convolution)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from adalayers.fusion.fusion import Fusion, Lengths, States
from adalayers.fusion.projections import Projected, ProjectedConfig
from adalayers.states import Shape, State

KERNEL, STRIDE = 5, 3
"""Layers that one step of a convolution reads, and how far the next is: those of the released code."""


@dataclass(frozen=True, kw_only=True)
class DepthConvolutionConfig(ProjectedConfig):
    """Hyperparameters of convolution along depth: `k` and `own_width` alone, next to those of every method."""

    fusion: ClassVar[str] = "depth-convolution"
    token_by_token: ClassVar[bool] = True


def depths(layers: int) -> list[int]:
    """Return how many places along depth there are after each convolution: floor(log_3 l) of them, at least one."""
    left, counts = layers, list[int]()
    while not counts or STRIDE ** (len(counts) + 1) <= layers:
        left = (left - 1) // STRIDE + 1
        counts.append(left)
    return counts


class DepthConvolution(Fusion, config=DepthConvolutionConfig):
    """Convolutions over the l hidden states x_i of a token, as they are or projected (`Projected`), side by side:

        y^0_i = x_i;  y^c_j = relu(b^c + sum_{d=-2..2} W^c_d y^{c-1}_{3 j + d}), zeros beyond the ends, j = 0..
        F     = the last y's places, one channel after the other

    There are floor(log_3 l) of them, all of the width of x but the last, whose channels make up that width together
    with the places that are left. As in the released code, but for widths that the places do not divide: there the
    width becomes smaller, here the last channels are rounded up and F is cut to the width. With one or two layers there
    is one convolution. It was made for speech and read there frame by frame; projections are ours.

    A state that `without` takes away is zeros, as beyond the ends.
    """

    def __init__(self, config: DepthConvolutionConfig, shape: Shape):
        super().__init__(config, shape)
        self.projected = Projected(self.states, shape.width, config.projected_to)
        counts = depths(len(self.states))
        channels = [self.width] * (len(counts) - 1) + [-(-self.width // counts[-1])]
        self.convolutions = nn.ModuleList(
            nn.Conv1d(self.width, out, KERNEL, STRIDE, padding=KERNEL // 2) for out in channels
        )

    def fuse(self, states: States, lengths: Lengths, live: list[State]) -> Float[Tensor, "tokens width"]:
        """Return F, float32."""
        read = {state: self.projected(state, states[state]) for state in live}
        empty = torch.zeros_like(read[live[0]])
        along = torch.stack([read.get(state, empty) for state in self.states], dim=-1)
        for convolution in self.convolutions:
            along = functional.relu(convolution(along))
        return along.flatten(1)[:, : self.width].float()

    def kept_at_use(self, inner: int) -> int:
        """Return the width of each layer read: the first convolution reads all of them."""
        return len(self.live()) * self.width
