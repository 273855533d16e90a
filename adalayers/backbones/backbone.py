"""Frozen transformers: loaded once, read layer by layer."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from adalayers import hub
from adalayers.backbones import pretrained
from adalayers.backbones.sources import BackboneSource
from adalayers.errors import BadInput


class Backbone(nn.Module):
    """A frozen transformer that gives all its hidden states: nothing trains it, nothing leaves eval mode.

    n_layers:     l, layers of the stream that is read
    width:        K
    n_parameters: of the whole base model, a pooler and an unread decoder included
    """

    def __init__(self, model: nn.Module, *, n_layers: int, width: int, n_parameters: int, pad_id: int = 0):
        super().__init__()
        self.model = model.requires_grad_(False)
        self.n_layers, self.width, self.n_parameters, self.pad_id = n_layers, width, n_parameters, pad_id
        self.train(False)

    def train(self, mode: bool = True) -> Backbone:
        """Stay in eval mode, whatever `mode` says: dropout in a frozen model would only add noise."""
        super().train(False)
        return self

    def forward(
        self, input_ids: Int[Tensor, "batch time"], attention_mask: Int[Tensor, "batch time"]
    ) -> tuple[Float[Tensor, "batch time width"], ...]:
        """Return l + 1 hidden states: the embeddings' output, then that of each layer.

        `attention_mask` is 1 on tokens, 0 on padding; what stands at padding, in and out, means nothing.
        Raises `BadInput` for a model whose stream is not l layers of one width.
        """
        self.model.eval()  # someone may have called model.train() past our own
        # RoBERTa's kind counts positions by what is no pad token, so padding has to be that token.
        input_ids = input_ids.masked_fill(attention_mask == 0, self.pad_id)
        # Not inference_mode: a fusion's backward may need the states saved.
        with torch.no_grad():
            output = self.model(
                input_ids=input_ids,
                attention_mask=attention_mask,
                output_hidden_states=True,
                return_dict=True,
            )
        states = tuple(output.hidden_states)
        if len(states) != self.n_layers + 1 or any(state.shape[-1] != self.width for state in states):
            raise BadInput(
                f"wanted {self.n_layers + 1} hidden states of width {self.width} from the backbone, "
                f"got widths {[state.shape[-1] for state in states]}; choose another backbone"
            )
        return states


def load(source: BackboneSource, *, dtype: torch.dtype = torch.float32) -> Backbone:
    """Load the frozen model of `source` on the CPU, quietly; the global random state is left as it was.

    Of encoder-decoder models only the encoder is kept.
    Raises `BadInput` for weights that do not fit the model or lack some of what is read.
    """
    from transformers import AutoModel

    # Weights that the checkpoint lacks (mostly a pooler) are drawn at random: not from the trials' stream.
    with hub.quiet(), torch.random.fork_rng(devices=[]):
        try:
            model, report = AutoModel.from_pretrained(
                source.folder,
                local_files_only=True,
                trust_remote_code=False,
                use_safetensors=True,
                dtype=dtype,
                output_loading_info=True,
            )
        except Exception as error:  # of many kinds: safetensors' own, sizes that disagree, a broken index
            raise BadInput(
                f"wanted the weights of {source.id!r} in {str(source.folder)!r}, they cannot be loaded "
                f"({type(error).__name__}: {hub.first_line(error)}); fetch or save the model anew"
            ) from error
    is_encoder_decoder = pretrained.is_encoder_decoder(model.config)
    # What is not read may be missing: the decoder, and the pooler that models saved for masked LM lack.
    missing = sorted(
        key
        for key in report["missing_keys"]
        if (key.startswith("encoder.") if is_encoder_decoder else not key.startswith("pooler."))
    )
    if missing:
        raise BadInput(
            f"wanted all weights of {source.id!r}, its safetensors lack {len(missing)} of them "
            f"({missing[0]}, ...); fetch or save the model anew"
        )
    n_parameters = sum(parameter.numel() for parameter in model.parameters())
    return Backbone(
        model.get_encoder() if is_encoder_decoder else model,
        n_layers=source.layers,
        width=source.width,
        n_parameters=n_parameters,
        pad_id=getattr(model.config, "pad_token_id", None) or 0,
    )


def count_parameters(source: BackboneSource) -> int:
    """Return `Backbone.n_parameters`, that of the whole base model, without loading it."""
    from transformers import AutoModel

    with hub.quiet(), torch.device("meta"):
        model = AutoModel.from_config(
            pretrained.read_config(source.folder, source.id), trust_remote_code=False
        )
    return sum(parameter.numel() for parameter in model.parameters())
