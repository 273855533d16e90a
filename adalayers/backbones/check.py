"""What a family without an entry of its own is found out to be, on a small random model of its kind."""

from __future__ import annotations

import copy
import functools
import itertools
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn

from adalayers.backbones.backbone import Backbone, list_of_layers
from adalayers.backbones.families import FAMILIES, Family
from adalayers.backbones.pretrained import is_encoder_decoder, shorten
from adalayers.errors import BadInput
from adalayers.states import Stream
from adalayers.storage import hub

LAYERS, VOCABULARY = 3, 64
"""Of the small model, which has no more layers than the real one."""
LENGTHS = (7, 4, 2)
STATE_TOLERANCE = 1e-4
"""Of differences between hidden states that should be none, as a share of the largest number in them."""


def found_out(config: Any, identifier: str) -> Family:
    """Return how a model of this transformers config is read: an encoder, a decoder, or an encoder-decoder's encoder.

    On a model of a few layers, otherwise as wide, with random weights, these must hold: it gives the states of all
    layers, of one width; the last is what the last layer gives, or that behind one norm; padding and the other
    texts of a batch change no state. A model whose states depend on no token to their right is a
    decoder.

    Raises:
        BadInput: If one of them does not hold; it names the family and what does not.
    """
    try:
        with hub.quiet():
            return _tried(config)
    except Exception as error:  # of many kinds: a config without layers, a model of images, of speech
        why = hub.first_line(error)
        if not isinstance(error, BadInput):
            why = f"it reads no token ids ({type(error).__name__}: {why})"
        raise BadInput(
            f"wanted a backbone of a family that can be read, {identifier!r} is a {config.model_type!r} model, which "
            f"is none of {', '.join(sorted(FAMILIES))}; on a small random one of its kind {why}; choose another "
            "backbone, or add its family to adalayers/backbones/families.py"
        ) from error


def _tried(config: Any) -> Family:
    """Return how it is read. Raises `BadInput` with the first property that does not hold."""
    layers = min(LAYERS, int(config.num_hidden_layers))
    model = _small(config, layers)
    encoder_decoder = is_encoder_decoder(config)
    module = model.get_encoder() if encoder_decoder else model
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(8, VOCABULARY, (len(LENGTHS), max(LENGTHS)), generator=generator)
    mask = (torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS).unsqueeze(1)).long()
    if (name := list_of_layers(module, layers)) is None:
        raise BadInput("no list of its layers is found")
    final_norm = _final_norm(module, f"{name}.{layers - 1}", ids, mask)
    if final_norm is None:
        raise BadInput(
            "the last of its hidden states is neither the last layer's own nor that behind one norm"
        )
    backbone = Backbone(
        module,
        streams=[Stream("encoder", layers, final_norm=bool(final_norm))],
        width=model.config.hidden_size,
        family=Family("encoder", final_norm),
    )

    def states(ids: Tensor, mask: Tensor) -> list[Tensor]:
        return list(backbone(ids, mask).values())

    together = states(ids, mask)
    for i, length in enumerate(LENGTHS):
        alone = states(ids[i : i + 1, :length], mask[i : i + 1, :length])
        if not all(_same(a[i, :length], b[0]) for a, b in zip(together, alone, strict=True)):
            raise BadInput("padding or the other texts of a batch change its hidden states")
    if any(_same(a[mask.bool()], b[mask.bool()]) for a, b in itertools.pairwise(together)):
        raise BadInput("two of its hidden states are the same")
    if encoder_decoder:
        return Family("encoder-decoder", final_norm)
    changed = ids.clone()
    changed[:, -1] = ids[:, -1] % (VOCABULARY - 10) + 9
    causal = all(_same(a[0, :-1], b[0, :-1]) for a, b in zip(together, states(changed, mask), strict=True))
    return Family("decoder" if causal else "encoder", final_norm)


def _small(config: Any, layers: int) -> Any:
    """Return a model of that kind, of few layers and words, its random weights the same each time."""
    from transformers import AutoModel

    small = copy.deepcopy(config)
    shorten(small, small.num_hidden_layers, layers)
    for name in ("encoder_layers", "decoder_layers", "num_decoder_layers"):
        if hasattr(small, name):
            setattr(small, name, layers)
    small.vocab_size = VOCABULARY
    for token, name in enumerate(("pad", "bos", "eos", "sep", "cls")):
        if isinstance(getattr(small, f"{name}_token_id", None), int):
            setattr(small, f"{name}_token_id", token)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        model = AutoModel.from_config(small, trust_remote_code=False, dtype=torch.float32)
        with torch.no_grad():  # biases start at 0 and norms at 1: every parameter must matter
            for parameter in model.parameters():
                parameter.add_(0.02 * torch.randn_like(parameter))
    model.config.use_cache = False
    return model.eval()


def _same(a: Tensor, b: Tensor) -> bool:
    return bool((a - b).abs().max() <= STATE_TOLERANCE * a.abs().max())


def _final_norm(module: nn.Module, last_layer: str, ids: Tensor, mask: Tensor) -> str | None:
    """Return the name of the norm behind the last layer; "" where there is none, None for something else there."""
    seen: dict[str, tuple[Any, Any]] = {}

    def note(each: str, within: nn.Module, given: Any, named: dict[str, Any], output: Any) -> None:
        entered = given[0] if given else named.get("hidden_states")
        seen[each] = entered, output[0] if isinstance(output, tuple) else output

    with torch.no_grad(), ExitStack() as hooks:
        for each, within in module.named_modules():
            hook = functools.partial(note, each)
            hooks.enter_context(within.register_forward_hook(hook, with_kwargs=True))
        given = module(input_ids=ids, attention_mask=mask, output_hidden_states=True, return_dict=True)
    last, own = given.hidden_states[-1], seen[last_layer][1]
    if torch.equal(last, own):
        return ""
    for submodule, (entered, left) in seen.items():
        if submodule and entered is own and torch.equal(left, last):
            return submodule
    return None


def last_state_problem(backbone: Backbone) -> str:
    """Return in words what is wrong with where the last hidden state of a stream lies; "" where nothing is.

    By numbers, on a pass of the model as it is: the last state is what the final norm gives that the stream is said to
    have, else what the last layer gives.
    """
    ids = torch.tensor([[1, 2]])
    for stream, module in zip(backbone.streams, backbone.stream_modules(), strict=True):
        wanted = backbone.family.final_norm if stream.final_norm else ""
        layers = backbone.depth or stream.layers
        if (name := list_of_layers(module, layers)) is None:  # all layers are one and the same
            continue
        found = _final_norm(module, f"{name}.{layers - 1}", ids, torch.ones_like(ids))
        if found != wanted:
            lies = "nowhere that is known" if found is None else f"behind {found or 'the last layer'}"
            return f"that of the {stream.name} lies {lies}, not behind {wanted or 'the last layer'}"
    return ""
