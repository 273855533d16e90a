"""Where a base model's hidden states pass by: the module of a stream, its layers, its final norm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import nn

from adalayers.backbones import pretrained
from adalayers.backbones.backbone import list_of_layers
from adalayers.backbones.families import known
from adalayers.errors import BadInput
from adalayers.states import Shape, State, Stream

INNER = "decoder."
"""What a decoder's layers are named below where task models call that part itself, and pass the model by (OPT)."""

Pass = Callable[[Any], None]
"""Called with a hidden state [batch, time, K] as it passes by."""


@dataclass(frozen=True)
class Place:
    """A stream of hidden states within a base model.

    module: its forward is one pass of the stream
    layers: layer i stands at i - 1
    norm:   what the last state passes before the module gives it; None where that is nothing
    behind: what maps the last state to another width before the module gives it (OPT-350m); None where nothing does
    """

    stream: Stream
    module: nn.Module
    layers: Any
    norm: nn.Module | None
    behind: nn.Module | None = None

    def watch(self, state: State, seen: Pass) -> Any | None:
        """Call `seen` with the hidden state in every pass, and return the hook's handle.

        None, and no hook, for the last state as the module itself gives it: read it from its output.
        """
        if state.number < self.stream.layers:
            at: nn.Module = self.layers[state.number]
        elif state.before_norm and self.norm is not None:
            at = self.norm
        elif self.behind is not None:
            at = self.behind
        else:
            return None

        def hook(module: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
            seen(inputs[0] if inputs else named["hidden_states"])

        return at.register_forward_pre_hook(hook, with_kwargs=True)


def place_of(base: Any, shape: Shape, stream: str) -> Place:
    """Return where the stream `stream` of `shape` is in a base model of transformers, a task model or a bare one.

    Raises `BadInput` where `base` is none, or one of another family or size than `shape` was trained on.
    """
    config = getattr(base, "config", None)
    if not isinstance(base, nn.Module) or config is None or not hasattr(config, "model_type"):
        raise BadInput(
            f"wanted a base model of transformers, got {type(base).__name__}; give what from_pretrained returned"
        )
    wanted = next(one for one in shape.streams if one.name == stream)
    family = known(config)
    if family and family.shared:
        raise BadInput(
            f"wanted a base model whose layers can be told apart, those of {type(base).__name__} ({config.model_type}) "
            "are one and the same, called again and again; use adalayers.deploy.predictor or `adalayers predict`"
        )
    module = _module(base, config, wanted)
    name = list_of_layers(module, wanted.layers)
    width = getattr(config, "hidden_size", None)
    if config.model_type != shape.family or width != shape.width or name is None:
        held = max((len(m) for m in module.modules() if isinstance(m, nn.ModuleList)), default=0)
        raise BadInput(
            f"wanted the base model that the parts were trained on: {shape.family}, {wanted.layers} layers of width "
            f"{shape.width}; got {type(base).__name__}: {config.model_type}, {held} layers of width {width}; "
            "attach them to the model that their config.json names"
        )
    if family is None and wanted.final_norm:
        raise BadInput(
            f"wanted a base model of a family that is known, to find the norm behind its last layer, got "
            f"{config.model_type!r}; give it an entry in adalayers/backbones/families.py"
        )
    inner = ""
    if family and family.kind == "decoder" and name.startswith(INNER):
        module, inner = module.get_submodule(INNER.removesuffix(".")), INNER

    def part(named: str) -> nn.Module:
        return module.get_submodule(named.removeprefix(inner))

    return Place(
        wanted,
        module,
        part(name),
        part(family.final_norm) if family and wanted.final_norm else None,
        part(family.removed) if family and family.removed else None,
    )


def _module(base: Any, config: Any, stream: Stream) -> nn.Module:
    """Return the module whose forward is a pass of the stream."""
    base = getattr(base, "_orig_mod", base)  # what torch.compile returned wraps the model
    if not pretrained.is_encoder_decoder(config):
        return base.base_model
    if any(isinstance(child, nn.ModuleList) and len(child) == stream.layers for child in base.children()):
        return base  # an encoder or decoder alone
    return base.get_decoder() if stream.name == "decoder" else base.get_encoder()
