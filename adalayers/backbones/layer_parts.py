"""Where the parts of a transformer layer stand, by family: what adapters are put behind."""

from __future__ import annotations

from dataclasses import dataclass

from adalayers.errors import BadInput


@dataclass(frozen=True)
class LayerParts:
    """Names of modules within a layer of the base model.

    attention:   the projection that gives what attention adds to the residual stream
    feedforward: the second of the feed-forward layers, which gives what they add
    norms:       all norms of the layer
    """

    attention: str
    feedforward: str
    norms: tuple[str, ...]


_BERT = LayerParts(
    "attention.output.dense", "output.dense", ("attention.output.LayerNorm", "output.LayerNorm")
)
_T5 = LayerParts(
    "layer.0.SelfAttention.o", "layer.1.DenseReluDense.wo", ("layer.0.layer_norm", "layer.1.layer_norm")
)

PARTS = {
    "bert": _BERT,
    "camembert": _BERT,
    "data2vec-text": _BERT,
    "deberta": _BERT,
    "deberta-v2": _BERT,
    "electra": _BERT,
    "ernie": _BERT,
    "roberta": _BERT,
    "xlm-roberta": _BERT,
    "distilbert": LayerParts("attention.out_lin", "ffn.lin2", ("sa_layer_norm", "output_layer_norm")),
    "mpnet": LayerParts("attention.attn.o", "output.dense", ("attention.LayerNorm", "output.LayerNorm")),
    "bart": LayerParts("self_attn.out_proj", "fc2", ("self_attn_layer_norm", "final_layer_norm")),
    "mt5": _T5,
    "t5": _T5,
    "umt5": _T5,
}
"""transformers' model type -> its parts. Another family is an entry here."""


def layer_parts(family: str) -> LayerParts:
    """Return the parts of a layer of `family`. Raises `BadInput` for one that is not known."""
    if family not in PARTS:
        raise BadInput(
            f"wanted adapters in the layers of a {family!r} model, where they go is known for "
            f"{', '.join(sorted(PARTS))} alone; choose such a backbone, or base_model=fine-tuned"
        )
    return PARTS[family]
