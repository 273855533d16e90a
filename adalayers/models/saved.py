"""The trained parts of a model in a `best/` folder: saved, and loaded, whatever they were trained with."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import save as save_tensors

from adalayers.backbones import sources
from adalayers.config import as_values
from adalayers.errors import BadInput
from adalayers.models.factory import build_model
from adalayers.models.model import FusionModel
from adalayers.models.parts import CONFIG, PARTS_FORMAT, WEIGHTS, read_parts
from adalayers.states import Shape
from adalayers.storage.folder import Folder, require_files
from adalayers.storage.redaction import redacted


def save(model: FusionModel, folder: Folder, *, about: Mapping[str, Any]) -> None:
    """Write the trained parts of a model.

    Args:
        model:  The trained model.
        folder: Where `config.json` and `model.safetensors` are written.
        about:  What it was trained on: backbone, dataset, labels.
    """
    tensors = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    folder.write_bytes(WEIGHTS, save_tensors(tensors))
    trial, shape = as_values(model.config), dataclasses.asdict(model.shape)
    folder.write_json(CONFIG, {"format": PARTS_FORMAT, "trial": trial, "shape": shape, **about})


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
        BadInput: The folder holds no trained parts, or damaged ones, or a fusion that is not known here; the base model
            cannot be had or is another one.
    """
    opened = require_files(
        folder, (CONFIG, WEIGHTS), wanted="the trained parts of a study", advice="its best/ folder"
    )
    with _refused(opened):
        parts = read_parts(opened)
    source = None
    if backbone is not None or parts.config.base_model != "frozen":
        source = base_model_source(parts.about, parts.shape, backbone, data_dir)
    model = build_model(parts.config, parts.shape, source)
    with _refused(opened):
        model.load_state_dict(parts.tensors)
    model.about = parts.about
    model.fusion.finish()
    return model.eval()


@contextlib.contextmanager
def _refused(folder: Folder) -> Iterator[None]:
    """Raise `BadInput` that names the folder for what its damaged files raise as they are read and loaded."""
    try:
        yield
    except (ValueError, LookupError, TypeError, RuntimeError) as error:
        why = " ".join(str(error).split())[:300] or type(error).__name__
        raise BadInput(
            f"wanted trained parts in {redacted(folder.uri)}, what is there cannot be loaded ({why}); "
            "take another copy, or run the study's command again, which writes them again"
        ) from error


def base_model_source(
    about: Mapping[str, Any], shape: Shape, name: str | None = None, data_dir: str | Path | None = None
) -> sources.BackboneSource:
    """Return where the base model of trained parts is.

    Args:
        about:    What the parts were trained on.
        shape:    What they know of their base model.
        name:     Where to look; None: by the id and revision in `about`.
        data_dir: A folder of local copies of backbones.

    Raises:
        BadInput: `about` does not name a base model, it cannot be had, or what is there is another one.
    """
    backbone = about.get("backbone")
    if backbone is None:
        raise BadInput(
            "wanted the base model that these parts were trained on, their config.json does not say which one it was; "
            "save them with about={'backbone': ...}"
        )
    full_id = f"{backbone['id']}@{backbone['revision']}" if backbone.get("revision") else backbone["id"]
    sources.require_base_model(sources.BackboneName("", full_id, None, None), "to run texts through")
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
    source = dataclasses.replace(source, dtype=backbone.get("dtype", source.dtype))
    if (shape.streams, shape.width, shape.family) != (source.streams, source.width, source.family):
        raise BadInput(
            f"wanted parts of the base model {full_id!r}, their {CONFIG} describes one of {shape.family!r} with "
            f"{shape.streams[0].layers} layers of width {shape.width}; take another copy of them"
        )
    return source
