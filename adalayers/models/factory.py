"""The one way to make a model: over stored hidden states, or over a base model of its own."""

from __future__ import annotations

import dataclasses

import torch

from adalayers.backbones.loading import shared_backbone
from adalayers.backbones.sources import BackboneSource
from adalayers.config import TrialConfig
from adalayers.errors import BadInput
from adalayers.models.model import FusionModel
from adalayers.models.trainable_base.model import TrainableBaseModel
from adalayers.states import Shape

CPU = torch.device("cpu")


def build_model(
    config: TrialConfig,
    shape: Shape,
    source: BackboneSource | None = None,
    *,
    seed: int = 0,
    device: torch.device = CPU,
) -> FusionModel:
    """Return the model that a configuration asks for.

    Args:
        config: The trial's configuration.
        shape:  What the model needs to know of backbone and task.
        source: Where the base model is; read only where it is not frozen.
        seed:   Of the start of all parameters.
        device: Where the model is put.

    Returns:
        A `FusionModel`; where `config.base_model` is not frozen, a `TrainableBaseModel`.

    Raises:
        BadInput: The base model is to be changed, and `source` is None, or it cannot be changed in that way.
    """
    if config.base_model == "frozen":
        return FusionModel(config, shape, seed=seed).to(device)
    if source is None:
        raise BadInput(
            f"wanted a base model for base_model={config.base_model}, these data do not say where theirs is; "
            "prepare them with adalayers.data.prepare, or give TrialData its source"
        )
    # Its copy takes small steps, which bfloat16 would round away.
    full_source = dataclasses.replace(source.with_all_states, dtype="float32")
    return TrainableBaseModel(config, shape, shared_backbone(full_source, device), seed=seed).to(device)
