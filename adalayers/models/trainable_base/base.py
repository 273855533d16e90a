"""A trial's own copy of a base model: changed, and run with gradients, as deep as it is read."""

from __future__ import annotations

import copy
from collections.abc import Collection, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from adalayers.backbones import pretrained
from adalayers.backbones.backbone import Backbone, Ids, list_of_layers
from adalayers.errors import BadInput
from adalayers.states import State
from adalayers.tensors.ragged import Lengths, group_sizes

PASS_TOKENS = 128
"""On a CPU, about as many tokens of padding cost as much as a further pass over a group of sequences."""


class Base(Backbone):
    """A copy of a backbone's model; all of it is frozen until `train_layers` or others say what is trained.

    Args:
        backbone: What is copied; it is never changed.

    Raises:
        BadInput: A model in which no list of all its layers is found.
    """

    def __init__(self, backbone: Backbone):
        super().__init__(
            copy.deepcopy(backbone.model),
            streams=backbone.streams,
            width=backbone.width,
            family=backbone.family,
        )
        name = list_of_layers(self.model, self.streams[0].layers)
        if name is None:
            raise BadInput(
                f"wanted a base model with a list of its {self.streams[0].layers} layers, "
                f"{type(self.model).__name__} has none; choose another backbone, or base_model=frozen"
            )
        self._layers = name
        for module in self.model.modules():
            if hasattr(module, "layerdrop"):
                module.layerdrop = 0.0  # type: ignore[assignment]  # a layer that is left out has no hidden state

    def train(self, mode: bool = True) -> Base:
        """Change the mode: what is trained drops out as it was pretrained."""
        return nn.Module.train(self, mode)

    @property
    def layers(self) -> Any:
        """The list of its layers; layer i stands at i - 1."""
        return self.model.get_submodule(self._layers)

    def cut(self, deepest: int) -> None:
        """Remove what is not run where no hidden state beyond layer `deepest` is read."""
        depth = max(1, deepest)  # a model has a layer
        if depth < self.streams[0].layers:
            del self.layers[depth:]
            pretrained.shorten(self.model.config, self.streams[0].layers, depth)
            self.depth, self.states = depth, tuple(self.streams[0].states()[: depth + 1])

    def train_layers(self, first: int, last: int, *, others: bool, states: Sequence[State]) -> None:
        """Train layers first..last, and what belongs to no layer (embeddings) if `others`.

        What no gradient from `states` reaches is left frozen: a pooler, a norm behind a layer that is not run.
        """
        self.model.requires_grad_(others)
        self.layers.requires_grad_(False)
        self.layers[first - 1 : last].requires_grad_(True)
        chosen = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        for parameter in self._unreached(chosen, states):
            parameter.requires_grad_(False)

    def _unreached(self, parameters: Sequence[nn.Parameter], states: Sequence[State]) -> list[nn.Parameter]:
        """Return those of `parameters` that `states` do not depend on."""
        was_training = self.training
        self.eval()
        with torch.enable_grad():
            ids = torch.full((2,), self.pad_id, device=parameters[0].device)
            read = self.of_sequences(ids, torch.tensor([2]), states)
            total = torch.stack([values.sum() for values in read.values()]).sum()
            gradients = torch.autograd.grad(total, parameters, allow_unused=True)
        self.train(was_training)
        return [p for p, gradient in zip(parameters, gradients, strict=True) if gradient is None]

    def of_sequences(
        self, input_ids: Ids, lengths: Lengths, states: Collection[State], token_types: Ids | None = None
    ) -> dict[State, Float[Tensor, "tokens K"]]:
        """Return what `Backbone.of_sequences` does; `lengths` are best sorted: neighbours are padded together."""
        most = PASS_TOKENS if input_ids.device.type == "cpu" else 1 << 30  # a GPU's passes are best large
        groups = lengths.split(group_sizes(lengths.tolist(), most))
        sizes = [int(group.sum()) for group in groups]
        types = [None] * len(groups) if token_types is None else token_types.split(sizes)
        parts = zip(input_ids.split(sizes), groups, types, strict=True)
        read = [super(Base, self).of_sequences(ids, group, states, own) for ids, group, own in parts]
        given = {state: torch.cat([part[state] for part in read]) for state in states}
        # All or none want gradients (`Workspace.activated`): frozen embeddings below adapters want none by themselves.
        if any(values.requires_grad for values in given.values()):
            for values in given.values():
                values.requires_grad_()
        return given
