"""A frozen transformer, read layer by layer."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from adalayers.backbones.families import Family
from adalayers.errors import BadInput
from adalayers.states import State, Stream
from adalayers.tensors.ragged import Lengths, PaddedGroups

Ids = Int[Tensor, " tokens"]
"""A number of each token, sequences end to end."""


class Backbone(nn.Module):
    """A frozen transformer that gives its hidden states: nothing trains it, nothing leaves eval mode.

    Attributes:
        model: The module that the first stream is read from; of an encoder-decoder model whose decoder is read too, the
            whole model.
        streams: The streams that are read.
        states: The hidden states that are given; None: all of the streams'.
        width: K.
        family: How its hidden states are read.
        pad_id: Stands at padding; as the model's config says, else 0.
        depth: Layers that the model still has, where those beyond it were left out.
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        streams: Sequence[Stream],
        width: int,
        family: Family,
        states: Sequence[State] | None = None,
        depth: int | None = None,
    ):
        super().__init__()
        self.model = model.requires_grad_(False)
        self.streams, self.width = tuple(streams), width
        all_states = tuple(state for stream in streams for state in stream.states())
        self.states = all_states if states is None else tuple(states)
        self.family, self.depth = family, depth
        pad_id = getattr(getattr(model, "config", None), "pad_token_id", None)
        self.pad_id = max(pad_id or 0, 0)  # some say -1
        self.train(False)

    def train(self, mode: bool = True) -> Backbone:
        """Stay in eval mode, whatever `mode` says: dropout in a frozen model would only add noise."""
        super().train(False)
        return self

    def forward(
        self,
        input_ids: Int[Tensor, "batch time"],
        attention_mask: Int[Tensor, "batch time"],
        token_types: Int[Tensor, "batch time"] | None = None,
    ) -> dict[State, Float[Tensor, "batch time width"]]:
        """Return the hidden states, in the order of `states`.

        `attention_mask` is 1 on tokens, 0 on padding, which stands right of them; what stands at padding, in and
        out, means nothing. A decoder's states are causal: one depends on its token and those to the left of it. The
        decoder of an encoder-decoder model reads the same text moved one place to the right, as it was trained to: its
        state at a token depends on all of the encoder's and on the tokens before it. `token_types` tells the texts of a
        pair apart; models that were made without such ignore it.

        Raises:
            BadInput: For a model whose streams are not l layers of one width.
        """
        if not self.training:
            self.model.eval()  # someone may have called model.train() past our own
        # RoBERTa's kind counts positions by what is no pad token, so padding has to be that token.
        input_ids = input_ids.masked_fill(attention_mask == 0, self.pad_id)
        given = {"input_ids": input_ids, "attention_mask": attention_mask}
        if len(self.streams) > 1:
            moved = self._moved(input_ids, attention_mask)
            given |= {"decoder_input_ids": moved, "decoder_attention_mask": attention_mask}
        elif token_types is not None and (getattr(self.model.config, "type_vocab_size", 0) or 0) > 1:
            given["token_type_ids"] = token_types
        before_norm: list[list[Tensor]] = [[] for _ in self.streams]
        with ExitStack() as hooks:  # which do not stay: a copy of the model would note as well
            for stream, module, seen in zip(self.streams, self.stream_modules(), before_norm, strict=True):
                if stream.final_norm:  # what enters it is the last state as the others are
                    norm = module.get_submodule(self.family.final_norm)
                    note = norm.register_forward_pre_hook(lambda _, inputs, seen=seen: seen.append(inputs[0]))
                    hooks.enter_context(note)
            output = self.model(**given, output_hidden_states=True, return_dict=True)
        every = dict[State, Tensor]()
        for stream, seen in zip(self.streams, before_norm, strict=True):
            own = output["hidden_states" if len(self.streams) == 1 else f"{stream.name}_hidden_states"]
            every |= self._named(stream, [*own, *seen])
        return {state: every[state] for state in self.states}

    def of_sequences(
        self, input_ids: Ids, lengths: Lengths, states: Collection[State], token_types: Ids | None = None
    ) -> dict[State, Float[Tensor, "tokens width"]]:
        """Return some hidden states of sequences, real tokens end to end; `lengths` are on the CPU."""
        group = PaddedGroups(lengths.numpy()[None], math.inf, input_ids.device)
        ((ids, padding),) = group.split(input_ids)
        mask = torch.ones_like(ids) if padding is None else (~padding[0]).long()
        types = None if token_types is None else next(group.split(token_types))[0]
        given = self(ids, mask, types)
        return {state: group.real(given[state].flatten(0, 1)) for state in states}

    def stream_modules(self) -> list[Any]:
        """Return the module within `model` that gives each stream's states."""
        model: Any = self.model
        return [model] if len(self.streams) == 1 else [model.get_encoder(), model.get_decoder()]

    def _moved(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Return what a decoder that attends to an encoder reads of the same texts."""
        if self.family.first == "last":
            first = input_ids.gather(1, attention_mask.sum(dim=1, keepdim=True) - 1)
        else:
            start: Any = getattr(self.model.config, "decoder_start_token_id", None)  # None is refused
            first = torch.full_like(input_ids[:, :1], start)
        return torch.cat([first, input_ids[:, :-1]], dim=1)

    def _named(self, stream: Stream, states: list[Tensor]) -> dict[State, Tensor]:
        """Return the states of a stream by name, its last one before a final norm at the end."""
        names = stream.states()
        if self.depth is not None:  # that layer's own lies behind no norm in the whole model
            names, states = names[: self.depth + 1], [*states[: self.depth], states[-1]]
        if len(states) != len(names) or any(state.shape[-1] != self.width for state in states):
            raise BadInput(
                f"wanted {len(names)} hidden states of width {self.width} from the backbone, "
                f"got widths {[state.shape[-1] for state in states]}; choose another backbone"
            )
        return dict(zip(names, states, strict=True))


def list_of_layers(model: nn.Module, layers: int) -> str | None:
    """Return the name of the first list of so many modules in the model; None where there is none."""
    for name, module in model.named_modules():
        if isinstance(module, nn.ModuleList) and len(module) == layers:
            return name
    return None
