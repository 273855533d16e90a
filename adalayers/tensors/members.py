"""Layers of several models at once: with a leading dimension of members in parameters and inputs, or without one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from adalayers.states import State
from adalayers.tensors.dropout import dropout_mask, factors, hashed


def linear(x: Float[Tensor, "... i"], weight: Tensor, bias: Tensor) -> Float[Tensor, "... o"]:
    """Return x W^T + b, of W [o, i], or of W [members, o, i] and x [members, ..., i], each with its own."""
    if weight.dim() == 2:
        return functional.linear(x, weight, bias)
    product = torch.baddbmm(bias.unsqueeze(1), x.flatten(1, -2), weight.transpose(1, 2))
    return product.view(*x.shape[:-1], product.shape[-1])


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


@dataclass(eq=False)
class Batches:
    """The batches that members pass in one step: of as many sequences, those of one place next to each other.

    A sequence has as many tokens as the longest of its place, its own and then its first one again, and lies with
    its neighbours in a group that is padded to one length.

    Attributes:
        members:  How many read each batch; those of one stand next to each other.
        groups:   (sequences, tokens) of each group.
        numbers:  By name, on the device:
                  padding    bool [batches, padded tokens], True where nothing is; absent: nowhere
                  places     int64 [tokens], where they go in the padded groups; absent: nothing is padded
                  words      int64 [batches, items], the padded tokens that are asked for; absent: whole sequences
                  labels, shares   [batches, items], to learn from, and what each counts in the mean over its batch
                  of_member  int64 [members], the batch of each; absent where there is one
                  and of counted dropout, by its name in the model, int32 [batches, sequences], or of the fusion's
                  [batches, tokens]
        training: Whether something drops out.
        stream:   That dropout draws from, of all members, who read one batch; None: it counts.
        states:   Gives hidden states [batches * tokens, K], one after the other.
        now:      Which of the sequences a head is given; all before it is.
    """

    members: Sequence[int]
    groups: Sequence[tuple[int, int]]
    numbers: dict[str, Any]
    training: bool
    stream: torch.Generator | None
    states: Callable[[Sequence[State]], Iterable[Tensor]]
    now: slice = field(default_factory=lambda: slice(None))

    def by_member(self, each: Float[Tensor, "batches ..."]) -> Float[Tensor, "members ..."]:
        """Return what is given by batch, by member; of one batch as it is, [1, ...]."""
        return each.index_select(0, self.numbers["of_member"]) if "of_member" in self.numbers else each

    def factors(
        self, where: str, ps: Sequence[float], like: Float[Tensor, "members rows ..."]
    ) -> Float[Tensor, "members rows ..."]:
        """Return what dropout multiplies rows by, [1, rows, ...] if it is the same for all members.

        Args:
            where: The part of the model.
            ps:    Each member's probability; where dropout draws, one for all.
        """
        if self.stream is not None:
            return dropout_mask(like[:1], ps[0], self.stream)
        keys = self.numbers[where][:, self.now]
        return factors(self.by_member(hashed(keys, like.shape[2:])), ps)
