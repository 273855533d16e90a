"""Frozen transformers: loaded once, read layer by layer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psutil
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from adalayers.backbones import pretrained
from adalayers.backbones.families import Family
from adalayers.backbones.sources import BackboneSource
from adalayers.errors import BadInput
from adalayers.states import ComputeType, State, Stream
from adalayers.storage import hub

MEMORY_SHARE = 0.7
"""Most of a device's memory that the weights of a backbone may take: the rest is for its hidden states and others."""


class Backbone(nn.Module):
    """A frozen transformer that gives its hidden states: nothing trains it, nothing leaves eval mode.

    model:        the module that the first stream is read from; of an encoder-decoder model whose decoder is read too,
                  the whole model
    streams:      the streams that are read
    states:       the hidden states that are given; None: all of the streams'
    width:        K
    n_parameters: of the whole base model, a pooler and an unread decoder included
    family:       how its hidden states are read
    pad_id:       stands at padding
    start_id:     what the decoder of an encoder-decoder model reads first; None: the text's last token
    depth:        layers that the model still has, where those beyond the deepest state were left out
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        streams: Sequence[Stream],
        width: int,
        n_parameters: int,
        family: Family,
        states: Sequence[State] | None = None,
        pad_id: int = 0,
        start_id: int | None = None,
        depth: int | None = None,
    ):
        super().__init__()
        self.model = model.requires_grad_(False)
        self.streams, self.width, self.n_parameters = tuple(streams), width, n_parameters
        every = tuple(state for stream in streams for state in stream.states())
        self.states = every if states is None else tuple(states)
        self.family, self.pad_id, self.start_id, self.depth = family, pad_id, start_id, depth
        self.train(False)

    @property
    def stream(self) -> Stream:
        """The first stream, which is the only one of most backbones."""
        return self.streams[0]

    @property
    def final_norm(self) -> str | None:
        """Name of the norm that the last state of the first stream lies behind, within `model`; None: there is none."""
        return self.family.final_norm if self.stream.final_norm else None

    def train(self, mode: bool = True) -> Backbone:
        """Stay in eval mode, whatever `mode` says: dropout in a frozen model would only add noise."""
        super().train(False)
        return self

    def forward(
        self,
        input_ids: Int[Tensor, "batch time"],
        attention_mask: Int[Tensor, "batch time"],
        token_types: Int[Tensor, "batch time"] | None = None,
        decoder_ids: Int[Tensor, "batch time"] | None = None,
    ) -> dict[State, Float[Tensor, "batch time width"]]:
        """Return the hidden states, in the order of `states`.

        `attention_mask` is 1 on tokens, 0 on padding, which may stand left or right; what stands at padding, in and
        out, means nothing. A decoder's states are causal: one depends on its token and those to the left of it. The
        decoder of an encoder-decoder model reads the same text moved one place to the right, as it was trained to: its
        state at a token depends on all of the encoder's and on the tokens before it. `token_types` tells the texts of a
        pair apart; models that were made without such ignore it. `decoder_ids` are what the decoder of an
        encoder-decoder model reads instead, padded as the text is.
        Raises `BadInput` for a model whose streams are not l layers of one width.
        """
        self.model.eval()  # someone may have called model.train() past our own
        if bool((attention_mask[:, :-1] < attention_mask[:, 1:]).any()):
            return self._moved(input_ids, attention_mask, token_types, decoder_ids)
        # RoBERTa's kind counts positions by what is no pad token, so padding has to be that token.
        input_ids = input_ids.masked_fill(attention_mask == 0, self.pad_id)
        # Not inference_mode: a fusion's backward may need the states saved.
        with torch.no_grad():
            if len(self.streams) == 1:
                types = with_token_types(self.model, token_types)
                found, _ = self._read(self.stream, self.model, input_ids, attention_mask, **types)
            else:
                found = self._read_both(input_ids, attention_mask, decoder_ids)
        return {state: found[state] for state in self.states}

    def _moved(
        self, input_ids: Tensor, attention_mask: Tensor, *others: Tensor | None
    ) -> dict[State, Tensor]:
        """Return hidden states of texts that are not padded on the right, where alone a text begins at position 0."""
        order = attention_mask.argsort(dim=1, descending=True, stable=True)
        back = order.argsort(dim=1).unsqueeze(2)
        given = [None if other is None else other.gather(1, order) for other in others]
        states = self(input_ids.gather(1, order), attention_mask.gather(1, order), *given)
        return {state: values.gather(1, back.expand_as(values)) for state, values in states.items()}

    def _read_both(
        self, input_ids: Tensor, attention_mask: Tensor, decoder_ids: Tensor | None
    ) -> dict[State, Tensor]:
        """Return the hidden states of an encoder and of the decoder that attends to it."""
        model: Any = self.model
        found, encoded = self._read(self.streams[0], model.get_encoder(), input_ids, attention_mask)
        if self.start_id is None:
            last = attention_mask.sum(dim=1, keepdim=True) - 1
            first = input_ids.gather(1, last)
        else:
            first = torch.full_like(input_ids[:, :1], self.start_id)
        decoded, _ = self._read(
            self.streams[1],
            model.get_decoder(),
            torch.cat([first, input_ids[:, :-1]], dim=1) if decoder_ids is None else decoder_ids,
            attention_mask,
            encoder_hidden_states=encoded,
            encoder_attention_mask=attention_mask,
        )
        return found | decoded

    def _read(
        self, stream: Stream, module: nn.Module, input_ids: Tensor, attention_mask: Tensor, **more: Tensor
    ) -> tuple[dict[State, Tensor], Tensor]:
        """Return the hidden states of a stream, and what its module gives after all layers."""
        with self._noted(stream, module) as before_norm:
            output = module(
                input_ids=input_ids,
                attention_mask=attention_mask,
                output_hidden_states=True,
                return_dict=True,
                **more,
            )
        names, states = stream.states(), [*output.hidden_states, *before_norm]
        if self.depth is not None:
            # The last one lies behind a norm that it does not in the whole model: the layers beyond it are gone.
            names, states = names[: self.depth], list(output.hidden_states[:-1])
        if len(states) != len(names) or any(state.shape[-1] != self.width for state in states):
            raise BadInput(
                f"wanted {len(names)} hidden states of width {self.width} from the backbone, "
                f"got widths {[state.shape[-1] for state in states]}; choose another backbone"
            )
        return dict(zip(names, states, strict=True)), output.last_hidden_state

    @contextmanager
    def _noted(self, stream: Stream, module: nn.Module) -> Iterator[list[Tensor]]:
        """Yield what enters the final norm meanwhile, where there is one: the last state as the others are.

        The hook does not stay: a copy of the model would note as well.
        """
        inputs: list[Tensor] = []
        if not stream.final_norm or self.depth is not None:
            yield inputs
            return
        norm = module.get_submodule(self.family.final_norm)
        with norm.register_forward_pre_hook(lambda module, given: inputs.append(given[0])):
            yield inputs


def with_token_types(model: Any, token_types: Tensor | None) -> dict[str, Tensor]:
    """Return what a model is called with besides its token ids: their types, where there are and it has such."""
    typed = (getattr(model.config, "type_vocab_size", 0) or 0) > 1
    return {"token_type_ids": token_types} if typed and token_types is not None else {}


def load(source: BackboneSource, *, dtype: torch.dtype | None = None) -> Backbone:
    """Load the frozen model of `source` on the CPU, quietly; the global random state is left as it was.

    Random weights are drawn as the model's own code starts a training, the same ones each time. Of encoder-decoder
    models the decoder is kept only where its states are read. Layers beyond the deepest state that is read are left
    out, of a model with one stream. `dtype` None is that of `source`.
    Raises `BadInput` for weights that do not fit the model or lack some of what is read.
    """
    dtype, depth = dtype or getattr(torch, source.dtype), _depth(source)
    _check_memory(source, dtype, depth)
    model = _random(source, dtype) if source.random else _pretrained(source, dtype, depth)
    n_parameters = _n_parameters(model) if depth is None else count_parameters(source)[0]
    if depth is not None and source.random:
        _cut(model, source.layers, depth)
    if source.reading.removed:
        parent, _, name = source.reading.removed.rpartition(".")
        setattr(model.get_submodule(parent), name, None)
    for module in model.modules():  # T5's encoder and decoder have configs of their own
        if hasattr(module, "config"):
            module.config.use_cache = False  # keys and values are for generation
    _require_finite(model, source)
    return Backbone(
        model.get_encoder() if source.is_encoder_decoder and len(source.streams_read) == 1 else model,
        streams=source.streams_read,
        states=source.states,
        width=source.width,
        n_parameters=n_parameters,
        family=source.reading,
        pad_id=max(getattr(model.config, "pad_token_id", None) or 0, 0),  # some say -1
        start_id=_start(source, model),
        depth=depth,
    )


def _check_memory(source: BackboneSource, dtype: torch.dtype, depth: int | None) -> None:
    """Raise `BadInput` for a backbone whose weights this machine's memory does not hold."""
    memory = psutil.virtual_memory().total
    files = [] if source.random else pretrained.weights(source.folder)
    # Saved in half precision at the least: mostly nothing need be counted.
    if files and 2 * sum(file.stat().st_size for file in files) <= memory:
        return
    parameters, of_layer = count_parameters(source)
    needed = dtype.itemsize * (parameters - of_layer * (0 if depth is None else source.layers - depth))
    if needed > memory:
        raise BadInput(
            f"wanted {needed / 1e9:.1f} GB of memory for {source.name} in {str(dtype).removeprefix('torch.')}, this "
            f"machine has {memory / 1e9:.1f} GB; read fewer layers (--set hidden_states=layers:1,6), compute in "
            "bfloat16 (--backbone-dtype bfloat16), or take a smaller backbone"
        )


def _start(source: BackboneSource, model: Any) -> int | None:
    """Return the token that a decoder reads first, where it is run and that is not the text's last."""
    if len(source.streams_read) == 1 or source.reading.first == "last":
        return None
    return pretrained.decoder_start(model.config, source.id)


def _depth(source: BackboneSource) -> int | None:
    """Return how many layers suffice for the states that are read; None: all of them.

    One more than the deepest state: the last layer's own lies behind what follows the layers.
    """
    if source.chosen is None or len(source.streams) > 1 or source.reading.shared:
        return None
    depth = max(state.number for state in source.chosen) + 1
    return depth if depth < source.layers else None


def _cut(model: Any, layers: int, depth: int) -> None:
    """Remove the layers of a model beyond the first `depth`."""
    del model.get_submodule(list_of_layers(model, layers))[depth:]
    pretrained.shorten(model.config, layers, depth)


def _require_finite(model: Any, source: BackboneSource) -> None:
    """Raise `BadInput` for weights that are no numbers: what they give would be stored, and trained on."""
    for name, values in model.named_parameters():
        # A sum passes NaN and infinity on, and takes a fraction of what a look at every number does.
        if not math.isfinite(float(values.detach().sum(dtype=torch.float32))):
            raise BadInput(
                f"wanted finite weights of {source.id!r} in {str(source.folder)!r}, {name} holds NaN or infinity; "
                "fetch or save the model again"
            )


def _random(source: BackboneSource, dtype: torch.dtype) -> Any:
    """Return the model with random weights."""
    from transformers import AutoModel

    config = pretrained.read_config(source.folder, source.id)
    with hub.quiet(), torch.random.fork_rng(devices=[]):
        # Not `torch.manual_seed`, which would seed the GPUs' generators too.
        torch.default_generator.manual_seed(pretrained.RANDOM_SEED)
        return AutoModel.from_config(config, trust_remote_code=False, dtype=dtype)


def _pretrained(source: BackboneSource, dtype: torch.dtype, depth: int | None) -> Any:
    """Return the model with the checkpoint's weights; what is missing is nothing that is read.

    Safetensors are memory-mapped: what is not read of them is not loaded, and what is loaded becomes `dtype` tensor by
    tensor.
    """
    from transformers import AutoModel

    config = pretrained.read_config(source.folder, source.id)
    if depth is not None:
        pretrained.shorten(config, source.layers, depth)
    # Weights that the checkpoint lacks (mostly a pooler) are drawn at random: not from the trials' stream.
    with hub.quiet(), torch.random.fork_rng(devices=[]):
        try:
            model, report = AutoModel.from_pretrained(
                source.folder,
                config=config,
                local_files_only=True,
                trust_remote_code=False,
                use_safetensors=True,
                dtype=dtype,
                output_loading_info=True,
            )
        except Exception as error:  # of many kinds: safetensors' own, sizes that disagree, a broken index
            raise BadInput(
                f"wanted the weights of {source.id!r} in {str(source.folder)!r}, they cannot be loaded "
                f"({type(error).__name__}: {hub.first_line(error)}); fetch or save the model again"
            ) from error
    # What is not read may be missing: a decoder, and the pooler that models saved for masked LM lack.
    encoder_alone = source.is_encoder_decoder and len(source.streams_read) == 1
    missing = sorted(
        key
        for key in report["missing_keys"]
        if (key.startswith("encoder.") if encoder_alone else not key.startswith("pooler."))
    )
    if missing:
        raise BadInput(
            f"wanted all weights of {source.id!r}, its safetensors lack {len(missing)} of them "
            f"({missing[0]}, ...); fetch or save the model again"
        )
    return model


def count_parameters(source: BackboneSource) -> tuple[int, int]:
    """Return the parameters of the whole base model, and of one layer of its first stream, without loading it.

    The latter is 0 where no list of as many layers is found in the model.
    """
    from transformers import AutoModel

    with hub.quiet(), torch.device("meta"):
        model = AutoModel.from_config(
            pretrained.read_config(source.folder, source.id), trust_remote_code=False
        )
    name = list_of_layers(model, source.layers)
    of_layer = 0 if name is None else _n_parameters(model.get_submodule(name)) // source.layers
    return _n_parameters(model), of_layer


def memory_bytes(parameters: int, dtype: str) -> int:
    """Return the memory that so many parameters take in a type."""
    return parameters * getattr(torch, dtype).itemsize


def device_bytes() -> int:
    """Return the memory of the device that computes hidden states: a GPU's, without one this machine's."""
    if torch.cuda.is_available():
        return int(torch.cuda.get_device_properties(0).total_memory)
    return int(psutil.virtual_memory().total)


def fitting_dtype(source: BackboneSource, memory: int) -> ComputeType:
    """Return float32, or bfloat16 where float32 takes more than `MEMORY_SHARE` of `memory`, in bytes."""
    most = MEMORY_SHARE * memory
    files = [] if source.random else pretrained.weights(source.folder)
    # Saved in half precision at the least: then nothing need be counted.
    if files and 2 * sum(file.stat().st_size for file in files) <= most:
        return "float32"
    return "float32" if memory_bytes(count_parameters(source)[0], "float32") <= most else "bfloat16"


def list_of_layers(model: nn.Module, layers: int) -> str | None:
    """Return the name of the first list of so many modules in the model; None where there is none."""
    return next(
        (
            name
            for name, module in model.named_modules()
            if isinstance(module, nn.ModuleList) and len(module) == layers
        ),
        None,
    )


def _n_parameters(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())
