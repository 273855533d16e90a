"""The trained parts of a model in a `best/` folder: saved, and loaded, whatever they were trained with."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from adalayers.backbones import sources
from adalayers.config import TrialConfig, as_values, trial_config
from adalayers.errors import BadInput
from adalayers.models.factory import build_model
from adalayers.models.model import FusionModel
from adalayers.states import Shape, Stream
from adalayers.storage.folder import Folder, require_files
from adalayers.storage.redaction import redacted

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
FORMAT = 2


def save(model: FusionModel, folder: Folder, *, about: Mapping[str, Any]) -> None:
    """Write the trained parts of a model.

    Args:
        model:  The trained model.
        folder: Where `config.json` and `model.safetensors` are written.
        about:  What it was trained on: backbone, dataset, labels.
    """
    tensors = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    folder.write_bytes(WEIGHTS, save_tensors(tensors))
    shape = dataclasses.asdict(model.shape)
    folder.write_json(CONFIG, {"format": FORMAT, "trial": as_values(model.config), "shape": shape, **about})


def load(
    folder: Folder | str | Path, *, backbone: str | None = None, data_dir: str | Path | None = None
) -> FusionModel:
    """Return the trained parts saved in a `best/` folder, in eval mode.

    Args:
        folder:   A study's `best/`, or a copy of it.
        backbone: Where the base model is; None: it is found by the id that the folder names. A frozen base model is
                  not loaded, and one that is named here is checked to be the same.
        data_dir: A folder of local copies of backbones.

    Returns:
        A `FusionModel`; parts that were trained along with a base model are a `TrainableBaseModel` with it.

    Raises:
        BadInput: The folder holds no trained parts, or a fusion that is not known here; the base model cannot be had or
            is another one.
    """
    config, shape, about, tensors = _read(folder)
    source = None
    if backbone is not None or config.base_model != "frozen":
        source = base_model_source(about, backbone, data_dir)
    model = build_model(config, shape, source)
    model.load_state_dict(tensors)
    model.about = about
    model.fusion.finish()
    return model.eval()


def _read(folder: Folder | str | Path) -> tuple[TrialConfig, Shape, dict[str, Any], dict[str, Tensor]]:
    """Return what `save` was given, and the tensors of the trained parts by name."""
    place = require_files(
        folder, (CONFIG, WEIGHTS), wanted="the trained parts of a study", advice="its best/ folder"
    )
    try:
        about = place.read_json(CONFIG)
        tensors = load_tensors(place.read_bytes(WEIGHTS))
        if not isinstance(about, dict):
            raise ValueError(f"{CONFIG} holds no object")
    except (ValueError, SafetensorError) as error:
        raise BadInput(
            f"wanted trained parts in {redacted(place.uri)}, their {CONFIG} or {WEIGHTS} cannot be read ({error}); "
            "take another copy, or run the study's command again, which writes them anew"
        ) from error
    if (version := about.pop("format", None)) != FORMAT:
        raise BadInput(
            f"wanted trained parts of format {FORMAT} in {place.uri}, got format {version}, written by "
            "another version; load them with that version"
        )
    try:
        config, shape = trial_config(**about.pop("trial")), about.pop("shape")
        streams = tuple(Stream(**stream) for stream in shape.pop("streams"))
        return config, Shape(streams=streams, **shape), about, tensors
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise BadInput(
            f"wanted trained parts in {redacted(place.uri)}, their {CONFIG} does not say what they are "
            f"({type(error).__name__}: {error}); take another copy"
        ) from error


def base_model_source(
    about: Mapping[str, Any], name: str | None = None, data_dir: str | Path | None = None
) -> sources.BackboneSource:
    """Return where the base model of trained parts is.

    Args:
        about:    What the parts were trained on.
        name:     Where to look; None: by the id and revision in `about`.
        data_dir: A folder of local copies of backbones.

    Raises:
        BadInput: `about` does not name a base model, it cannot be had, or what is there is another one.
    """
    backbone = about.get("backbone", {})
    if not {"id", "fingerprint"} <= set(backbone):
        raise BadInput(
            "wanted the base model that these parts were trained on, their config.json does not say which one it was; "
            "save them with about={'backbone': ...}"
        )
    full_id = f"{backbone['id']}@{backbone['revision']}" if backbone.get("revision") else backbone["id"]
    try:
        source = sources.resolve(full_id if name is None else name, data_dir=data_dir)
    except BadInput as error:
        raise BadInput(
            f"wanted the base model {full_id!r} that these parts were trained on, it was not found; name its place "
            f"with backbone=... or data_dir=... (--backbone, --data-dir): {error}"
        ) from error
    if source.fingerprint != backbone["fingerprint"]:
        raise BadInput(
            f"wanted the base model {full_id!r} of fingerprint {backbone['fingerprint']}, {str(source.folder)!r} has "
            f"{source.fingerprint}: another model, revision or tokeniser; name the place of the same one with "
            "backbone=... (--backbone)"
        )
    return source
