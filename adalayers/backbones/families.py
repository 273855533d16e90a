"""Families of models, by transformers' model type: where the hidden states of each are. A family is one entry here.

What holds of all of them, as the tests check on a small random model of each: `output_hidden_states` gives the input of
the first layer and what each layer gives, and in the last one's place what the model itself gives, which lies behind
its final norm where it has one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from adalayers.errors import BadInput

Kind = Literal["encoder", "decoder", "encoder-decoder"]


@dataclass(frozen=True)
class LayerParts:
    """Modules within a layer, by name: what adapters are put behind.

    The names of the fields stand in saved adapters and in the seeds of their starts.

    Attributes:
        attention: The projection that gives what attention adds to the residual stream.
        feedforward: The second of the feed-forward layers, which gives what they add.
    """

    attention: str
    feedforward: str


@dataclass(frozen=True)
class Family:
    """How the hidden states of a family are read.

    Attributes:
        kind: Encoder: one stream of states, each of which depends on all tokens of its text; decoder: one stream of
            causal states, each of which depends on its token and those to its left alone; encoder-decoder: both, the
            decoder's states depending on all of the encoder's besides.
        final_norm: The norm behind the last layer, which no other state has passed, by its name in the module that a
            stream is read from (of encoder-decoder models: in the encoder and in the decoder); "": there is none.
        removed: A module behind the last layer that gives no hidden state, taken out.
        first: What the decoder of an encoder-decoder model reads first, in front of all tokens but the last: start:
            `decoder_start_token_id`; last: the text's last token, moved to the front.
        shared: Whether all layers are one and the same, so that none can be left out.
        parts: Of a layer; None: adapters cannot be put there.
    """

    kind: Kind
    final_norm: str = ""
    removed: str = ""
    first: Literal["start", "last"] = "start"
    shared: bool = False
    parts: LayerParts | None = None


def _opt(config: Any) -> Family:
    """Return how OPT is read: its 350m has norms behind its layers, and then maps to the width of its embeddings."""
    normed = config.do_layer_norm_before and not config._remove_final_layer_norm
    mapped = config.word_embed_proj_dim != config.hidden_size
    return Family(
        "decoder",
        "decoder.final_layer_norm" if normed else "",
        removed="decoder.project_out" if mapped else "",
    )


def _gemma3(config: Any) -> Family:
    """Return how Gemma 3 is read; EmbeddingGemma is one whose tokens see both sides."""
    return Family("encoder" if getattr(config, "use_bidirectional_attention", False) else "decoder", "norm")


_BERT = ("bert", "camembert", "data2vec-text", "deberta", "deberta-v2", "electra", "ernie", "rembert")
_ROBERTA = ("roberta", "xlm-roberta")
_LLAMA = ("gemma", "gemma2", "llama", "mistral", "olmo2", "phi3", "qwen2", "qwen3", "smollm3", "starcoder2")
_T5_LAYER = LayerParts("layer.0.SelfAttention.o", "layer.1.DenseReluDense.wo")

FAMILIES: dict[str, Family | Callable[[Any], Family]] = {
    # Encoders, norms behind each layer's parts: no norm behind the last layer.
    "albert": Family("encoder", shared=True),
    **dict.fromkeys(
        (*_BERT, *_ROBERTA), Family("encoder", parts=LayerParts("attention.output.dense", "output.dense"))
    ),
    "distilbert": Family("encoder", parts=LayerParts("attention.out_lin", "ffn.lin2")),
    "mpnet": Family("encoder", parts=LayerParts("attention.attn.o", "output.dense")),
    "nomic_bert": Family("encoder"),
    # Encoders, norms in front of each layer's parts.
    "eurobert": Family("encoder", "norm"),
    "megatron-bert": Family("encoder", "encoder.ln"),
    "modernbert": Family("encoder", "final_norm"),
    "roberta-prelayernorm": Family("encoder", "LayerNorm"),
    "xlm-roberta-xl": Family("encoder", "encoder.LayerNorm"),
    # Decoders.
    **dict.fromkeys(("bloom", "falcon", "gpt2", "gpt_neo", "gptj"), Family("decoder", "ln_f")),
    **dict.fromkeys(_LLAMA, Family("decoder", "norm")),
    "gemma3_text": _gemma3,
    "gpt_neox": Family("decoder", "final_layer_norm"),
    "opt": _opt,
    "phi": Family("decoder", "final_layernorm"),
    # Encoder-decoder models.
    "bart": Family("encoder-decoder", parts=LayerParts("self_attn.out_proj", "fc2")),
    **dict.fromkeys(("blenderbot", "m2m_100", "pegasus"), Family("encoder-decoder", "layer_norm")),
    **dict.fromkeys(("blenderbot-small", "marian"), Family("encoder-decoder")),
    "mbart": Family("encoder-decoder", "layer_norm", first="last"),
    **dict.fromkeys(("mt5", "t5", "umt5"), Family("encoder-decoder", "final_layer_norm", parts=_T5_LAYER)),
}


def family_of(config: Any) -> Family | None:
    """Return how to read the model that a transformers config describes; None if its family has no entry."""
    entry = FAMILIES.get(config.model_type)
    return entry(config) if callable(entry) else entry


def layer_parts(family: str) -> LayerParts:
    """Return the parts of a layer of `family`.

    Raises:
        BadInput: For one whose parts are not known.
    """
    parts = {
        name: entry.parts for name, entry in FAMILIES.items() if isinstance(entry, Family) and entry.parts
    }
    if family not in parts:
        raise BadInput(
            f"wanted adapters in the layers of a {family!r} model, where they go is known for "
            f"{', '.join(sorted(parts))} alone; choose such a backbone, or base_model=fine-tuned"
        )
    return parts[family]
