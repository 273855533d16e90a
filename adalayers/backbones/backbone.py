"""A frozen transformer, read layer by layer."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import ExitStack
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from adalayers.backbones.families import Family
from adalayers.errors import BadInput
from adalayers.states import State, Stream
from adalayers.tensors.ragged import Lengths, padded

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
        pad_id: Stands at padding.
        start_id: What the decoder of an encoder-decoder model reads first; None: the text's last token.
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
        pad_id: int = 0,
        start_id: int | None = None,
        depth: int | None = None,
    ):
        super().__init__()
        self.model = model.requires_grad_(False)
        self.streams, self.width = tuple(streams), width
        all_states = tuple(state for stream in streams for state in stream.states())
        self.states = all_states if states is None else tuple(states)
        self.family, self.pad_id, self.start_id, self.depth = family, pad_id, start_id, depth
        self.train(False)

    @property
    def stream(self) -> Stream:
        """The first stream, which is the only one of most backbones."""
        return self.streams[0]

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
        if len(self.streams) == 1:
            typed = (getattr(self.model.config, "type_vocab_size", 0) or 0) > 1
            types = {"token_type_ids": token_types} if typed and token_types is not None else {}
            states, _ = self._read(self.stream, self.model, input_ids, attention_mask, **types)
        else:
            states = self._read_both(input_ids, attention_mask)
        return {state: states[state] for state in self.states}

    def of_sequences(
        self, input_ids: Ids, lengths: Lengths, states: Collection[State], token_types: Ids | None = None
    ) -> dict[State, Float[Tensor, "tokens width"]]:
        """Return some hidden states of sequences, real tokens end to end; `lengths` are on the CPU."""
        ids, padding, rows = padded(input_ids.unsqueeze(1), lengths)
        mask = torch.ones_like(ids) if padding is None else (~padding).long().unsqueeze(2)
        types = None if token_types is None else padded(token_types.unsqueeze(1), lengths)[0].squeeze(2)
        given = self(ids.squeeze(2), mask.squeeze(2), types)
        flat = {state: given[state].flatten(0, 1) for state in states}
        return flat if rows is None else {state: flat[state].index_select(0, rows) for state in states}

    def _read_both(self, input_ids: Tensor, attention_mask: Tensor) -> dict[State, Tensor]:
        """Return the hidden states of an encoder and of the decoder that attends to it."""
        model: Any = self.model
        states, encoded = self._read(self.streams[0], model.get_encoder(), input_ids, attention_mask)
        if self.start_id is None:
            last = attention_mask.sum(dim=1, keepdim=True) - 1
            first = input_ids.gather(1, last)
        else:
            first = torch.full_like(input_ids[:, :1], self.start_id)
        decoded, _ = self._read(
            self.streams[1],
            model.get_decoder(),
            torch.cat([first, input_ids[:, :-1]], dim=1),
            attention_mask,
            encoder_hidden_states=encoded,
            encoder_attention_mask=attention_mask,
        )
        return states | decoded

    def _read(
        self, stream: Stream, module: nn.Module, input_ids: Tensor, attention_mask: Tensor, **more: Tensor
    ) -> tuple[dict[State, Tensor], Tensor]:
        """Return the hidden states of a stream, and what its module gives after all layers."""
        before_norm = list[Tensor]()
        with ExitStack() as hooks:  # which do not stay: a copy of the model would note as well
            if stream.final_norm:  # the last state as the others are is what enters it
                norm = module.get_submodule(self.family.final_norm)
                note = norm.register_forward_pre_hook(lambda _, given: before_norm.append(given[0]))
                hooks.enter_context(note)
            output = module(
                input_ids=input_ids,
                attention_mask=attention_mask,
                output_hidden_states=True,
                return_dict=True,
                **more,
            )
        names, states = stream.states(), [*output.hidden_states, *before_norm]
        if self.depth is not None:  # that layer's own lies behind no norm in the whole model
            names, states = names[: self.depth + 1], [*states[: self.depth], states[-1]]
        if len(states) != len(names) or any(state.shape[-1] != self.width for state in states):
            raise BadInput(
                f"wanted {len(names)} hidden states of width {self.width} from the backbone, "
                f"got widths {[state.shape[-1] for state in states]}; choose another backbone"
            )
        return dict(zip(names, states, strict=True)), output.last_hidden_state


def list_of_layers(model: nn.Module, layers: int) -> str | None:
    """Return the name of the first list of so many modules in the model; None where there is none."""
    for name, module in model.named_modules():
        if isinstance(module, nn.ModuleList) and len(module) == layers:
            return name
    return None
