"""Hidden states of a frozen backbone, computed once per split and read by every trial.

A store is a folder <cache>/<key>/ with one array per hidden state, `state_00.npy` (embeddings) to
`state_<l>.npy`, each [tokens, K], all sequences end to end without padding, and `meta.json`, written last. The
key hashes what determines the numbers: the backbone's files, the token ids themselves (and with them the
tokenizer, the texts, their order and the maximum length), the stream, the precision and the format. Arrays are
memory-mapped read-only, so trials of one machine share them through the page cache, and a state that no trial
mixes is never read.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
import torch
from torch import Tensor

from adalayers.backbone import Backbone, load
from adalayers.errors import BadInput
from adalayers.sources import BackboneSource
from adalayers.tokens import Encoded

FORMAT = 1
META = "meta.json"
EXTRACT_TOKENS = 4096
"""Tokens, padding included, of one forward pass of the backbone."""

Mode = Literal["memory", "disk", "live"]
Progress = Callable[[int, int], None]
"""Called with (sequences done, sequences in all)."""


class Features(Protocol):
    """A source of hidden states for the sequences of one split.

    lengths: int64 [n], tokens of each sequence, special ones included
    """

    lengths: np.ndarray

    def read(self, examples: np.ndarray, states: Sequence[int], device: torch.device) -> dict[int, Tensor]:
        """Return {state: float32 [tokens, K]} of the sequences `examples`, end to end, on `device`."""
        ...


class StoredFeatures:
    """Features read from a store; only its path travels to another process.

    in_memory: hold each state, once it is read, in the memory of the device instead of on disk
    """

    def __init__(self, folder: Path, *, in_memory: bool = False):
        self.folder, self.in_memory = folder, in_memory
        self._open()

    def _open(self) -> None:
        self.meta = json.loads((self.folder / META).read_text())
        self._offsets = np.load(self.folder / "offsets.npy")
        self.lengths = np.diff(self._offsets)
        self._mapped: dict[int, np.ndarray] = {}
        self._resident: dict[tuple[int, torch.device], Tensor] = {}

    def __getstate__(self) -> dict[str, object]:
        return {"folder": self.folder, "in_memory": self.in_memory}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._open()

    def read(self, examples: np.ndarray, states: Sequence[int], device: torch.device) -> dict[int, Tensor]:
        tokens = ragged_index(self._offsets, examples)
        if self.in_memory:
            index = torch.from_numpy(tokens).to(device)
            return {state: self._tensor(state, device).index_select(0, index).float() for state in states}
        return {
            # A copy of the rows: no view of the store ever reaches a trial.
            state: torch.from_numpy(self._array(state).take(tokens, axis=0)).to(device).float()
            for state in states
        }

    def _array(self, state: int) -> np.ndarray:
        if state not in self._mapped:
            self._mapped[state] = np.load(self.folder / _state_file(state), mmap_mode="r").view(np.ndarray)
        return self._mapped[state]

    def _tensor(self, state: int, device: torch.device) -> Tensor:
        if (state, device) not in self._resident:
            self._resident[state, device] = torch.from_numpy(np.load(self.folder / _state_file(state))).to(
                device
            )
        return self._resident[state, device]


class LiveFeatures:
    """Features computed anew by the backbone at every read: no disk, and the price of a forward pass."""

    def __init__(self, source: BackboneSource, encoded: Encoded):
        self.source, self.encoded = source, encoded
        self.lengths = np.diff(encoded.offsets)

    def read(self, examples: np.ndarray, states: Sequence[int], device: torch.device) -> dict[int, Tensor]:
        every = _forward(_loaded(self.source, device), self.encoded, examples, device)
        return {state: every[state].float() for state in states}


_LOADED: dict[tuple[str, torch.device], Backbone] = {}


def _loaded(source: BackboneSource, device: torch.device) -> Backbone:
    """Return the backbone, loaded once per process: trials that share a process share it, it never changes."""
    if (source.fingerprint, device) not in _LOADED:
        _LOADED[source.fingerprint, device] = load(source).to(device)
    return _LOADED[source.fingerprint, device]


def ragged_index(offsets: np.ndarray, examples: np.ndarray) -> np.ndarray:
    """Return the rows of `examples`, end to end, where example i owns the rows offsets[i]..offsets[i + 1]."""
    starts, lengths = offsets[examples], offsets[examples + 1] - offsets[examples]
    shift = np.repeat(starts - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
    return np.arange(lengths.sum(), dtype=np.int64) + shift


def default_cache() -> Path:
    """Return ADALAYERS_CACHE, else `adalayers` in the user's cache folder."""
    if path := os.environ.get("ADALAYERS_CACHE"):
        return Path(path).expanduser().resolve()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "adalayers"


def stored_bytes(source: BackboneSource, n_tokens: int, precision: str = "float16") -> int:
    """Return the size of a store of `n_tokens`, in bytes."""
    return n_tokens * (source.layers + 1) * source.width * np.dtype(precision).itemsize


def store_key(source: BackboneSource, encoded: Encoded, precision: str) -> dict[str, object]:
    """Return all that determines the numbers of a store."""
    ids = hashlib.sha256(np.ascontiguousarray(encoded.input_ids, dtype="<i4").tobytes())
    ids.update(np.ascontiguousarray(encoded.offsets, dtype="<i8").tobytes())
    return {
        "format": FORMAT,
        "backbone": source.fingerprint,
        "stream": "encoder",
        "tokens": ids.hexdigest(),
        "precision": precision,
    }


def store_folder(root: Path, source: BackboneSource, encoded: Encoded, precision: str = "float16") -> Path:
    """Return the folder of a store below `root`; it need not exist."""
    text = json.dumps(store_key(source, encoded, precision), sort_keys=True)
    return root / f"{source.name}-{hashlib.sha256(text.encode()).hexdigest()[:20]}"


def stored(
    root: Path,
    source: BackboneSource,
    encoded: Encoded,
    backbone: Callable[[], Backbone],
    *,
    precision: str = "float16",
    device: torch.device | None = None,
    on_progress: Progress | None = None,
) -> StoredFeatures:
    """Return the features of `encoded`, from the store if it holds them, else computed now and stored.

    `backbone` is called only where there is something to compute. Hidden states beyond float16's range are
    stored as float32. `device` computes them; None is a GPU where there is one.
    Raises `BadInput` where the disk is too small.
    """
    folder = store_folder(root, source, encoded, precision)
    if not (folder / META).exists():
        needed = stored_bytes(source, len(encoded.input_ids), precision)
        root.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(root).free
        if needed > free:
            raise BadInput(
                f"wanted {needed / 1e9:.1f} GB for hidden states in {root}, {free / 1e9:.1f} GB are free; "
                "free some, choose another --cache-dir, or take fewer --train-examples or a lower --max-length"
            )
        device = device or torch.device("cuda" if torch.cuda.is_available() else "cpu")
        try:
            _extract(folder, source, encoded, backbone(), precision, device, on_progress)
        except _OutOfRange:
            _extract(folder, source, encoded, backbone(), "float32", device, on_progress)
    return StoredFeatures(folder)


class _OutOfRange(Exception):
    """A hidden state does not fit the precision asked for."""


def _extract(
    folder: Path,
    source: BackboneSource,
    encoded: Encoded,
    backbone: Backbone,
    precision: str,
    device: torch.device,
    on_progress: Progress | None,
) -> None:
    lengths = np.diff(encoded.offsets)
    # Built beside its place and renamed: a kill leaves no store that looks finished.
    partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        arrays = [
            np.lib.format.open_memmap(
                partial / _state_file(state),
                mode="w+",
                dtype=precision,
                shape=(int(lengths.sum()), source.width),
            )
            for state in range(source.layers + 1)
        ]
        backbone = backbone.to(device)
        done = 0
        for examples in extraction_batches(lengths):
            rows = ragged_index(encoded.offsets, examples)
            for array, state in zip(arrays, _forward(backbone, encoded, examples, device), strict=True):
                values = state.cpu().numpy()
                if precision == "float16" and np.abs(values).max() > np.finfo(np.float16).max:
                    raise _OutOfRange
                array[rows] = values
            done += len(examples)
            if on_progress:
                on_progress(done, len(lengths))
        for array in arrays:
            array.flush()
        np.save(partial / "offsets.npy", encoded.offsets)
        meta = {"key": store_key(source, encoded, precision), "stored_as": precision, "backbone": source.id}
        (partial / META).write_text(json.dumps(meta, indent=1))
        # Another process may have finished the same store meanwhile; its numbers are the same.
        with contextlib.suppress(OSError):
            partial.rename(folder)
        if not (folder / META).exists():
            raise OSError(
                f"the feature store {folder} could not be put in place; remove that folder and run again"
            )
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def extraction_batches(lengths: np.ndarray) -> list[np.ndarray]:
    """Return batches of sequences of like length, each of at most `EXTRACT_TOKENS` with padding, longest first."""
    batches: list[np.ndarray] = []
    batch: list[int] = []
    for i in np.argsort(-lengths, kind="stable"):
        if batch and (len(batch) + 1) * lengths[batch[0]] > EXTRACT_TOKENS:
            batches.append(np.array(batch))
            batch = []
        batch.append(i)
    if batch:
        batches.append(np.array(batch))
    return batches


def _forward(
    backbone: Backbone, encoded: Encoded, examples: np.ndarray, device: torch.device
) -> list[Tensor]:
    """Return the hidden states of the sequences, each [tokens, K], without padding."""
    lengths = torch.from_numpy(encoded.offsets[examples + 1] - encoded.offsets[examples])
    real = torch.arange(int(lengths.max())) < lengths.unsqueeze(1)  # [batch, time]
    ids = torch.zeros(real.shape, dtype=torch.long)
    ids[real] = torch.from_numpy(encoded.input_ids[ragged_index(encoded.offsets, examples)].astype(np.int64))
    ids, real = ids.to(device), real.to(device)
    return [state[real] for state in backbone(ids, real.long())]


def _state_file(state: int) -> str:
    return f"state_{state:02d}.npy"
