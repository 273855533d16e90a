"""What the folder of a pretrained model holds: its config, weights and tokeniser files. No weight is loaded.

Whatever loads of it loads from `staged`: the files that its fingerprint is of, and no others. What would load something
else all the same is left out of its configs there, or refused (`require_plain`).
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from adalayers.backbones.families import Family, family_of
from adalayers.errors import BadInput
from adalayers.states import Stream
from adalayers.storage import hub

MAX_SIZE = 1_000_000
"""Most layers of a model, and its largest width: beyond, a config is damaged, and making the model takes hours."""

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
    "source.spm",
    "target.spm",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
]

NON_WEIGHT_FILES = ["config.json", *_TOKENIZER_FILES]
"""Every file that is read from such a folder, except weights."""

_ADAPTERS = ("adapter_config.json", "adapter_model.safetensors", "adapter_model.bin")
"""peft's own, which transformers adds to a model where peft is installed."""

FILES = [*NON_WEIGHT_FILES, WEIGHTS_FILE, _WEIGHTS_INDEX, "model-*-of-*.safetensors", _ADAPTERS[0]]
"""Patterns of every file that is read from such a folder, and of what is refused."""

_REFUSED = {
    "transformers_weights": "names other weights than those of model.safetensors; give that file this name",
    "quantization_config": "says that its weights are quantised, and packages decide what they are read as; save it "
    "with weights of float32 or bfloat16 (docs/backbones.md)",
}
"""Entries of a config, at any depth, that make a loader read something else."""
_LEFT_OUT = {
    "config.json": re.compile("tie_last_hidden_states|configuration_files"),
    "tokenizer_config.json": re.compile(".*_files?|init_inputs"),
}
"""Entries of configs that a loader does not see: whether the last state lies behind the final norm, other files."""
_ATTENTION = re.compile("_?(attn|experts)_implementation(_internal)?")
_OWN_ATTENTION = (None, "eager", "sdpa")
"""What is transformers' own of them: others are packages, or code from the hub."""

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


def has_vocabulary(folder: Path) -> bool:
    """Say whether the folder holds a tokeniser's vocabulary, in any of the usual files."""
    return any((folder / file).is_file() for file in VOCABULARIES)


def weights(folder: Path) -> list[Path]:
    """Return the files that transformers would read weights from, by its own preference; [] if incomplete."""
    if (folder / WEIGHTS_FILE).is_file():
        return [folder / WEIGHTS_FILE]
    try:
        shards = sorted(set(_json(folder / _WEIGHTS_INDEX)["weight_map"].values()))
        plain = all(re.fullmatch(r"[^/\\]+\.safetensors", shard) for shard in shards)
    except (LookupError, TypeError, AttributeError):
        return []
    paths = [folder / _WEIGHTS_INDEX, *(folder / shard for shard in shards)]
    # No pickle, none elsewhere.
    return paths if plain and all(path.is_file() for path in paths) else []


def _json(path: Path) -> Any:
    """Return what a file of JSON holds; None where it cannot be read: whoever loads it says what is wrong."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


def fingerprint(folder: Path, *, random: bool = False) -> str:
    """Return 16 hex digits over names and contents of the files that determine token ids and hidden states.

    Args:
        folder: The model's.
        random: Whether the weights are random; weight files in the folder then do not count.
    """
    digest = hashlib.sha256()
    for path in _read(folder, with_weights=not random):
        digest.update(f"{path.name}\0{file_sha256(path)}\n".encode())
    if random:
        digest.update(f"random weights, seed {RANDOM_SEED}\n".encode())
    return digest.hexdigest()[:16]


def _read(folder: Path, *, with_weights: bool) -> list[Path]:
    """Return the files of a model that are read, by name."""
    others = [path for file in NON_WEIGHT_FILES if (path := folder / file).is_file()]
    return sorted([*others, *(weights(folder) if with_weights else [])], key=lambda path: path.name)


@contextlib.contextmanager
def staged(folder: Path, *, with_weights: bool = False) -> Iterator[Path]:
    """Yield a folder of links to the files of a model that are read: a loader finds nothing else there."""
    with tempfile.TemporaryDirectory(prefix="adalayers-model-") as name:
        place = Path(name)
        for path in _read(folder, with_weights=with_weights):
            if path.name in _LEFT_OUT:
                (place / path.name).write_text(json.dumps(_pruned(path)))
            else:
                (place / path.name).symlink_to(path.resolve())
        yield place


def _pruned(path: Path) -> Any:
    """Return a document of JSON without the entries, at any depth, that a loader must not see."""
    left_out = _LEFT_OUT[path.name]

    def seen(entries: dict[str, Any]) -> dict[str, Any]:
        foreign = {key for key in entries if _ATTENTION.fullmatch(key) and entries[key] not in _OWN_ATTENTION}
        return {key: entries[key] for key in entries if not left_out.fullmatch(key) and key not in foreign}

    return json.loads(path.read_text(encoding="utf-8"), object_hook=seen)


def require_plain(folder: Path, identifier: str) -> None:
    """Check that a model's weights are all that makes it what it is.

    Raises:
        BadInput: Adapters lie beside them, or its config names others, or how packages read them.
    """
    if there := [name for name in _ADAPTERS if (folder / name).exists()]:
        raise BadInput(
            f"wanted weights alone of {identifier!r}, {str(folder)!r} holds an adapter too ({there[0]}); merge it into "
            "the weights (merge_and_unload of peft, then save_pretrained), or remove its files to leave it out"
        )
    for name, value in _entries(_json(folder / "config.json")):
        if name in _REFUSED and value is not None:
            raise BadInput(
                f"wanted a config.json of {identifier!r} in {str(folder)!r} without {name}, which {_REFUSED[name]}, "
                "and remove that entry"
            )


def _entries(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the entries of a document of JSON, at any depth."""
    if isinstance(value, dict):
        yield from value.items()
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _entries(each)


def file_sha256(path: Path) -> str:
    """Return the hex sha256 of a file, hashed once per process as long as it stays the same."""
    stat = path.stat()
    return _sha256_once(path.resolve(), stat.st_size, stat.st_mtime_ns)


@functools.cache
def _sha256_once(path: Path, size: int, mtime_ns: int) -> str:
    """Hash a file once per process; size and time in the key tell a changed file from a known one."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_config(folder: Path, identifier: str) -> Any:
    """Return transformers' config of the model.

    Raises:
        BadInput: If it knows no such model, or a size in it is beyond any model's.
    """
    from transformers import AutoConfig

    wanted = f"wanted a config.json of {identifier!r} that transformers recognises, got none"
    with hub.quiet(), hub.refusing(wanted, "choose another backbone"), staged(folder) as place:
        config = AutoConfig.from_pretrained(place, local_files_only=True, trust_remote_code=False)
    config._name_or_path = str(folder)
    return config


def streams(config: Any, family: Family, identifier: str) -> tuple[tuple[Stream, ...], int]:
    """Return the streams of hidden states that a model offers, and their width K.

    Raises:
        BadInput: The config states no layers or width, or describes an encoder that is set up as a decoder.
    """
    layers: Any = getattr(config, "num_hidden_layers", None)
    width: Any = getattr(config, "hidden_size", None)
    decoder_layers = getattr(config, "decoder_layers", None) or getattr(config, "num_decoder_layers", None)
    if family.kind == "encoder-decoder":
        layers = getattr(config, "encoder_layers", None) or layers
    as_decoder = family.kind == "encoder" and getattr(config, "is_decoder", False)
    numbers = isinstance(layers, int) and isinstance(width, int)
    if as_decoder or not numbers or not 1 <= min(layers, width) <= max(layers, width) <= MAX_SIZE:
        what = "an encoder set up as a decoder" if as_decoder else f"{layers} layers of width {width}"
        raise BadInput(
            f"wanted a {config.model_type!r} model as it was pretrained, the config.json of {identifier!r} describes "
            f"{what}; fix it, fetch the model again, or choose another backbone"
        )
    normed = bool(family.final_norm)
    first = Stream("decoder" if family.kind == "decoder" else "encoder", layers, final_norm=normed)
    # T5's kind is saved as an encoder alone too.
    if family.kind == "encoder-decoder" and config.is_encoder_decoder and isinstance(decoder_layers, int):
        return (first, Stream("decoder", decoder_layers, final_norm=normed)), width
    return (first,), width


def is_encoder_decoder(config: Any) -> bool:
    """Return whether transformers loads an encoder-decoder model from this config."""
    family = family_of(config)
    return bool(config.is_encoder_decoder) if family is None else family.kind == "encoder-decoder"


def shorten(config: Any, layers: int, depth: int) -> None:
    """Truncate a config of `layers` layers, in place, to its first `depth` layers."""
    for name, value in vars(config).items():
        if "layer" in name and isinstance(value, list) and len(value) == layers:  # a kind of attention each
            setattr(config, name, value[:depth])
    config.num_hidden_layers = depth


def max_length(config: Any, folder: Path) -> int:
    """Return the most tokens that the position embeddings allow; without such a limit, the tokeniser's limit."""
    positions = getattr(config, "max_position_embeddings", None)
    if isinstance(positions, int) and positions > 0:
        if config.model_type not in _OFFSET_POSITIONS:
            return positions
        pad = getattr(config, "pad_token_id", None)
        if not isinstance(pad, int) or not 0 <= pad < positions - 1:
            raise BadInput(
                f"wanted pad_token_id in the config.json in {str(folder)!r} to be a whole number of at least 0 and "
                f"below {positions - 1}, got {pad}; a {config.model_type!r} model counts its positions from there: "
                "fix it, or fetch the model again"
            )
        return positions - pad - 1
    limit = (_json(folder / "tokenizer_config.json") or {}).get("model_max_length")
    # transformers writes 1e30 for a tokeniser without a limit.
    return int(limit) if isinstance(limit, int | float) and 0 < limit < UNLIMITED_TOKENS else UNLIMITED_TOKENS
