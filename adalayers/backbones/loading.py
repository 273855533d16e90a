"""Frozen transformers, from a place on disk into memory."""

from __future__ import annotations

import functools
import math
from typing import Any

import psutil
import torch
from torch import nn

from adalayers.backbones import pretrained
from adalayers.backbones.backbone import Backbone, list_of_layers
from adalayers.backbones.check import last_state_problem
from adalayers.backbones.given_states import GivenStates
from adalayers.backbones.sources import BackboneSource
from adalayers.console.progress import size
from adalayers.errors import BadInput
from adalayers.states import ComputeType
from adalayers.storage import hub

MEMORY_SHARE = 0.7
"""Most of a device's memory that the weights of a backbone may take: the rest is for its hidden states and others."""


@functools.lru_cache(maxsize=2)  # one may be there twice: in float32 too, where a trial trains it
def shared_backbone(source: BackboneSource, device: torch.device) -> Backbone:
    """Return the backbone; a process keeps the last two, which all its trials share, so never change it."""
    return load(source).to(device)


def load(source: BackboneSource) -> Backbone:
    """Load a frozen model on the CPU, quietly; the global random state is left as it was.

    Random weights are drawn as the model's own code starts a training, the same ones each time. Of encoder-decoder
    models the decoder is kept only where its states are read. Layers beyond the deepest state that is read are left
    out, of a model with one stream.

    Args:
        source: Where the model is, which of its hidden states are read, and in what they are computed.

    Raises:
        BadInput: Weights that do not fit the model or the memory, lack some of what is read, or are not finite.
    """
    if source.is_states:
        return GivenStates(source)
    depth, memory = _depth(source), psutil.virtual_memory().total
    needed = weight_bytes(source, depth=depth)
    if needed > memory:
        raise BadInput(
            f"wanted {size(needed)} of memory for {source.name} in {source.dtype}, this "
            f"machine has {size(memory)}; read fewer layers (--set hidden_states=layers:1,6), compute in "
            "bfloat16 (--backbone-dtype bfloat16), or take a smaller backbone"
        )
    # What the checkpoint lacks of weights (mostly a pooler) is drawn too: not from the trials' stream.
    with hub.quiet(), torch.random.fork_rng(devices=[]):
        model = _random(source) if source.random else _pretrained(source, depth)
    if depth is not None and source.random:
        del model.get_submodule(list_of_layers(model, source.layers))[depth:]
        pretrained.shorten(model.config, source.layers, depth)
    if source.reading.removed:
        parent, _, name = source.reading.removed.rpartition(".")
        setattr(model.get_submodule(parent), name, None)
    for module in model.modules():  # T5's encoder and decoder have configs of their own
        if hasattr(module, "config"):
            module.config.use_cache = False  # keys and values are for generation
    _require_finite(model, source)
    backbone = Backbone(
        model.get_encoder() if source.encoder_alone else model,
        streams=source.streams_read,
        states=source.states,
        width=source.width,
        family=source.reading,
        depth=depth,
    )
    _require_pass(backbone, source)
    return backbone


def _require_pass(backbone: Backbone, source: BackboneSource) -> None:
    """Raise `BadInput` for a model that cannot read two short texts, one of them padded: its config is wrong."""
    with hub.refusing(
        f"wanted a backbone that reads tokens, {source.id!r} in {str(source.folder)!r} does not",
        "its config.json does not fit its weights: fix it, or fetch the model again",
    ):
        backbone(torch.zeros(2, 2, dtype=torch.long), torch.tensor([[1, 1], [1, 0]]))
        if problem := last_state_problem(backbone):
            raise BadInput(
                f"wanted the last hidden states of {source.id!r} as {source.family!r} models have them, {problem}; "
                "install the release of transformers that constraints.txt names, or tell us of it"
            )


def _depth(source: BackboneSource) -> int | None:
    """Return how many layers suffice for the states that are read, at least one; None: all of them."""
    if source.chosen is None or len(source.streams) > 1 or source.reading.shared:
        return None
    depth = max(1, *(state.number for state in source.chosen))
    return depth if depth < source.layers else None


def _require_finite(model: Any, source: BackboneSource) -> None:
    """Raise `BadInput` for weights that are no numbers: what they give would be stored, and trained on."""
    for name, values in model.named_parameters():
        # A sum passes NaN and infinity on, and takes a fraction of what a look at every number does.
        if not math.isfinite(float(values.detach().sum(dtype=torch.float32))):
            raise BadInput(
                f"wanted finite weights of {source.id!r} in {str(source.folder)!r}, {name} holds NaN or infinity; "
                "fetch or save the model again"
            )


def _random(source: BackboneSource) -> Any:
    """Return the model with random weights."""
    from transformers import AutoModel

    config = pretrained.read_config(source.folder, source.id)
    torch.default_generator.manual_seed(pretrained.RANDOM_SEED)  # torch.manual_seed reseeds the GPUs too
    return AutoModel.from_config(config, trust_remote_code=False, dtype=getattr(torch, source.dtype))


def _pretrained(source: BackboneSource, depth: int | None) -> Any:
    """Return the model with the checkpoint's weights; what is missing is nothing that is read.

    Safetensors are memory-mapped: what is not read of them is not loaded, and what is loaded changes its type tensor by
    tensor.
    """
    from transformers import AutoModel

    config = pretrained.read_config(source.folder, source.id)
    if depth is not None:
        pretrained.shorten(config, source.layers, depth)
    wanted = f"wanted the weights of {source.id!r} in {str(source.folder)!r}, they cannot be loaded"
    staged = pretrained.staged(source.folder, with_weights=True)
    with hub.refusing(wanted, "fetch or save the model again"), staged as place:
        model, report = AutoModel.from_pretrained(
            place,
            config=config,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            dtype=getattr(torch, source.dtype),
            output_loading_info=True,
        )
    model.config._name_or_path = str(source.folder)
    # What is not read may be missing: a decoder, and the pooler that models saved for masked LM lack.
    missing = sorted(
        key
        for key in report["missing_keys"]
        if (key.startswith("encoder.") if source.encoder_alone else not key.startswith("pooler."))
    )
    if missing:
        raise BadInput(
            f"wanted all weights of {source.id!r}, its safetensors lack {len(missing)} of them "
            f"({missing[0]}, ...); fetch or save the model again"
        )
    return model


@functools.lru_cache(maxsize=64)
def count_parameters(source: BackboneSource) -> tuple[int, int]:
    """Return the parameters of the whole base model, and of one layer of its first stream, without loading it.

    The latter is 0 where no list of as many layers is found in the model; both are of states computed elsewhere.

    Raises:
        BadInput: For a config of no model.
    """
    if source.is_states:
        return 0, 0
    from transformers import AutoModel

    config = pretrained.read_config(source.folder, source.id)
    wanted = (
        f"wanted a config.json of {source.id!r} in {str(source.folder)!r} that makes a model, it makes none"
    )
    with hub.quiet(), torch.device("meta"), hub.refusing(wanted, "fetch or save the model again"):
        model = AutoModel.from_config(config, trust_remote_code=False)
    name = list_of_layers(model, source.layers)
    layers = nn.ModuleList() if name is None else model.get_submodule(name)
    whole, of_layers = (
        sum(parameter.numel() for parameter in module.parameters()) for module in (model, layers)
    )
    return whole, of_layers // source.layers


def weight_bytes(source: BackboneSource, dtype: str | None = None, depth: int | None = None) -> int:
    """Return the bytes of a backbone's weights.

    Args:
        source: Where the model is.
        dtype:  The type they are in; None: that which it computes in.
        depth:  Count its first layers; None: all.
    """
    parameters, of_layer = count_parameters(source)
    left_out = 0 if depth is None else source.layers - depth
    return int(getattr(torch, dtype or source.dtype).itemsize) * (parameters - left_out * of_layer)


def device_bytes() -> int:
    """Return the memory of the device that computes hidden states: a GPU's, without one this machine's."""
    if torch.cuda.is_available():
        return int(torch.cuda.get_device_properties(0).total_memory)
    return int(psutil.virtual_memory().total)


def fitting_dtype(source: BackboneSource, memory: int) -> ComputeType:
    """Return float32, or bfloat16 where float32 takes more than `MEMORY_SHARE` of `memory`, in bytes."""
    return "float32" if weight_bytes(source, "float32") <= MEMORY_SHARE * memory else "bfloat16"
