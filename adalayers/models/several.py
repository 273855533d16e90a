"""Several models of one shape as one: each parameter has a leading dimension of members."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor

from adalayers.config import HeadConfig
from adalayers.models.heads import build_head
from adalayers.models.model import FusionModel
from adalayers.tensors.dropout import Dropout
from adalayers.tensors.layers import LayerNorm

if TYPE_CHECKING:  # a room above makes them
    from adalayers.training.batches import Batches

_OF_THE_HEAD = [field.name for field in dataclasses.fields(HeadConfig) if field.name != "dropout"]
"""What must be the same of heads: all but how much drops out."""


def alike(model: FusionModel) -> Hashable:
    """Return what must be the same of models that `FusionModels` computes as one; None: this one runs alone."""
    of_fusion = model.fusion.alike()
    if type(model) is not FusionModel or of_fusion is None:
        return None
    settings = model.config.values()
    return *of_fusion, model.shape, *(settings[name] for name in _OF_THE_HEAD)


class FusionModels:
    """Models that are `alike`, as one, over batches of as many sequences; their parameters are given.

    Attributes:
        dropouts: Those of the head that act.
    """

    def __init__(self, members: Sequence[FusionModel]):
        first = members[0]
        heads: list[Any] = [member.head for member in members]
        of_fusion = first.fusion.alike()
        assert of_fusion is not None
        self.fusion = of_fusion[0]([member.fusion for member in members])
        with torch.device("meta"):
            self.head = build_head(first.config, first.shape, first.fusion.width)
        self._slots, self._dropouts = [], []
        for where, module in self.head.named_modules():
            if isinstance(module, Dropout):
                module.where, module.ps = where, [head.get_submodule(where).p for head in heads]
                self._dropouts.append(module)
            for name, parameter in [*module.named_parameters(recurse=False)]:
                del module._parameters[name]  # its place is taken by a part of what is given
                self._slots.append((module, name, parameter.shape))
        self.dropouts = [each.where for each in self._dropouts if each.acts]
        self._sizes = [shape.numel() for *_, shape in self._slots]

    def forward(self, values: Sequence[Tensor], batches: Batches) -> Float[Tensor, "members items outputs"]:
        """Return each member's outputs for what has a label in its batch: its sequences, or words of them.

        Args:
            values:  Of each of the `parameter_groups`, the head's first, as the fusions' `mixed` takes them.
            batches: Of the members.
        """
        of_head, *of_fusion = values[0].flatten(1), *values[1:]
        full = low = of_head.split(self._sizes, 1)
        if torch.is_autocast_enabled(kind := of_head.device.type):  # once for all groups of lengths
            low = of_head.to(torch.get_autocast_dtype(kind)).split(self._sizes, 1)
        for (module, name, shape), exact, quick in zip(self._slots, full, low, strict=True):
            own = exact if isinstance(module, LayerNorm) else quick
            module.__dict__[name] = own.view(len(of_head), *shape)
        for dropout in self._dropouts:
            dropout.batches, dropout.training = batches, batches.training
        padded = batches.padded(self.fusion.mixed(of_fusion, batches))
        read = [self.head.read(self.head.placed(x), padding).flatten(1, -2) for x, padding in padded]
        return self.head.classify(batches.labelled(torch.cat(read, 1) if read[1:] else read[0])).float()
