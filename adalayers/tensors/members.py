"""Layers of several models at once: with a leading dimension of members in parameters and inputs, or without one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from adalayers.states import State
from adalayers.tensors.counted_dropout import factors, hashed
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
class Batches:
    """The batches that members pass in one step, one of each part of them: as many sequences, the shorter ones first.

    A sequence has as many tokens in all of them, those of its batch and then its first one again, and lies with its
    neighbours in a group that is padded to one length.

    Attributes:
        parts:    By batch, the members that read it, next to each other.
        examples: By batch, int64 [sequences].
        groups:   (sequences, tokens) of each group.
        of_member: int64 [members], the batch of each; None where there is one.
        places:   int64 [tokens], where they go in the padded groups; None: nothing is padded.
        padding:  bool [batches, padded tokens], True where nothing is; None: nowhere.
        words:    int64 [batches, items], the padded tokens that are asked for; None: whole sequences are.
        labels:   [batches, items]
        shares:   [batches, items], of an item in its batch's mean.
        keys:     int32 by place in the model, [batches, sequences] or [batches, tokens], where dropout counts.
        states:   Gives hidden states [batches * tokens, K], one after the other.
        training: Whether something drops out.
        streams:  That dropout draws from, by batch; None: it counts.
        now:      Which of the sequences a head is given.
    """

    parts: Sequence[range]
    examples: Sequence[np.ndarray]
    groups: Sequence[tuple[int, int]]
    states: Callable[[Sequence[State]], Iterable[Tensor]]
    training: bool = False
    streams: Sequence[torch.Generator] | None = None
    now: slice = field(default_factory=lambda: slice(None))
    of_member: Int[Tensor, " members"] | None = None
    places: Int[Tensor, " tokens"] | None = None
    padding: Bool[Tensor, "batches padded"] | None = None
    words: Int[Tensor, "batches items"] | None = None
    labels: Tensor | None = None
    shares: Float[Tensor, "batches items"] | None = None
    keys: Mapping[str, Int[Tensor, "batches rows"]] = field(default_factory=dict)

    def by_member(self, each: Float[Tensor, "batches ..."]) -> Float[Tensor, "members ..."]:
        """Return what is given by batch, by member; of one batch as it is, [1, ...]."""
        return each if self.of_member is None else each.index_select(0, self.of_member)


class Dropouts(nn.Module):
    """The dropout of several models: drawn from a stream of each batch, as a model does alone, or counted.

    Args:
        members: The models' own; where they draw, all drop out or none does.
        where:   Their name in the model.

    Attributes:
        batches: Of the step.
    """

    batches: Batches

    def __init__(self, members: Sequence[Dropout], where: str):
        super().__init__()
        self.members, self.where = tuple(members), where

    @property
    def acts(self) -> bool:
        """Whether something drops out in training."""
        return any(member.acts for member in self.members)

    @property
    def mask(self) -> Callable[[Tensor], Tensor] | None:
        """What gives the factors of a tensor [members, sequences, ...] now; None: nothing drops out."""
        return self._mask if self.batches.training and self.acts else None

    def forward(self, x: Float[Tensor, "members ..."]) -> Float[Tensor, "members ..."]:
        return x if (mask := self.mask) is None else x * mask(x)

    def _mask(self, x: Tensor) -> Tensor:
        batches, ps = self.batches, tuple(member.p for member in self.members)
        if batches.streams is None:
            keys = batches.keys[self.where][:, batches.now]
            return factors(batches.by_member(hashed(keys, x.shape[2:])), ps)
        parts = zip(batches.parts, batches.streams, strict=True)
        masks = [_drawn(x[part.start], ps[part.start : part.stop], stream) for part, stream in parts]
        if len(masks) == 1:
            return masks[0]
        parts = zip(batches.parts, masks, strict=True)
        return torch.cat([mask.expand(len(part), *x.shape[1:]) for part, mask in parts])


def _drawn(x: Tensor, ps: Sequence[float], stream: torch.Generator) -> Float[Tensor, "members ..."]:
    """Return the factors of models that draw the same numbers for probabilities of their own; [1, *x] for one."""
    began, masks = stream.get_state(), {}
    for p in dict.fromkeys(ps):
        stream.set_state(began)
        masks[p] = dropout_mask(x, p, stream)
    return torch.stack([masks[p] for p in ps]) if len(masks) > 1 else masks[ps[0]].unsqueeze(0)
