"""What a `best/` folder holds, read and checked before anything of the size that it names is built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import load_file
from torch import Tensor

from adalayers.config import TrialConfig, trial_config
from adalayers.errors import unknown
from adalayers.models.model import FusionModel
from adalayers.provenance import BackboneId
from adalayers.results.study_file import from_json
from adalayers.states import Settings, Shape
from adalayers.storage.folder import Folder
from adalayers.tasks.kinds import KINDS

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
PARTS_FORMAT = 2
MAX_CONFIG_BYTES = 2**24
MAX_LAYERS = 2**10
"""Of a stream: a fusion has modules for each, which take time to make."""
MAX_SIZE = 2**31 - 1
"""Of a dimension of a tensor."""
OF_BASE = ("base.", "adapters.", "span")
"""What the names of tensors begin with that a changed base model adds to those of fusion and head."""


@dataclass(frozen=True)
class Parts:
    """The trained parts of a model, as they were saved.

    Attributes:
        about:   What they were trained on.
        tensors: By name, those of `FusionModel.state_dict`.
    """

    config: TrialConfig
    shape: Shape
    about: dict[str, Any]
    tensors: dict[str, Tensor]


def read_parts(folder: Folder) -> Parts:
    """Return what a folder holds, once names and shapes of its tensors are those of the model that it describes.

    Raises:
        ValueError: Something is missing, damaged, or does not fit the rest.
        LookupError, TypeError, RuntimeError: Likewise, from what reads or builds it.
    """
    document = _document(folder)
    if document.pop("format", None) != PARTS_FORMAT:
        raise ValueError(
            f"{CONFIG} is not of format {PARTS_FORMAT}, but written by another version, which reads it"
        )
    config = trial_config(**from_json(Settings, document.pop("trial", None), "trial"))
    shape = _shape(document.pop("shape", None))
    _check_about(document, shape)
    tensors = _tensors(folder)
    _check_tensors(config, shape, tensors)
    return Parts(config, shape, document, tensors)


def _document(folder: Folder) -> dict[str, Any]:
    if folder.is_local and folder.path(CONFIG).stat().st_size > MAX_CONFIG_BYTES:
        raise ValueError(f"{CONFIG} has more than {MAX_CONFIG_BYTES:,} bytes")
    try:
        document = folder.read_json(CONFIG)
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{CONFIG} cannot be read: {error}") from error
    if not isinstance(document, dict):
        raise ValueError(f"{CONFIG} holds no object")
    return document


def _tensors(folder: Folder) -> dict[str, Tensor]:
    if folder.is_local and not folder.path(WEIGHTS).is_file():  # a pipe would be waited for
        raise ValueError(f"{WEIGHTS} is no file")
    try:
        if folder.is_local:
            return load_file(folder.path(WEIGHTS))  # mapped: of a file that is refused no memory is taken
        return load_tensors(folder.read_bytes(WEIGHTS))
    except (OSError, SafetensorError) as error:
        raise ValueError(f"{WEIGHTS} cannot be read: {error}") from error


def _shape(value: Any) -> Shape:
    shape: Shape = from_json(Shape, value, "shape")
    names = [stream.name for stream in shape.streams]
    if names not in (["encoder"], ["decoder"], ["encoder", "decoder"]):
        raise ValueError(f"shape.streams are {names}, where encoder, decoder or both are wanted")
    sizes = {"width": (shape.width, MAX_SIZE), "n_outputs": (shape.n_outputs, MAX_SIZE)}
    sizes |= {f"layers of the {stream.name}": (stream.layers, MAX_LAYERS) for stream in shape.streams}
    for name, (size, most) in sizes.items():
        if not 1 <= size <= most:
            raise ValueError(f"shape has {size} as {name}, where 1 to {most} is wanted")
    return shape


def _check_about(about: Mapping[str, Any], shape: Shape) -> None:
    """Raise `ValueError` where what parts were trained on cannot be read, or does not fit their shape."""
    if "backbone" in about:
        from_json(BackboneId, about["backbone"], "backbone")
    name, labels = about.get("kind"), from_json(tuple[str, ...], about.get("labels", []), "labels")
    if len(set(labels)) < len(labels):
        raise ValueError("labels holds one twice")
    outputs = len(labels)
    if name is not None:
        if not isinstance(name, str) or name not in KINDS:
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
    """Raise `ValueError` or `RuntimeError` for tensors of another name, shape or type, or that are no numbers."""
    changed = config.base_model != "frozen"
    of_base = {name for name in tensors if changed and name.startswith(OF_BASE)}
    with torch.device("meta"):  # no memory is taken for what the file does not hold
        model = FusionModel(config, shape)
    for name, wanted in model.state_dict().items():
        got = tensors.get(name, wanted)
        if got.dtype != wanted.dtype and not (got.is_floating_point() and wanted.is_floating_point()):
            raise ValueError(f"{WEIGHTS} has a tensor {name} of {got.dtype}, where {wanted.dtype} is wanted")
    model.load_state_dict({name: own for name, own in tensors.items() if name not in of_base}, assign=True)
    for name in sorted({*dict(model.named_parameters()), *of_base}):
        own = tensors[name]
        adapter = config.base_model == "adapters" and name.endswith(".down.bias")
        if adapter and list(own.shape) != [config.adapter_width]:  # they are built before they are compared
            raise ValueError(
                f"{WEIGHTS} has a tensor {name} of shape {list(own.shape)}, and adapter_width is "
                f"{config.adapter_width}"
            )
        if own.is_floating_point() and not own.isfinite().all():
            raise ValueError(f"{WEIGHTS} has numbers that are not finite in {name}")
