"""Hidden states of a frozen backbone, computed once per split and read by every trial.

A store's name hashes what determines the numbers: the backbone's files, the token ids themselves (and with them
the tokenizer, the texts, their order and the maximum length), the streams, which of their states where they are not
all of one, the precision, what they were computed in where that is not float32, the release of transformers and the
format. Its arrays are memory-mapped read-only, so trials of one machine share them through the page cache, and a state
that no trial mixes is never read.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import json
import logging
import shutil
import weakref
from collections import UserDict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import torch
from torch import Tensor

from adalayers.backbones.backbone import Backbone
from adalayers.backbones.loading import shared_backbone
from adalayers.backbones.sources import BackboneSource
from adalayers.backbones.tokens import Encoded
from adalayers.console.progress import size
from adalayers.errors import BadInput, CannotWrite
from adalayers.features import store
from adalayers.features.store import PRECISIONS, OutOfRange, rounded
from adalayers.states import Precision, State
from adalayers.storage.folder import Folder
from adalayers.storage.to_json import JsonObject, to_json
from adalayers.tensors.ragged import pooled, ragged_rows, to_device, token_batches

logger = logging.getLogger(__name__)

STORE_FORMAT = 3
EXTRACT_TOKENS = 4096
"""Tokens, padding included, of one forward pass of the backbone."""

Progress = Callable[[int, int], None]
"""Called with (sequences done, sequences in all)."""

Mode = Literal["memory", "disk", "live"]
States = Mapping[State, Tensor]
"""{hidden state: [tokens, K]}, sequences end to end."""


class Features(Protocol):
    """A source of hidden states for the sequences of one split.

    Attributes:
        lengths: int64 [n], tokens of each sequence, special ones included.
    """

    lengths: np.ndarray

    def read(self, examples: np.ndarray, states: Sequence[State], device: torch.device) -> States:
        """Return the hidden states of some sequences.

        States may be loaded on access: access each one once. Others may read the same ones: they are not to be changed.

        Args:
            examples: Indices of the sequences, [n].
            states:   The hidden states wanted.
            device:   Where the result is put.

        Returns:
            {state: [tokens, K]}, sequences end to end, in the precision in which the source holds them.
        """
        ...


class Lazy(UserDict[State, Any]):
    """A mapping of functions: its values are what they return, at each access, and not kept."""

    def __getitem__(self, key: State) -> Tensor:
        return self.data[key]()


class StoredFeatures:
    """Features read from a store, of tokens or one vector of each sequence; only its path travels to another process.

    As long as there are such, in any process, the store is not removed.

    Args:
        folder:   Of the store.
        resident: Whether a GPU keeps each state in its memory after the first access. On a CPU the page cache does
                  this for all processes together.

    Raises:
        BadInput: There is no such store, or a file has the wrong size.
    """

    def __init__(self, folder: Path, *, resident: bool = False):
        self.folder, self.resident = folder, resident
        if (let_go := store.reading(folder)) is None:
            raise BadInput(
                f"wanted the hidden states in {folder}, another process is removing them; run the same command again"
            )
        weakref.finalize(self, let_go)
        self.meta = store.read_meta(folder)
        self.precision: str = self.meta["stored_as"]
        self.pooled = "pooling" in self.meta["key"]
        self._starts, self.lengths = (np.load(folder / f"{name}.npy") for name in ("starts", "lengths"))
        self._mapped: dict[State, Tensor] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.partial(StoredFeatures, resident=self.resident), (self.folder,)

    def read(self, examples: np.ndarray, states: Sequence[State], device: torch.device) -> States:
        starts = self._starts[examples]
        index = torch.from_numpy(starts if self.pooled else ragged_rows(starts, self.lengths[examples]))
        if self.resident and device.type != "cpu":
            index = to_device(index, device)

        def rows(state: State) -> Tensor:
            """Return copies: no view of the store ever reaches a trial. They travel as they are stored."""
            if index.device.type != "cpu":
                return self._on_gpu(state, device).index_select(0, index)
            return to_device(self._tensor(state).index_select(0, index), device)

        return Lazy({state: functools.partial(rows, state) for state in states})

    def _tensor(self, state: State) -> Tensor:
        if state not in self._mapped:
            if state.key not in self.meta["states"]:
                raise _unavailable(state, self.meta["states"])
            self._mapped[state] = store.mapped(self.folder, state, self.precision)
        return self._mapped[state]

    def _on_gpu(self, state: State, device: torch.device) -> Tensor:
        key = (self.folder, state, device)
        if key not in _ON_GPU:
            _ON_GPU[key] = self._tensor(state).to(device)
        return _ON_GPU[key]


_ON_GPU: dict[tuple[Path, State, torch.device], Tensor] = {}
"""Hidden states in a GPU's memory, once per process: Tune gives every trial of a worker its own copy of its data."""


def drop_resident_but_of(features: Sequence[Features]) -> None:
    """Drop the hidden states in a GPU's memory that are not of these features: a worker goes on with another case."""
    folders = {each.folder for each in features if isinstance(each, StoredFeatures)}
    for key in [key for key in _ON_GPU if key[0] not in folders]:
        del _ON_GPU[key]


class Subset:
    """The features of `examples` [m] of a split, numbered 0..m - 1; itself a source of `Features`.

    Attributes:
        whole:    Features that it is a part of.
        examples: Their numbers there.
    """

    def __init__(self, features: Features, examples: np.ndarray):
        self.whole, self.examples = in_whole(features, examples)
        self.lengths = features.lengths[examples]

    def read(self, examples: np.ndarray, states: Sequence[State], device: torch.device) -> States:
        """Return {state: [tokens, K]} of the sequences `examples` of this view, as `Features.read` does."""
        return self.whole.read(self.examples[examples], states, device)


def in_whole(features: Features, examples: np.ndarray) -> tuple[Features, np.ndarray]:
    """Return the features that others are a part of, and the numbers of some sequences there."""
    if isinstance(features, Subset):
        return features.whole, features.examples[examples]
    return features, examples


class LiveFeatures:
    """Features computed again by the backbone at every read: no disk, and the price of a forward pass.

    Attributes:
        precision: What numbers are rounded to, as they would be in a store.
        shared: Whether the last pass is kept, so that trials which read one batch after the other pass it once.
    """

    def __init__(self, source: BackboneSource, encoded: Encoded, precision: str = "float32"):
        self.source, self.encoded, self.precision = source, encoded, precision
        self.lengths = np.diff(encoded.offsets)
        self.shared = False
        self._last: tuple[bytes, dict[State, Tensor]] = b"", {}

    def read(self, examples: np.ndarray, states: Sequence[State], device: torch.device) -> States:
        if not states:  # what runs a base model of its own reads none
            return {}
        if beyond := [state for state in states if state not in self.source.states]:
            raise _unavailable(beyond[0], [state.key for state in self.source.states])
        if self._last[0] != examples.tobytes():
            self._last = b"", {}  # its memory is free before the next pass
            backbone = shared_backbone(self.source, device)
            found = hidden_states(backbone, self.encoded, examples, device)
            self._last = examples.tobytes(), {s: rounded(x, self.precision) for s, x in found.items()}
        all_states = self._last[1]
        if not self.shared:
            self._last = b"", {}
        return {state: all_states[state] for state in states}


def _unavailable(state: State, available: Sequence[str]) -> BadInput:
    return BadInput(
        f"wanted the hidden state {state.key}, these features are of {', '.join(available)} alone; prepare them for "
        "the configurations that read it (Prepared.reading)"
    )


def stored_rows(source: BackboneSource, encoded: Encoded) -> int:
    """Return how many vectors of each state are stored: one of each token, or of each sequence."""
    return len(encoded.offsets) - 1 if source.pooling else len(encoded.input_ids)


def stored_bytes(source: BackboneSource, encoded: Encoded, precision: str = "float16") -> int:
    """Return the size of the store of a split, in bytes."""
    numbers = stored_rows(source, encoded) * len(source.states) * source.width
    return numbers * PRECISIONS[precision][0].itemsize


def store_key(source: BackboneSource, encoded: Encoded, precision: str) -> JsonObject:
    """Return everything that determines the numbers of a store."""
    key: JsonObject = {
        "format": STORE_FORMAT,
        "backbone": source.fingerprint,
        "streams": {stream.name: stream.layers for stream in source.streams_read},
        "states": None if source.chosen is None else [state.key for state in source.states],
        "computed_as": None if source.dtype == "float32" else source.dtype,
        "pooling": source.pooling,
        "token_ids": encoded.digest().hexdigest(),
        "precision": precision,
        "transformers": importlib.metadata.version("transformers"),
    }
    return {name: value for name, value in key.items() if value is not None}


def store_folder(root: Path, source: BackboneSource, encoded: Encoded, precision: str = "float16") -> Path:
    """Return the folder of a store below `root`; it need not exist."""
    text = json.dumps(store_key(source, encoded, precision), sort_keys=True)
    return root / f"{source.name}-{hashlib.sha256(text.encode()).hexdigest()[:20]}"


def usable_folder(root: Path, source: BackboneSource, encoded: Encoded, precision: str = "float16") -> Path:
    """Return a usable store: one of just the chosen states, else one of all states that contains them."""
    own = store_folder(root, source, encoded, precision)
    if source.chosen is None or store.is_complete(own):
        return own
    whole = source.with_all_states
    full = store_folder(root, whole, encoded, precision)
    # One of all states has the precision of those that need most.
    fits = {*source.chosen} <= {*whole.states} and store.checked(full)[0].get("stored_as") == precision
    return full if fits else own


def stored(
    root: Path,
    source: BackboneSource,
    encoded: Encoded,
    backbone: Callable[[], Backbone],
    *,
    precision: Precision = "float16",
    about: Mapping[str, Any] | None = None,
    device: torch.device | None = None,
    on_progress: Progress = lambda done, total: None,
) -> StoredFeatures:
    """Return the features of `encoded`: from a complete store if there is one, else computed now and stored.

    A store that an earlier process began is continued, one with wrong checksums is computed again, and one that
    another process is computing is waited for.

    Args:
        root:        Folder of all stores.
        source:      The backbone, and which of its states are read.
        encoded:     The token ids.
        backbone:    Loads the backbone; called only if there is something to compute.
        precision:   In which states are stored; those beyond float16's range are stored as float32.
        about:       Facts for people, written into `meta.json`.
        device:      Where they are computed; None: on a GPU if there is one.
        on_progress: Called as states are computed.

    Raises:
        BadInput: The disk is too small, or the cache folder cannot be made.
        CannotWrite: The disk filled up meanwhile. The next run continues from what was stored.
    """
    folder, key = store_folder(root, source, encoded, precision), store_key(source, encoded, precision)
    usable = usable_folder(root, source, encoded, precision)
    if usable != folder:
        with contextlib.suppress(BadInput):  # damaged, or being removed: then one of its own is computed
            features = StoredFeatures(usable)  # held while it is checked
            if not store.damage(usable, store_key(source.with_all_states, encoded, precision)):
                store.touch(usable)
                return features
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(
            f"wanted {root} as the folder of the feature store, it cannot be made ({error}); choose another --cache-dir"
        ) from error
    with store.exclusive(folder):
        damage = store.damage(folder, key) if store.is_complete(folder) else ""
        if damage:
            logger.warning(
                f"{folder.name} is damaged or of another version ({damage}); its hidden states are computed again"
            )
        if damage is not None:
            model = backbone()
            try:
                _fill(folder, source, encoded, key, about or {}, model, device, on_progress)
            except OSError as error:
                raise CannotWrite(
                    f"wanted to store hidden states in {root}, which failed: {error.strerror or error}; make room "
                    "(adalayers cache) or make it writable, then run the same command again, or choose another "
                    "--cache-dir: what was stored before is as it was"
                ) from error
        store.touch(folder)
        return StoredFeatures(folder)  # held by then by this process, so that nobody removes it


def _fill(
    folder: Path,
    source: BackboneSource,
    encoded: Encoded,
    key: JsonObject,
    about: Mapping[str, Any],
    backbone: Backbone,
    device: torch.device | None,
    on_progress: Progress,
) -> None:
    """Compute what a store lacks, in the order of `extraction_batches`.

    One that is there whole, which is damaged, is begun again.
    """
    device = device or torch.device("cuda" if torch.cuda.is_available() else "cpu")
    batches = extraction_batches(lengths := np.diff(encoded.offsets))
    spec = {
        "key": key,
        "computed_with": {"torch": torch.__version__, "device": device.type, "batch_tokens": EXTRACT_TOKENS},
        "states": [state.key for state in source.states],
        "width": source.width,
        "tokens": stored_rows(source, encoded),
    }
    # Of one that is begun in float32, an earlier process found that the numbers do not fit less.
    begun = Folder(folder).read_object(store.PROGRESS).get("spec")
    beyond = begun == to_json({**spec, "stored_as": "float32"})
    for stored_as in ("float32",) if beyond else dict.fromkeys((str(key["precision"]), "float32")):
        _require_room(folder, stored_bytes(source, encoded, stored_as))
        backbone = backbone.to(device)
        with contextlib.closing(store.Writer(folder, {**spec, "stored_as": stored_as})) as writer:
            done = sum(map(len, batches[: writer.batches]))
            try:
                for examples in batches[writer.batches :]:
                    states = list(hidden_states(backbone, encoded, examples, device).values())
                    if source.pooling:
                        of_each = torch.from_numpy(lengths[examples])
                        states = [pooled(state.float(), of_each, source.pooling) for state in states]
                    writer.append(states)
                    done += len(examples)
                    on_progress(done, len(lengths))
            except OutOfRange as error:
                why = str(error)
                continue
            order = np.concatenate([np.zeros(0, int), *batches])
            rows = np.ones_like(lengths) if source.pooling else lengths
            starts = np.empty(len(lengths), np.int64)
            starts[order] = np.cumsum(rows[order]) - rows[order]
            writer.finish(starts, lengths, {"backbone": source.id, **about})
            return
    shutil.rmtree(folder, ignore_errors=True)
    raise BadInput(
        f"wanted finite hidden states of {source.name} that tell tokens apart, {why}; check its weights in "
        f"{str(source.folder)!r}, or fetch the model again"
    )


def _require_room(folder: Path, n_bytes: int) -> None:
    """Raise `BadInput` where the disk has no room for what a store lacks."""
    written = sum(file.stat().st_size for file in folder.iterdir()) if folder.exists() else 0
    needed, free = n_bytes - written, shutil.disk_usage(folder.parent).free
    if needed > free:
        raise BadInput(
            f"wanted {size(needed)} for hidden states in {folder.parent}, {size(free)} are free; free some (adalayers "
            "cache), choose another --cache-dir, or lower --train-examples or --max-length"
        )


def extraction_batches(lengths: np.ndarray) -> list[np.ndarray]:
    """Return batches of sequences of like length, each of at most `EXTRACT_TOKENS` with padding, longest first."""
    return token_batches(lengths, EXTRACT_TOKENS)


def hidden_states(
    backbone: Backbone, encoded: Encoded, examples: np.ndarray, device: torch.device
) -> dict[State, Tensor]:
    """Return all hidden states of the sequences `examples`, each [tokens, K], end to end without padding."""
    own = encoded.take(examples)
    ids, lengths = to_device(own.input_ids.astype(np.int64), device), torch.from_numpy(np.diff(own.offsets))
    types = None if own.token_types is None else to_device(own.token_types.astype(np.int64), device)
    return backbone.of_sequences(ids, lengths, backbone.states, types)
