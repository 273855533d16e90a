"""Tiny random backbones for tests, made from code: a config, random weights, and a tokeniser that works.

folder = tiny_backbone(tmp_path / "model", family="roberta", layers=3)
AutoModel.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
"""

import json
import string
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from adalayers.storage import hub
from tests.helpers.states import moved

FAMILIES = ("bert", "roberta", "xlm-roberta", "distilbert", "deberta-v2", "electra", "bart", "t5")
"""Families that most tests run over; `tiny_backbone` makes every one of `adalayers.backbones.families.FAMILIES`."""

WORDS = (
    *("the", "a", "an", "of", "to", "in", "and", "is", "was", "are", "not", "very"),
    *("he", "she", "it", "they", "we", "you", "Anna", "John", "Smith", "London", "Paris"),
    *("cat", "dog", "house", "river", "film", "book", "good", "bad", "big", "small", "red", "old", "new"),
    *("sleep", "sleeps", "slept", "eat", "eats", "ate", "walk", "walks", "walked", "read", "reads"),
)
_CHARACTERS = string.ascii_letters + string.digits + ".,;:!?'\"()-"
MAX_TOKENS = 512

OF_LLAMA = "gemma gemma2 llama mistral olmo2 phi3 qwen2 qwen3 smollm3 starcoder2"
"""Families whose configurations are named as LLaMA's."""


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

    folder = Path(folder)
    tokenizer = _tokenizer(family)
    made = _config(family, tokenizer, layers, width, heads, config)
    with torch.random.fork_rng(devices=[]), hub.quiet():
        torch.manual_seed(seed)
        model = moved(transformers.AutoModel.from_config(made), 0.05)
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    return folder


def says(folder: Path, name: str = "config.json", **changes: Any) -> None:
    """Change entries of a folder's file of JSON."""
    path = folder / name
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def batch(lengths: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return token ids that all tiny vocabularies have, and the mask of sequences of these lengths."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(10, 60, (len(lengths), max(lengths)), generator=generator)
    return ids, (torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)).long()


LARGE = "num_hidden_layers hidden_size num_attention_heads intermediate_size max_position_embeddings"
SIDES = "encoder_layers d_model encoder_attention_heads encoder_ffn_dim max_position_embeddings"
NAMES = {
    **dict.fromkeys(
        ("bart", "blenderbot", "blenderbot-small", "m2m_100", "marian", "mbart", "pegasus"), SIDES
    ),
    **dict.fromkeys(("t5", "mt5", "umt5"), "num_layers d_model num_heads d_ff"),
    "distilbert": "n_layers dim n_heads hidden_dim max_position_embeddings",
    "gpt2": "n_layer n_embd n_head n_inner n_positions",
}
"""How families call layers, width, heads, feed-forward width and positions, where not as in `LARGE`."""


def _config(
    family: str, tokenizer: Any, layers: int, width: int, heads: int, overrides: dict[str, Any]
) -> Any:
    import transformers

    names = NAMES.get(family, LARGE).split()
    sizes = dict(zip(names, (layers, width, heads, 2 * width, MAX_TOKENS), strict=False))
    if NAMES.get(family) == SIDES:
        sizes |= {"decoder_layers": 2, "decoder_attention_heads": heads, "decoder_ffn_dim": 2 * width}
        sizes |= {"decoder_start_token_id": None if family == "mbart" else 2, "forced_eos_token_id": None}
    offset = {"max_position_embeddings": MAX_TOKENS + 2, "type_vocab_size": 1, "layer_norm_eps": 1e-5}
    grouped = {"num_key_value_heads": heads // 2, "head_dim": width // heads}
    # As DeBERTa-v3 is configured: relative positions only.
    relative = {"pos_att_type": ["p2c", "c2p"], "position_buckets": 16, "norm_rel_ebd": "layer_norm"}
    relative |= {"share_att_key": True, "position_biased_input": False, "type_vocab_size": 0}
    of_roberta = ("roberta", "xlm-roberta", "camembert", "roberta-prelayernorm", "xlm-roberta-xl", "mpnet")
    of_t5 = {"d_kv": width // heads, "num_decoder_layers": 2, "decoder_start_token_id": 0}
    # What families want beside their sizes.
    more: dict[str, dict[str, Any]] = {
        **dict.fromkeys((*OF_LLAMA.split(), "eurobert"), grouped),
        **dict.fromkeys(("t5", "mt5", "umt5"), of_t5),
        **dict.fromkeys(of_roberta, offset),
        "albert": {"embedding_size": width // 2},
        "deberta": {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]},
        "deberta-v2": {"relative_attention": True, **relative},
        "electra": {"embedding_size": width},
        # Local attention over fewer tokens than the tests' texts have.
        "modernbert": {"local_attention": 4, "global_attn_every_n_layers": 2},
        "gemma3_text": {**grouped, "sliding_window": 4},
        "gpt_neo": {"attention_types": [[["global"], layers]]},
        "gpt2": {"n_inner": None},
        "gptj": {"rotary_dim": 4},
        "opt": {"ffn_dim": 2 * width, "word_embed_proj_dim": width},
    }
    special = {f"{role}_token_id": getattr(tokenizer, f"{role}_token_id") for role in ("pad", "bos", "eos")}
    special = {name: number for name, number in special.items() if number is not None}
    entries = {**sizes, **more.get(family, {}), "vocab_size": len(tokenizer), **special, **overrides}
    return transformers.AutoConfig.for_model(family, **entries)


BERTS, XLMS, T5S = "[PAD] [CLS] [SEP] [UNK]", "<s> <pad> </s> <unk>", "<pad> </s> <unk>"
UNIGRAMS: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "albert": ("Albert", BERTS, "[MASK]", {}),
    "deberta-v2": ("DebertaV2", BERTS, "[MASK]", {}),
    "mbart": ("MBart", XLMS, "<mask>", {"src_lang": "en_XX"}),
    "xlm-roberta": ("XLMRoberta", XLMS, "<mask>", {}),
    "pegasus": ("Pegasus", T5S, "", {"offset": 0}),
    **dict.fromkeys(("t5", "mt5", "umt5"), ("T5", T5S, "", {"extra_ids": 0})),
}
"""Family -> its tokeniser of pieces with scores: class, special pieces before and after, and what else it takes."""
BYTES = {
    **dict.fromkeys(("roberta", "bart", "roberta-prelayernorm"), "Roberta"),
    **dict.fromkeys(("gpt2", "opt", "gpt_neo", "gptj", "phi"), "GPT2"),
    "gpt_neox": "GPTNeoX",
    "qwen2": "Qwen2",
    "qwen3": "Qwen2",
}
MERGED = {
    **dict.fromkeys(("llama", "mistral"), "Llama"),
    **dict.fromkeys(("gemma", "gemma2", "gemma3_text"), "Gemma"),
}


def _tokenizer(family: str) -> Any:
    """Return a tokeniser of the class and kind that the family's own checkpoints have."""
    import transformers

    if family in UNIGRAMS:
        kind, special, last, own = UNIGRAMS[family]
        own = {**own, "vocab": _unigrams(special.split(), last.split())}
    elif family in BYTES or family in MERGED:
        kind = {**BYTES, **MERGED}[family]
        vocab, merges = byte_level() if family in BYTES else _pieces()
        own = {"vocab": vocab, "merges": merges}
    else:
        kind, own = "Bert", {"vocab": _wordpieces(), "do_lower_case": False}
    return getattr(transformers, f"{kind}Tokenizer")(**own, model_max_length=MAX_TOKENS)


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


def _merges(space: str) -> dict[tuple[str, str], None]:
    """Return merges that join each word letter by letter, with a space before it or not."""
    words = [*(f"{space}{word}" for word in WORDS), *WORDS]
    return dict.fromkeys((word[:i], word[i]) for word in words for i in range(1, len(word)))


def byte_level() -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Return a vocabulary of bytes and its merges."""
    from tokenizers.pre_tokenizers import ByteLevel

    merges = _merges("Ġ")
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    pieces = [*special, *sorted(ByteLevel.alphabet()), *map("".join, merges), "<mask>", "<|endoftext|>"]
    return _numbered(pieces), list(merges)


def _pieces() -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Return a vocabulary and its merges, spaces written as "▁"."""
    merges = _merges("▁")
    special = ["<pad>", "<unk>", "<bos>", "<eos>", "<s>", "</s>"]
    return _numbered([*special, "▁", *_CHARACTERS, *map("".join, merges)]), list(merges)
