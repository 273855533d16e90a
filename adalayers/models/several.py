"""Several models of one shape as one: each parameter has a leading dimension of members."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from adalayers.fusion.fusion import Fusions, Stacked
from adalayers.models.heads import build_head, sinusoidal_positions
from adalayers.models.model import FusionModel
from adalayers.tensors.cpu_dropout import Dropout
from adalayers.tensors.members import Dropouts, Part
from adalayers.tensors.ragged import length_groups, padded

_OF_THE_HEAD = ("read_out", "heads", "positions", "encoder_layers", "feedforward", "classifier_layers")


def alike(model: FusionModel) -> Hashable:
    """Return what must be the same of models that `FusionModels` computes as one; None: this one runs alone."""
    of_fusion = model.fusion.alike()
    if type(model) is not FusionModel or of_fusion is None:
        return None
    settings = model.config.values()
    return type(model.fusion), of_fusion, model.shape, *(settings[name] for name in _OF_THE_HEAD)


class FusionModels(nn.Module):
    """Models that are `alike`, as one, over a batch that all read, or over batches of as many sequences.

    The members' own parameters become views of the stacked ones: each can still be read, saved, loaded and trained by
    itself.
    """

    fusion: Fusions

    def __init__(self, members: Sequence[FusionModel]):
        super().__init__()
        first = members[0]
        self.config, self.shape = first.config, first.shape
        self.parts: Sequence[Part] = ()
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
                drawing = Dropouts([head.get_submodule(name) for head in heads], name, lambda: self.parts)  # type: ignore[misc]
                setattr(self.head.get_submodule(within), own_name, drawing)
        for stacked in self.stacked:
            for owner, row in zip(stacked.owners, stacked.rows(), strict=True):
                if owner is not None:
                    owner.data = row.view(owner.shape)

    def forward(
        self, states: Iterable[Float[Tensor, "batches*tokens K"]], parts: Sequence[Part]
    ) -> list[Float[Tensor, "members items outputs"]]:
        """Return the outputs of each batch's members, of states as `Fusions.mixed` reads them."""
        self.parts = parts
        fused = self.fusion.mixed(states, parts)
        longest = torch.stack([part.lengths for part in parts]).amax(dim=0)
        groups, _ = length_groups(longest, self.head.pass_tokens)
        given: list[list[Tensor]] = [[] for _ in parts]
        first = 0
        for group in groups:
            for part in parts:
                part.now = slice(first, first + len(group))
            for outputs, more in zip(given, self._padded_outputs(fused, int(group.max())), strict=True):
                outputs.append(more)
            first += len(group)
        return [outputs[0] if len(outputs) == 1 else torch.cat(outputs, dim=-2) for outputs in given]

    def _padded_outputs(self, fused: Float[Tensor, "tokens members k"], time: int) -> list[Tensor]:
        """Return what the head gives by batch for the sequences that it is given `now`, padded to `time` tokens."""
        rows, paddings, real_rows = zip(*(self._rows(fused, part, time) for part in self.parts), strict=True)
        padding = paddings[0]
        if len(self.parts) > 1 and any(each is not None for each in paddings):
            sizes = [(len(part.members), len(part.lengths[part.now]), time) for part in self.parts]
            nowhere = torch.zeros((), dtype=torch.bool, device=fused.device)
            each = zip(paddings, sizes, strict=True)
            padding = torch.cat([(nowhere if own is None else own).expand(size) for own, size in each])
        outputs = self.head(rows[0] if len(rows) == 1 else torch.cat(rows), padding)
        by_batch = outputs.split([len(part.members) for part in self.parts])
        if self.shape.head == "sequence":
            return list(by_batch)
        flat = [own.flatten(-3, -2) for own in by_batch]
        return [
            own if real is None else own.index_select(-2, real)
            for own, real in zip(flat, real_rows, strict=True)
        ]

    def _rows(
        self, fused: Float[Tensor, "tokens members k"], part: Part, time: int
    ) -> tuple[Float[Tensor, "own batch time k"], Tensor | None, Tensor | None]:
        """Return a batch's sequences that the head is given, as `padded` returns them, for each who reads it."""
        before, lengths = part.lengths[: part.now.start], part.lengths[part.now]
        start = int(before.sum())
        own = fused[start : start + int(lengths.sum()), part.members.start : part.members.stop]
        rows, padding, real_rows = padded(own.flatten(1), lengths, time)
        rows = rows.unflatten(-1, own.shape[1:]).movedim(2, 0)
        if self.config.positions:
            rows = rows + sinusoidal_positions(*rows.shape[-2:]).to(rows)
        return rows, padding, real_rows
