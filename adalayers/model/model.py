"""The trained part of a trial: a fusion of hidden states and a head; built, saved and loaded here."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from adalayers.config import Shape, TrialConfig, state_indices
from adalayers.errors import BadInput
from adalayers.fusion.layer_mix import LayerMix
from adalayers.lazy import Lazy
from adalayers.model.heads import SequenceHead, TokenHead, sinusoidal_positions
from adalayers.ragged import moved
from adalayers.results.files import holding
from adalayers.results.folder import Folder

CONFIG = "config.json"
WEIGHTS = "model.safetensors"


class FusionModel(nn.Module):
    """Hidden states of ragged token sequences -> fusion -> padding -> head -> logits.

    `states` lists the backbone's hidden states that are mixed, position by position (0 = embeddings). The
    fusion sees real tokens only, end to end; padding is added for the head.
    """

    def __init__(self, config: TrialConfig, shape: Shape):
        super().__init__()
        self.config, self.shape = config, shape
        self.states = state_indices(config.hidden_states, shape.n_layers, shape.family)
        config.check_states(len(self.states))
        if config.mix == "single" and config.layer not in self.states:
            raise BadInput(
                f"wanted layer to be one of the hidden states {self.states}, got layer={config.layer}; change layer"
            )
        self.fusion = LayerMix(
            len(self.states),
            shape.width,
            config.k,
            variant=config.mix,
            single=None if config.layer is None else self.states.index(config.layer),
            alpha=config.alpha,
            cutoff=config.cutoff,
            train_projections=config.train_projections,
        )
        self.fusion.cutoff_active = config.cutoff_when == "always"
        self.entropy_weight = config.entropy_weight / (
            len(self.states) if config.entropy_scale == "as-released" else 1
        )
        self.head: SequenceHead | TokenHead
        if shape.head == "sequence":
            self.head = SequenceHead(config.k, shape.n_outputs, heads=config.heads, dropout=config.dropout)
        else:
            self.head = TokenHead(
                config.k,
                shape.n_outputs,
                heads=config.heads,
                dropout=config.dropout,
                layers=config.encoder_layers,
                feedforward=config.feedforward,
            )

    def live_states(self) -> list[int]:
        """Return the hidden states (0 = embeddings) that the next `forward` needs."""
        return [self.states[position] for position in self.fusion.live()]

    def penalty(self) -> Float[Tensor, ""] | None:
        """Return lambda * H(p~), to be added to the cross-entropy; None where it is zero."""
        if self.config.mix != "learned" or self.entropy_weight == 0:
            return None
        return self.entropy_weight * self.fusion.entropy()

    def forward(
        self, states: Mapping[int, Float[Tensor, "tokens width"]], lengths: Int[Tensor, " batch"]
    ) -> Float[Tensor, ...]:
        """Return logits, [batch, labels] or [batch, time, labels], time the longest of `lengths` (tokens).

        `lengths` are best on the CPU: on a GPU the shape of what follows has to be waited for.
        """
        positions = [self.states.index(state) for state in states]
        mixed = self.fusion(Lazy(positions, lambda position: states[self.states[position]]))
        padded, padding = _padded(mixed, lengths.cpu())
        if self.config.positions:
            padded = padded + sinusoidal_positions(*padded.shape[1:]).to(padded)
        return self.head(padded, padding)

    def finish(self) -> None:
        """Switch on a cutoff that was to wait until training is over."""
        self.fusion.cutoff_active = True

    def n_parameters(self) -> int:
        """Return the number of trainable parameters that can affect the output, p included."""
        trainable = sum(p.numel() for p in self.parameters() if p.requires_grad)
        return trainable - (self.fusion.unused_parameters() if self.config.train_projections else 0)


def _padded(
    flat: Float[Tensor, "tokens k"], lengths: Int[Tensor, " batch"]
) -> tuple[Float[Tensor, "batch time k"], Bool[Tensor, "batch time"] | None]:
    """Return ragged sequences one per row, and where their rows are padding: None where all are of one length."""
    time = int(lengths.max())
    if int(lengths.min()) == time:
        return flat.view(len(lengths), time, -1), None
    padding = torch.arange(time) >= lengths.unsqueeze(1)
    places = moved((~padding).flatten().nonzero().squeeze(1), flat.device)
    padded = flat.new_zeros(padding.numel(), flat.shape[-1]).index_copy(0, places, flat)
    return padded.view(*padding.shape, -1), moved(padding, flat.device)


def save(model: FusionModel, folder: Folder, *, about: Mapping[str, Any]) -> None:
    """Write the trained parts to `folder`; `about` says what they were trained on (backbone, dataset, labels)."""
    folder.write_bytes(
        WEIGHTS, save_tensors({name: t.contiguous() for name, t in model.state_dict().items()})
    )
    folder.write_json(
        CONFIG,
        {
            "format": 1,
            "trial": dataclasses.asdict(model.config),
            "shape": dataclasses.asdict(model.shape),
            **about,
        },
    )


def load(folder: Folder | str | Path) -> FusionModel:
    """Return the trained parts saved in a `best/` folder, in eval mode.

    Raises `BadInput` where the folder holds no trained parts.
    """
    place = holding(
        folder, (CONFIG, WEIGHTS), wanted="the trained parts of a study", advice="its best/ folder"
    )
    saved = place.read_json(CONFIG)
    model = FusionModel(TrialConfig(**saved["trial"]), Shape(**saved["shape"]))
    model.load_state_dict(load_tensors(place.read_bytes(WEIGHTS)))
    model.finish()
    return model.eval()
