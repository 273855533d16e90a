"""The model of a trial: over stored hidden states, or over a base model of its own."""

from __future__ import annotations

import dataclasses

import torch

from adalayers.config import TrialConfig
from adalayers.data.trial_data import TrialData
from adalayers.errors import BadInput
from adalayers.features.features import loaded
from adalayers.models.model import FusionModel
from adalayers.models.trainable_base.model import TrainableBaseModel


def build_model(
    config: TrialConfig, data: TrialData, *, seed: int = 0, device: torch.device | None = None
) -> FusionModel:
    """Return the model that `config` asks for, on `device`: a `TrainableBaseModel` where its base model is not frozen.

    Raises `BadInput` where the base model is to be changed and `data` do not say where it is, or it cannot be.
    """
    device = device or torch.device("cpu")
    if config.base_model == "frozen":
        return FusionModel(config, data.shape, seed=seed).to(device)
    if data.source is None:
        raise BadInput(
            f"wanted a base model for base_model={config.base_model}, these data do not say where theirs is; "
            "prepare them with adalayers.data.prepare, or give TrialData its source"
        )
    # Its copy takes small steps, which bfloat16 would round away.
    source = dataclasses.replace(data.source.whole, dtype="float32")
    return TrainableBaseModel(config, data.shape, loaded(source, device), seed=seed).to(device)
