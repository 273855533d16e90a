"""Where a base model's hidden states can be read: the module of a stream, its layers, its final norm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from adalayers.backbones import pretrained
from adalayers.backbones.backbone import list_of_layers
from adalayers.backbones.families import family_of
from adalayers.errors import BadInput
from adalayers.states import Shape, State, Stream


def find_stream(base: Any, shape: Shape, name: str) -> tuple[nn.Module, Mapping[State, nn.Module | None]]:
    """Return the modules of a base model that a stream of hidden states passes through.

    Args:
        base:  A model of transformers, a task model or a bare one.
        shape: What the base model was when a task was trained on it.
        name:  Of the stream.

    Returns:
        The module whose forward is one pass of the stream; and the module that each hidden state enters, None where it
        is what the former itself returns.

    Raises:
        BadInput: `base` is no such model, or one of another family or size than `shape`.
    """
    config = getattr(base, "config", None)
    if not isinstance(base, nn.Module) or config is None or not hasattr(config, "model_type"):
        raise BadInput(
            f"wanted a base model of transformers, got {type(base).__name__}; give what from_pretrained returned"
        )
    stream = next(stream for stream in shape.streams if stream.name == name)
    family = family_of(config)
    if family and family.shared:
        raise BadInput(
            f"wanted a base model whose layers can be told apart, those of {type(base).__name__} ({config.model_type}) "
            "are one and the same, called again and again; use adalayers.deploy.predictor or `adalayers predict`"
        )
    module = _stream_module(base, config, stream)
    layers = list_of_layers(module, stream.layers)
    width = getattr(config, "hidden_size", None)
    if config.model_type != shape.family or width != shape.width or layers is None:
        n_layers = getattr(config, "num_hidden_layers", "?")
        raise BadInput(
            f"wanted the base model that the parts were trained on: {shape.family}, {stream.layers} layers of width "
            f"{shape.width}; got {type(base).__name__}: {config.model_type}, {n_layers} layers of width {width}; "
            "attach them to the model that their config.json names"
        )
    if family is None and stream.final_norm:
        raise BadInput(
            f"wanted a base model of a family that is known, to find the norm behind its last layer, got "
            f"{config.model_type!r}; give it an entry in adalayers/backbones/families.py"
        )
    entered: dict[State, nn.Module | None] = {}
    for state in stream.states():
        if state.number < stream.layers:
            entered[state] = module.get_submodule(f"{layers}.{state.number}")
        elif family and state.before_norm:
            entered[state] = module.get_submodule(family.final_norm)
        else:  # OPT-350m maps the last state to another width
            entered[state] = module.get_submodule(family.removed) if family and family.removed else None
    if family and family.kind == "decoder" and layers.startswith("decoder."):
        return module.get_submodule("decoder"), entered  # task models call it, and pass the model by (OPT)
    return module, entered


def _stream_module(base: Any, config: Any, stream: Stream) -> nn.Module:
    """Return the module whose forward is a pass of the stream."""
    base = getattr(base, "_orig_mod", base)  # what torch.compile returned wraps the model
    if not pretrained.is_encoder_decoder(config):
        return base.base_model
    if any(isinstance(child, nn.ModuleList) and len(child) == stream.layers for child in base.children()):
        return base  # an encoder or decoder alone
    return base.get_decoder() if stream.name == "decoder" else base.get_encoder()
