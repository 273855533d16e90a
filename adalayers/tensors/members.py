"""Layers of several models at once: with a leading dimension of members in parameters and inputs, or without one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from adalayers.tensors.counted_dropout import Draws, factors
from adalayers.tensors.cpu_dropout import Dropout, dropout_mask


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


@dataclass
class Part:
    """A batch that some of the members read.

    Attributes:
        members:  Which ones, next to each other.
        lengths:  int64 [batch], on the CPU.
        examples: int64 [batch]: what the draws of dropout are told by.
        draws:    Where dropout counts instead of drawing: the members' draws in this step.
        now:      Which of the sequences a head is given.
    """

    members: range
    lengths: Tensor
    examples: np.ndarray
    draws: Draws | None = None
    now: slice = field(default_factory=lambda: slice(None))

    def mask(self, where: str, ps: Sequence[float], shape: Sequence[int], like: Tensor) -> Tensor:
        """Return what `like` [members, sequences, *shape] is multiplied by where `where` in the models drops out."""
        assert self.draws is not None
        return factors(self.draws.keys(where, self.examples[self.now]), ps, shape, like)

    def mask_of_tokens(self, where: str, ps: Sequence[float], width: int, like: Tensor) -> Tensor:
        """Return what is multiplied by, [members, tokens, width], of sequences end to end."""
        assert self.draws is not None
        lengths = self.lengths.numpy()
        places = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        keys = self.draws.keys(where, np.repeat(self.examples, lengths), places)
        return factors(keys, ps, (width,), like)


class Dropouts(nn.Module):
    """The dropout of several models, each of which draws as it does alone, or all of which count.

    Args:
        members: The models' own.
        where:   Their name in the model.
        parts:   Returns the batches of the step.
    """

    def __init__(self, members: Sequence[Dropout], where: str, parts: Callable[[], Sequence[Part]]):
        super().__init__()
        self._members, self._where, self._parts = tuple(members), where, parts

    @property
    def mask(self) -> Callable[[Tensor], Tensor] | None:
        """That of the first member whose dropout acts now; None: nothing drops out."""
        return next((mask for member in self._members if (mask := member.mask) is not None), None)

    def forward(self, x: Float[Tensor, "members ..."]) -> Float[Tensor, "members ..."]:
        if self.mask is None:
            return x
        parts = self._parts()
        if parts[0].draws is None:
            return self._drawn(x)
        ps = [[self._members[m].p for m in part.members] for part in parts]
        own = [part.mask(self._where, p, x.shape[2:], x) for part, p in zip(parts, ps, strict=True)]
        return x * torch.cat(own)

    def _drawn(self, x: Float[Tensor, "members ..."]) -> Float[Tensor, "members ..."]:
        """Drop out by the members' streams; where these stand alike, as of arms of one seed, one draw is for all."""
        ps = {member.p for member in self._members}
        streams = [member.generator for member in self._members if member.generator is not None]
        states = [stream.get_state() for stream in streams]
        alike = all(torch.equal(state, states[0]) for state in states)
        if len(ps) > 1 or len(streams) < len(self._members) or not alike:
            return torch.stack([member(own) for member, own in zip(self._members, x, strict=True)])
        mask = dropout_mask(x[0], ps.pop(), streams[0])
        for stream in streams[1:]:
            stream.set_state(streams[0].get_state())
        return x * mask
