"""Trained parts from a `best/` folder, whatever they were trained with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from adalayers.backbones import sources
from adalayers.errors import BadInput
from adalayers.features.features import loaded
from adalayers.models.model import FusionModel, read, restored
from adalayers.models.trainable_base.model import TrainableBaseModel
from adalayers.storage.folder import Folder


def load(
    folder: Folder | str | Path, *, backbone: str | None = None, data_dir: str | Path | None = None
) -> FusionModel:
    """Return the trained parts saved in a `best/` folder, in eval mode.

    Where they were trained along with a base model, it is a `TrainableBaseModel` with that base model, found by the id
    that the folder names; `backbone` names another place of the same one, `data_dir` a folder of local copies.
    Over a frozen base model none is loaded; one that `backbone` names is checked to be the same.

    Raises `BadInput` where the folder holds no trained parts, a fusion that is not known here, or the base model
    cannot be had or is another one.
    """
    saved = read(folder)
    if saved.config.base_model == "frozen":
        if backbone is not None:
            source_of(saved.about, backbone, data_dir)
        return restored(FusionModel(saved.config, saved.shape), saved)
    source = source_of(saved.about, backbone, data_dir)
    return restored(TrainableBaseModel(saved.config, saved.shape, loaded(source, torch.device("cpu"))), saved)


def source_of(
    trained_on: Mapping[str, Any], name: str | None = None, data_dir: str | Path | None = None
) -> sources.BackboneSource:
    """Return where the base model is that trained parts belong to.

    trained_on: `about` of the parts; name: where to look, None: by the id and revision that they name

    Raises `BadInput` where they do not name it, it cannot be had, or what is there is another one.
    """
    about = trained_on.get("backbone", {})
    if not {"id", "fingerprint"} <= set(about):
        raise BadInput(
            "wanted the base model that these parts were trained on, their config.json does not say which one it was; "
            "save them with about={'backbone': ...}"
        )
    of = f"{about['id']}@{about['revision']}" if about.get("revision") else about["id"]
    try:
        source = sources.resolve(of if name is None else name, data_dir=data_dir)
    except BadInput as error:
        raise BadInput(
            f"wanted the base model {of!r} that these parts were trained on, it was not found; name its place with "
            f"backbone=... or data_dir=... (--backbone, --data-dir): {error}"
        ) from error
    if source.fingerprint != about["fingerprint"]:
        raise BadInput(
            f"wanted the base model {of!r} of fingerprint {about['fingerprint']}, {str(source.folder)!r} has "
            f"{source.fingerprint}: another model, revision or tokeniser; name the place of the same one with "
            "backbone=... (--backbone)"
        )
    return source
