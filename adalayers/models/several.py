"""Several models of one shape as one: each parameter has a leading dimension of members."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import torch
from torch import nn

from adalayers.fusion.fusion import Fusions, Stacked
from adalayers.models.heads import build_head
from adalayers.models.model import FusionModel
from adalayers.tensors.cpu_dropout import Dropout
from adalayers.tensors.members import Dropouts

_OF_THE_HEAD = ("read_out", "heads", "positions", "encoder_layers", "feedforward", "classifier_layers")


def alike(model: FusionModel) -> Hashable:
    """Return what must be the same of models that `FusionModels` computes as one; None: this one runs alone."""
    of_fusion = model.fusion.alike()
    if type(model) is not FusionModel or of_fusion is None:
        return None
    settings = model.config.values()
    return type(model.fusion), of_fusion, model.shape, *(settings[name] for name in _OF_THE_HEAD)


class FusionModels(FusionModel):
    """Models that are `alike`, as one: `forward` returns [members, items, outputs].

    The members' own parameters become views of the stacked ones: each can still be read, saved, loaded and trained by
    itself.
    """

    fusion: Fusions

    def __init__(self, members: Sequence[FusionModel]):
        nn.Module.__init__(self)
        first = members[0]
        self.config, self.shape, self.about = first.config, first.shape, {}
        self.fusion = type(first.fusion).together([member.fusion for member in members])
        with torch.device("meta"):
            self.head = build_head(first.config, first.shape, first.fusion.width)
        self.stacked = self.fusion.stacked()
        heads = [member.head for member in members if member.head is not None]
        for name, _ in list(self.head.named_parameters()):
            owners = [head.get_parameter(name) for head in heads]
            whole = nn.Parameter(torch.stack([owner.detach() for owner in owners]))
            within, _, own_name = name.rpartition(".")
            setattr(self.head.get_submodule(within), own_name, whole)
            self.stacked.append(Stacked(whole, owners))
        for name, module in list(self.head.named_modules()):
            if isinstance(module, Dropout):
                within, _, own_name = name.rpartition(".")
                drawing = Dropouts([head.get_submodule(name) for head in heads])  # type: ignore[misc]
                setattr(self.head.get_submodule(within), own_name, drawing)
        for stacked in self.stacked:
            for owner, row in zip(stacked.owners, stacked.rows(), strict=True):
                if owner is not None:
                    owner.data = row.view(owner.shape)
