"""Layers of several models at once: with a leading dimension of members in parameters and inputs, or without one."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from adalayers.tensors.cpu_dropout import Dropout


def linear(x: Float[Tensor, "... i"], weight: Tensor, bias: Tensor) -> Float[Tensor, "... o"]:
    """Return x W^T + b, of W [o, i], or of W [members, o, i] and x [members, ..., i], each with its own."""
    if weight.dim() == 2:
        return functional.linear(x, weight, bias)
    product = torch.baddbmm(bias.unsqueeze(1), x.flatten(1, -2), weight.transpose(1, 2))
    return product.view(*x.shape[:-1], -1)


class Linear(nn.Linear):
    """`nn.Linear`, of one model or of several."""

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)


class LayerNorm(nn.LayerNorm):
    """`nn.LayerNorm` of the last dimension, of one model or of several."""

    def forward(self, x: Tensor) -> Tensor:
        if self.weight.dim() == 1:
            return super().forward(x)
        several = (len(x), *[1] * (x.dim() - 2), -1)
        normal = functional.layer_norm(x, self.normalized_shape, eps=self.eps)
        return normal * self.weight.view(several) + self.bias.view(several)


class Dropouts(nn.Module):
    """The dropout of several models, each of which draws as it does alone."""

    def __init__(self, members: Sequence[Dropout]):
        super().__init__()
        self._members = tuple(members)

    def forward(self, x: Float[Tensor, "members ..."]) -> Float[Tensor, "members ..."]:
        if all(member.mask is None for member in self._members):
            return x
        return torch.stack([member(part) for member, part in zip(self._members, x, strict=True)])
