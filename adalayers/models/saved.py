"""The trained parts of a model in a `best/` folder: saved, and loaded, whatever they were trained with."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from adalayers.backbones import sources
from adalayers.config import TrialConfig, as_values, trial_config
from adalayers.errors import BadInput, unknown
from adalayers.models.model import FusionModel
from adalayers.models.trainable_base.model import build_model
from adalayers.provenance import BackboneId
from adalayers.results.study_file import from_json
from adalayers.states import Settings, Shape
from adalayers.storage.folder import Folder, require_files
from adalayers.storage.redaction import redacted
from adalayers.tasks.kinds import KINDS

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
PARTS_FORMAT = 2
MAX_LAYERS = 2**10
"""Of a stream: a fusion has modules for each, which take time to make."""
OF_BASE = ("base.", "adapters.", "span")
"""What the names of tensors begin with that a changed base model adds to those of fusion and head."""


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
        config, shape, about, tensors = _read_parts(opened)
    source = None
    if backbone is not None or config.base_model != "frozen":
        source = base_model_source(about, shape, backbone, data_dir)
    model = build_model(config, shape, source)
    with _refused(opened):
        model.load_state_dict(tensors)
    model.about = about
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
            "take another copy, or run the study's command with --fresh"
        ) from error


def _read_parts(folder: Folder) -> tuple[TrialConfig, Shape, dict[str, Any], dict[str, Tensor]]:
    """Return the configuration, shape, `about` and tensors that a folder holds, checked before a model of them is made.

    Names and shapes of the tensors are those of the model that the rest describes.

    Raises:
        ValueError: Something is missing, damaged, or does not fit the rest.
        LookupError, TypeError, RuntimeError: Likewise, from what reads or builds it.
    """
    with _reading(CONFIG):
        document = from_json(dict[str, Any], folder.read_json(CONFIG), "it")
    if document.pop("format", None) != PARTS_FORMAT:
        raise ValueError(
            f"{CONFIG} is not of format {PARTS_FORMAT}, but written by another version, which reads it"
        )
    config = trial_config(**from_json(Settings, document.pop("trial", None), "trial"))
    shape = _shape(document.pop("shape", None))
    _check_about(document, shape)
    with _reading(WEIGHTS):
        tensors = load_tensors(folder.read_bytes(WEIGHTS))
    _check_tensors(config, shape, tensors)
    return config, shape, document, tensors


@contextlib.contextmanager
def _reading(name: str) -> Iterator[None]:
    """Raise `ValueError` that names the file for what reading it raises."""
    try:
        yield
    except (OSError, ValueError, SafetensorError) as error:
        raise ValueError(f"{name} cannot be read: {error}") from error


def _shape(value: Any) -> Shape:
    shape: Shape = from_json(Shape, value, "shape")
    for stream in shape.streams:
        if stream.name not in ("encoder", "decoder") or not 1 <= stream.layers <= MAX_LAYERS:
            wanted = f"1 to {MAX_LAYERS} of the encoder or decoder are wanted"
            raise ValueError(f"shape has {stream.layers} as layers of the {stream.name}, where {wanted}")
    return shape


def _check_about(about: Mapping[str, Any], shape: Shape) -> None:
    """Raise `ValueError` where what parts were trained on cannot be read, or does not fit their shape."""
    if "backbone" in about:
        from_json(BackboneId, about["backbone"], "backbone")
    if (length := from_json(int | None, about.get("max_length"), "max_length")) is not None and length < 3:
        raise ValueError(f"max_length is {length}")
    name, labels = about.get("kind"), from_json(tuple[str, ...], about.get("labels", []), "labels")
    if len(set(labels)) < len(labels):
        raise ValueError("labels holds one twice")
    outputs = len(labels)
    if name is not None:
        if name not in KINDS:
            raise unknown("kind of task", str(name), KINDS)
        kind = KINDS[name]
        if kind.head != shape.head:
            raise ValueError(
                f"kind is {name}, whose head is that of a {kind.head}, and shape.head {shape.head}"
            )
        if "label_scale" in about:
            from_json(dict[str, float], about["label_scale"], "label_scale")
        kind.as_saved(about)
        outputs = kind.n_outputs(labels)
    if "labels" in about and outputs != shape.n_outputs:
        raise ValueError(f"labels are {len(labels)}, and shape.n_outputs {shape.n_outputs}")


def _check_tensors(config: TrialConfig, shape: Shape, tensors: Mapping[str, Tensor]) -> None:
    """Raise `ValueError` or `RuntimeError` for tensors of another name or shape, or that are no numbers."""
    changed = config.base_model != "frozen"
    of_base = {name for name in tensors if changed and name.startswith(OF_BASE)}
    with torch.device("meta"):  # no memory is taken for what the file does not hold
        model = FusionModel(config, shape)
    model.load_state_dict({name: own for name, own in tensors.items() if name not in of_base}, assign=True)
    for name in sorted({*dict(model.named_parameters()), *of_base}):
        if tensors[name].is_floating_point() and not tensors[name].isfinite().all():
            raise ValueError(f"{WEIGHTS} has numbers that are not finite in {name}")


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
