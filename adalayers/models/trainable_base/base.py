"""A trial's own copy of a base model: changed, and run with gradients, as deep as it is read."""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from adalayers.backbones.backbone import Backbone, list_of_layers, with_token_types
from adalayers.errors import BadInput
from adalayers.states import State
from adalayers.tensors.ragged import Lengths, length_groups, to_device

Ids = Int[Tensor, " tokens"]
"""A number of each token, sequences end to end."""

PASS_TOKENS = 128
"""On a CPU, about as many tokens of padding cost as much as a further pass over a group of sequences."""


class _Reached(Exception):
    """The deepest hidden state that is read is there: what follows need not be run."""


class Base(nn.Module):
    """A copy of a backbone's model; all of it is frozen until `train_layers` or others say what is trained.

    Args:
        backbone: What is copied; it is never changed.

    Raises:
        BadInput: A model in which no list of all its layers is found.
    """

    def __init__(self, backbone: Backbone):
        super().__init__()
        self.model: Any = copy.deepcopy(backbone.model)
        self.stream, self.final_norm, self.pad_id = backbone.stream, backbone.final_norm, backbone.pad_id
        name = list_of_layers(self.model, self.stream.layers)
        if name is None:
            raise BadInput(
                f"wanted a base model with a list of its {self.stream.layers} layers, "
                f"{type(self.model).__name__} has none; choose another backbone, or base_model=frozen"
            )
        self._layers = name
        for module in self.model.modules():
            if hasattr(module, "layerdrop"):
                module.layerdrop = 0.0  # type: ignore[assignment]  # a layer that is left out has no hidden state

    @property
    def layers(self) -> Any:
        """The list of its layers; layer i stands at i - 1."""
        return self.model.get_submodule(self._layers)

    def cut(self, deepest: int) -> None:
        """Remove what is not run where no hidden state beyond layer `deepest` is read."""
        del self.layers[deepest + 1 :]  # the next one stays: what enters it is the hidden state `deepest`

    def train_layers(self, first: int, last: int, *, others: bool, states: Sequence[State]) -> None:
        """Train layers first..last, and what belongs to no layer (embeddings) if `others`.

        What no gradient from `states` reaches is left frozen: a pooler, a norm behind a layer that is not run.
        """
        of_layers = {id(p) for layer in self.layers for p in layer.parameters()}
        chosen = [p for layer in self.layers[first - 1 : last] for p in layer.parameters()]
        if others:
            chosen = [*(p for p in self.model.parameters() if id(p) not in of_layers), *chosen]
        for parameter in chosen:
            parameter.requires_grad_(True)
        for parameter in self._unreached(chosen, states):
            parameter.requires_grad_(False)

    def _unreached(self, parameters: Sequence[nn.Parameter], states: Sequence[State]) -> list[nn.Parameter]:
        """Return those of `parameters` that `states` do not depend on."""
        was_training = self.training
        self.eval()
        with torch.enable_grad():
            ids = torch.full((2,), self.pad_id, device=parameters[0].device)
            read = self(ids, torch.tensor([2]), states)
            total = torch.stack([values.sum() for values in read.values()]).sum()
            gradients = torch.autograd.grad(total, parameters, allow_unused=True)
        self.train(was_training)
        return [p for p, gradient in zip(parameters, gradients, strict=True) if gradient is None]

    def forward(
        self, input_ids: Ids, lengths: Lengths, states: Iterable[State], token_types: Ids | None = None
    ) -> dict[State, Float[Tensor, "tokens K"]]:
        """Return the hidden states `states` of ragged sequences, real tokens end to end.

        `lengths` are on the CPU and best sorted: neighbours are padded together. `token_types` tells the texts of a
        pair apart.
        """
        wanted = list(states)
        if not wanted:
            return {}
        most = PASS_TOKENS if input_ids.device.type == "cpu" else 1 << 30  # a GPU's passes are best large
        groups, sizes = length_groups(lengths, most)
        types = [None] * len(groups) if token_types is None else token_types.split(sizes)
        parts = zip(input_ids.split(sizes), groups, types, strict=True)
        read = [self._padded_states(ids, group, wanted, group_types) for ids, group, group_types in parts]
        given = {state: torch.cat([part[state] for part in read]) for state in wanted}
        # All or none want gradients (`Workspace.activated`): frozen embeddings below adapters want none by themselves.
        if any(values.requires_grad for values in given.values()):
            for values in given.values():
                values.requires_grad_()
        return given

    def _padded_states(
        self, input_ids: Ids, lengths: Lengths, states: Sequence[State], token_types: Ids | None
    ) -> dict[State, Tensor]:
        """Return the hidden states of a group of sequences that are padded to one length."""
        real = torch.arange(int(lengths.max())) < lengths.unsqueeze(1)  # [batch, time], on the CPU
        rows = to_device(real.flatten().nonzero().squeeze(1), input_ids.device)
        # RoBERTa's kind counts positions by what is no pad token, so padding has to be that token.
        ids = input_ids.new_full((real.numel(),), self.pad_id).index_copy(0, rows, input_ids).view(real.shape)
        types = None
        if token_types is not None:
            types = token_types.new_zeros(real.numel()).index_copy(0, rows, token_types).view(real.shape)
        given = self._run(ids, to_device(real.long(), input_ids.device), states, types)
        return {state: values.flatten(0, 1).index_select(0, rows) for state, values in given.items()}

    def _run(
        self, ids: Tensor, mask: Tensor, states: Sequence[State], types: Tensor | None
    ) -> dict[State, Tensor]:
        """Return hidden states [batch, time, K], running no layer beyond the deepest of them."""
        seen: dict[State, Tensor] = {}
        deepest = max(state.number for state in states)

        def record(state: State, module: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
            """Record what enters a module as the hidden state; stop the pass where that is the deepest one."""
            seen[state] = inputs[0] if inputs else named["hidden_states"]
            if state.number == deepest and not state.before_norm:
                raise _Reached

        with contextlib.ExitStack() as hooks:
            for state in states:
                if state.number < self.stream.layers:
                    entered = self.layers[state.number]
                elif state.before_norm:
                    entered = self.model.get_submodule(self.final_norm or "")
                else:
                    continue
                own = functools.partial(record, state)
                hooks.enter_context(entered.register_forward_pre_hook(own, with_kwargs=True))
            with contextlib.suppress(_Reached):
                output = self.model(
                    input_ids=ids,
                    attention_mask=mask,
                    return_dict=True,
                    **with_token_types(self.model, types),
                )
                seen |= {state: output.last_hidden_state for state in states if state not in seen}
        return seen
