"""Tiny random backbones for tests, made from code: a config, random weights, and a tokeniser that works.

folder = tiny_backbone(tmp_path / "model", family="roberta", layers=3)
AutoModel.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
"""

from __future__ import annotations

import string
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

FAMILIES = ("bert", "roberta", "xlm-roberta", "distilbert", "deberta-v2", "electra", "bart", "t5")
"""Families that the library reads; `tiny_backbone` also makes "gpt2", which it refuses."""

WORDS = (
    *("the", "a", "an", "of", "to", "in", "and", "is", "was", "are", "not", "very"),
    *("he", "she", "it", "they", "we", "you", "Anna", "John", "Smith", "London", "Paris"),
    *("cat", "dog", "house", "river", "film", "book", "good", "bad", "big", "small", "red", "old", "new"),
    *("sleep", "sleeps", "slept", "eat", "eats", "ate", "walk", "walks", "walked", "read", "reads"),
)
_CHARACTERS = string.ascii_letters + string.digits + ".,;:!?'\"()-"
MAX_TOKENS = 512


def tiny_backbone(
    folder: str | Path,
    family: str = "bert",
    *,
    layers: int = 4,
    width: int = 32,
    heads: int = 4,
    seed: int = 0,
    **config: Any,
) -> Path:
    """Save a random model of `family` and its tokeniser to `folder`, and return the folder.

    `config` overrides entries of the family's own config. The same arguments give the same files.
    """
    import transformers
    from transformers.utils import logging

    folder = Path(folder)
    tokenizer = _tokenizer(family)
    made = _config(family, tokenizer, layers, width, heads, config)
    bars = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.manual_seed(seed)
            model = transformers.AutoModel.from_config(made)
            # Biases and norms start at 0 and 1: noise makes every parameter matter to a test.
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.add_(0.05 * torch.randn_like(parameter))
            model.save_pretrained(folder)
            tokenizer.save_pretrained(folder)
    finally:
        if bars:
            logging.enable_progress_bar()
    return folder


def _config(
    family: str, tokenizer: Any, layers: int, width: int, heads: int, overrides: dict[str, Any]
) -> Any:
    import transformers

    encoder = {
        "num_hidden_layers": layers,
        "hidden_size": width,
        "num_attention_heads": heads,
        "intermediate_size": 2 * width,
        "max_position_embeddings": MAX_TOKENS,
    }
    offset = {
        **encoder,
        "max_position_embeddings": MAX_TOKENS + 2,
        "type_vocab_size": 1,
        "layer_norm_eps": 1e-5,
    }
    decoder_side = {
        "d_model": width,
        "encoder_layers": layers,
        "decoder_layers": 1,
        "encoder_attention_heads": heads,
        "decoder_attention_heads": heads,
        "encoder_ffn_dim": 2 * width,
        "decoder_ffn_dim": 2 * width,
        "max_position_embeddings": MAX_TOKENS,
        "decoder_start_token_id": 2,
        "forced_eos_token_id": None,
    }
    by_family: dict[str, dict[str, Any]] = {
        "bert": encoder,
        "roberta": offset,
        "xlm-roberta": offset,
        "distilbert": {
            "n_layers": layers,
            "dim": width,
            "n_heads": heads,
            "hidden_dim": 2 * width,
            "max_position_embeddings": MAX_TOKENS,
        },
        # As DeBERTa-v3 is configured: relative positions only.
        "deberta-v2": {
            **encoder,
            "relative_attention": True,
            "pos_att_type": ["p2c", "c2p"],
            "position_buckets": 16,
            "norm_rel_ebd": "layer_norm",
            "share_att_key": True,
            "position_biased_input": False,
            "type_vocab_size": 0,
        },
        "electra": {**encoder, "embedding_size": width},
        "bart": decoder_side,
        "t5": {
            "d_model": width,
            "d_kv": width // heads,
            "d_ff": 2 * width,
            "num_layers": layers,
            "num_decoder_layers": 1,
            "num_heads": heads,
            "decoder_start_token_id": 0,
        },
        "gpt2": {"n_layer": layers, "n_embd": width, "n_head": heads, "n_positions": MAX_TOKENS},
    }
    special = {
        f"{role}_token_id": getattr(tokenizer, f"{role}_token_id")
        for role in ("pad", "bos", "eos")
        if getattr(tokenizer, f"{role}_token_id") is not None
    }
    return transformers.AutoConfig.for_model(
        family, **{**by_family[family], "vocab_size": len(tokenizer), **special, **overrides}
    )


def _tokenizer(family: str) -> Any:
    """Return a tokeniser of the class and kind that the family's own checkpoints have."""
    import transformers

    limit: dict[str, Any] = {"model_max_length": MAX_TOKENS}
    if family in ("bert", "distilbert", "electra"):
        return transformers.BertTokenizer(vocab=_wordpieces(), do_lower_case=False, **limit)
    if family in ("roberta", "bart", "gpt2"):
        vocab, merges = _byte_level()
        kind: Any = transformers.GPT2Tokenizer if family == "gpt2" else transformers.RobertaTokenizer
        return kind(vocab=vocab, merges=merges, **limit)
    if family == "xlm-roberta":
        pieces = _unigrams(["<s>", "<pad>", "</s>", "<unk>"], ["<mask>"])
        return transformers.XLMRobertaTokenizer(vocab=pieces, **limit)
    if family == "deberta-v2":
        pieces = _unigrams(["[PAD]", "[CLS]", "[SEP]", "[UNK]"], ["[MASK]"])
        return transformers.DebertaV2Tokenizer(vocab=pieces, **limit)
    if family == "t5":
        return transformers.T5Tokenizer(vocab=_unigrams(["<pad>", "</s>", "<unk>"], []), extra_ids=0, **limit)
    raise ValueError(f"wanted one of {FAMILIES} or 'gpt2', got {family!r}")


def _numbered(pieces: Iterable[str]) -> dict[str, int]:
    return {piece: i for i, piece in enumerate(dict.fromkeys(pieces))}


def _wordpieces() -> dict[str, int]:
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    return _numbered([*special, *_CHARACTERS, *(f"##{c}" for c in _CHARACTERS), *WORDS])


def _unigrams(special: list[str], last: list[str]) -> list[tuple[str, float]]:
    """Return pieces with scores: words beat their letters."""
    letters = [("▁", -3.0), *((c, -4.0) for c in _CHARACTERS)]
    words = [(f"▁{word}", -2.0) for word in WORDS]
    return [*((s, 0.0) for s in special), *letters, *words, *((s, 0.0) for s in last)]


def _byte_level() -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Return a vocabulary and merges that join each word letter by letter, with a space before it or not."""
    from tokenizers.pre_tokenizers import ByteLevel

    merges: dict[tuple[str, str], None] = {}
    for word in [*(f"Ġ{word}" for word in WORDS), *WORDS]:
        for i in range(1, len(word)):
            merges[word[:i], word[i]] = None
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    pieces = [
        *special,
        *sorted(ByteLevel.alphabet()),
        *("".join(pair) for pair in merges),
        "<mask>",
        "<|endoftext|>",
    ]
    return _numbered(pieces), list(merges)
