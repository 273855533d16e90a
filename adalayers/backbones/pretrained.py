"""What the folder of a pretrained model holds: its config, weights and tokeniser files. No weight is loaded.

Streams read: encoders (BERT and its kin), and the encoder of encoder-decoder models (BART, T5).
"""

from __future__ import annotations

import functools
import hashlib
import json
from pathlib import Path
from typing import Any

from adalayers import hub
from adalayers.config import Stream
from adalayers.errors import BadInput

UNLIMITED_TOKENS = 1_000_000
"""Stands for "no limit" in `max_length`."""

WEIGHTS_FILE = "model.safetensors"
_WEIGHTS_INDEX = "model.safetensors.index.json"

VOCABULARIES = [
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "spiece.model",
    "spm.model",
    "sentencepiece.bpe.model",
    "tokenizer.model",
]
"""A tokeniser has at least one of these."""

_TOKENIZER_FILES = [
    *VOCABULARIES,
    "merges.txt",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
]

OTHER_FILES = ["config.json", *_TOKENIZER_FILES]
"""All that is read of such a folder but its weights."""

FILES = [*OTHER_FILES, WEIGHTS_FILE, _WEIGHTS_INDEX, "model-*-of-*.safetensors"]
"""Patterns of all that is read of such a folder."""

RANDOM_SEED = 0
"""Sets the weights of a backbone that has random ones."""

# Their position ids start at pad_token_id + 1, so that many of max_position_embeddings are never tokens.
_OFFSET_POSITIONS = {
    "camembert",
    "data2vec-text",
    "ibert",
    "longformer",
    "luke",
    "mpnet",
    "roberta",
    "roberta-prelayernorm",
    "xlm-roberta",
    "xlm-roberta-xl",
    "xmod",
}

# Saved as an encoder alone, they say that they are no encoder-decoder; transformers loads them as one anyway.
_T5_KIND = {"t5", "mt5", "umt5", "longt5", "switch_transformers"}


FINAL_NORM = dict.fromkeys(_T5_KIND, "final_layer_norm")
"""Families whose last hidden state lies behind a norm that the others have not passed -> that norm's name in the
stream's module."""


def has_vocabulary(folder: Path) -> bool:
    """Say whether the folder holds a tokeniser's vocabulary, in any of the usual files."""
    return any((folder / file).is_file() for file in VOCABULARIES)


def weights(folder: Path) -> list[Path]:
    """Return the files that transformers would read weights from, by its own preference; [] if incomplete."""
    if (folder / WEIGHTS_FILE).is_file():
        return [folder / WEIGHTS_FILE]
    if not (folder / _WEIGHTS_INDEX).is_file():
        return []
    try:
        shards = set(json.loads((folder / _WEIGHTS_INDEX).read_text())["weight_map"].values())
    except (ValueError, KeyError, AttributeError):
        return []
    paths = [folder / _WEIGHTS_INDEX, *(folder / str(shard) for shard in sorted(shards))]
    return paths if all(path.is_file() for path in paths) else []


def fingerprint(folder: Path, *, random: bool = False) -> str:
    """Return 16 hex digits over names and contents of what determines token ids and hidden states.

    random: whether the weights are random ones, whatever files of weights the folder holds
    """
    others = [path for file in OTHER_FILES if (path := folder / file).is_file()]
    digest = hashlib.sha256()
    for path in sorted([*others, *([] if random else weights(folder))], key=lambda path: path.name):
        digest.update(f"{path.name}\0{file_sha256(path)}\n".encode())
    if random:
        digest.update(f"random weights, seed {RANDOM_SEED}\n".encode())
    return digest.hexdigest()[:16]


def file_sha256(path: Path) -> str:
    """Return the hex sha256 of a file, hashed once per process as long as it stays the same."""
    stat = path.stat()
    return _sha256_once(path.resolve(), stat.st_size, stat.st_mtime_ns)


@functools.lru_cache(maxsize=256)
def _sha256_once(path: Path, size: int, mtime_ns: int) -> str:
    """Hash a file once per process; size and time in the key tell a changed file from a known one."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_config(folder: Path, identifier: str) -> Any:
    """Return transformers' config of the model. Raises `BadInput` where it knows none of such."""
    from transformers import AutoConfig

    with hub.quiet():
        try:
            return AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        except Exception as error:  # of many kinds: no JSON, no or an unknown model type, code of its own
            raise BadInput(
                f"wanted a model that transformers knows, the config.json of {identifier!r} is none of such "
                f"({type(error).__name__}: {hub.first_line(error)}); choose another backbone"
            ) from error


def streams(config: Any, identifier: str) -> tuple[tuple[Stream, ...], int]:
    """Return the streams of hidden states that are read, and their width K.

    Raises `BadInput` where there is no encoder.
    """
    from transformers.models.auto import modeling_auto

    if is_encoder_decoder(config):
        readable = config.model_type in modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES
        layers = getattr(config, "encoder_layers", None) or getattr(config, "num_hidden_layers", None)
    else:
        # transformers has a masked-LM head for every text encoder, and for no decoder.
        encoder = config.model_type in modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
        readable = encoder and not getattr(config, "is_decoder", False)
        layers = getattr(config, "num_hidden_layers", None)
    width = getattr(config, "hidden_size", None)
    if not (readable and isinstance(layers, int) and isinstance(width, int)):
        raise BadInput(
            f"wanted an encoder as backbone, {identifier!r} is a {config.model_type!r} model; this version "
            "reads encoders (BERT, RoBERTa, DistilBERT, DeBERTa, ELECTRA, ...) and the encoders of "
            "encoder-decoder models (BART, T5, ...): choose one of those"
        )
    return (Stream("encoder", layers, final_norm=config.model_type in FINAL_NORM),), width


def is_encoder_decoder(config: Any) -> bool:
    """Say whether transformers loads an encoder-decoder model by this config."""
    return bool(getattr(config, "is_encoder_decoder", False)) or config.model_type in _T5_KIND


def max_length(config: Any, folder: Path) -> int:
    """Return the most tokens that the positions allow; without such a limit, what the tokeniser says."""
    positions = getattr(config, "max_position_embeddings", None)
    if isinstance(positions, int) and positions > 0:
        return positions - config.pad_token_id - 1 if config.model_type in _OFFSET_POSITIONS else positions
    try:
        said = json.loads((folder / "tokenizer_config.json").read_text()).get("model_max_length")
    except (OSError, ValueError):
        said = None
    # transformers writes 1e30 where a tokeniser knows no limit.
    return int(said) if isinstance(said, int | float) and 0 < said < UNLIMITED_TOKENS else UNLIMITED_TOKENS
