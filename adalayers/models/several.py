"""Several models of one shape as one: each parameter has a leading dimension of members."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Hashable, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from adalayers.config import HeadConfig
from adalayers.models.heads import build_head, sinusoidal_positions
from adalayers.models.model import FusionModel
from adalayers.tensors.dropout import Dropout
from adalayers.tensors.members import Batches, LayerNorm
from adalayers.tensors.ragged import to_device

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
        self.config = first.config
        of_fusion = first.fusion.alike()
        assert of_fusion is not None
        self.fusion = of_fusion[0]([member.fusion for member in members])
        with torch.device("meta"):
            self.head = build_head(first.config, first.shape, first.fusion.width)
        heads: list[Any] = [member.head for member in members]
        self._slots = []
        for name, parameter in list(self.head.named_parameters()):
            within, _, own_name = name.rpartition(".")
            module = self.head.get_submodule(within)
            del module._parameters[own_name]  # its place is taken by a part of what is given
            self._slots.append((module, own_name, parameter.shape))
        self._dropouts = [module for module in self.head.modules() if isinstance(module, Dropout)]
        for name, module in self.head.named_modules():
            if isinstance(module, Dropout):
                module.where, module.ps = name, [head.get_submodule(name).p for head in heads]
        self.dropouts = [each.where for each in self._dropouts if each.acts]
        self._of_head = [shape.numel() for *_, shape in self._slots]

    def forward(self, values: Sequence[Tensor], batches: Batches) -> Float[Tensor, "members items outputs"]:
        """Return each member's outputs for what is asked of its batch: its sequences, or words of them.

        Args:
            values: Of each of the `parameter_groups`, the head's first, as the fusions' `mixed` takes them.
        """
        of_head, *of_fusion = values[0].flatten(1), *values[1:]
        full = low = of_head.split(self._of_head, 1)
        if torch.is_autocast_enabled(kind := of_head.device.type):  # once for all groups of lengths
            low = of_head.to(torch.get_autocast_dtype(kind)).split(self._of_head, 1)
        for (module, name, shape), exact, quick in zip(self._slots, full, low, strict=True):
            own = exact if isinstance(module, LayerNorm) else quick
            module.__dict__[name] = own.view(len(of_head), *shape)
        for dropout in self._dropouts:
            dropout.batches = batches
        rows = self.fusion.mixed(of_fusion, batches)
        sizes, numbers = [n * time for n, time in batches.groups], batches.numbers
        paddings: Sequence[Tensor | None] = [None] * len(sizes)
        if "padding" in numbers:
            rows = rows.new_zeros(sum(sizes), *rows.shape[1:]).index_copy(0, numbers["places"], rows)
            paddings = batches.by_member(numbers["padding"]).split(sizes, 1)
        first, read = 0, []
        for (n, time), own, padding in zip(batches.groups, rows.split(sizes), paddings, strict=True):
            batches.now, first = slice(first, first + n), first + n
            x = own.unflatten(0, (n, time)).movedim(2, 0)
            if self.config.positions:
                x = x + _positions(time, x.shape[-1], x.device, x.dtype)
            given = self.head.read(x, None if padding is None else padding.unflatten(1, (n, time)))
            read.append(given.flatten(1, -2))
        joint = torch.cat(read, 1) if read[1:] else read[0]
        if (words := numbers.get("words")) is not None:
            if len(words) == 1:
                joint = joint.index_select(1, words[0])
            else:
                joint = joint.take_along_dim(batches.by_member(words).unsqueeze(-1), 1)
        return self.head.classify(joint).float()


@functools.lru_cache(maxsize=256)
def _positions(time: int, k: int, device: torch.device, dtype: torch.dtype) -> Float[Tensor, "time k"]:
    return to_device(sinusoidal_positions(time, k).to(dtype), device)
