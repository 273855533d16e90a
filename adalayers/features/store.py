"""The files of a feature store: appended to in one fixed order, so that a kill costs little; read-only once whole.

A store is a folder with a file per hidden state, [tokens, K], sequences end to end without padding:
`encoder_00.npy` (embeddings) to `encoder_<l>.npy`, other streams likewise, and `encoder_<l>_before_norm.npy` where
the last state lies behind a final norm; `starts.npy` and `lengths.npy`, int64 [n], the rows of each sequence (of one
pooled vector a sequence: its row, and the tokens that it stands for); and
`meta.json`, written last, with the size and checksum of every file and a checksum of its own. While it is built it has
`progress.json` instead: how many rows are whole, and their checksums. What lies beyond those rows is cut off and
computed again.

Only the page cache is waited for, not the disk: a killed process loses nothing that it had written, and what a
power cut damages no longer has its checksum.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import hashlib
import io
import logging
import math
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
import xxhash
from filelock import FileLock, Timeout
from torch import Tensor

from adalayers.errors import BadInput
from adalayers.states import State
from adalayers.storage.folder import Folder
from adalayers.storage.to_json import JsonObject, to_json

logger = logging.getLogger(__name__)

META, PROGRESS, USED = "meta.json", "progress.json", "used"
KEEP_SECONDS = 5.0
"""Work that a kill can cost, about."""

PRECISIONS: dict[str, tuple[torch.dtype, str]] = {
    "float16": (torch.float16, "<f2"),
    "bfloat16": (torch.bfloat16, "<i2"),  # numpy has no bfloat16: its bits
    "float32": (torch.float32, "<f4"),
}
"""How hidden states are stored -> torch's type, numpy's type of the file."""


class OutOfRange(Exception):
    """A hidden state does not fit the precision asked for, or tells nothing apart; says which, and why."""


def to_stored(values: Tensor, precision: str, name: str) -> np.ndarray:
    """Return [tokens, K] as the store keeps it.

    Raises:
        OutOfRange: Where a number does not fit, or all are too small or the same; it says of which hidden state, by
            `name`.
    """
    dtype, _ = PRECISIONS[precision]
    cast = values.to(dtype)
    # Both pass NaN on; `isfinite` of half-precision numbers is slow on CPUs.
    least, most = torch.aminmax(cast)
    if not (math.isfinite(float(least)) and math.isfinite(float(most))):
        raise OutOfRange(f"{name} holds NaN or infinity")
    if least == most and cast.numel() > 1:  # of weights that are lost; beyond float32's precision too
        raise OutOfRange(f"{name} is the same number throughout a batch of tokens")
    if 0 < max(-float(least), float(most)) < torch.finfo(dtype).tiny:
        raise OutOfRange(f"{name} holds numbers below {torch.finfo(dtype).tiny:.1g} alone")
    return (cast.view(torch.int16) if dtype == torch.bfloat16 else cast).contiguous().cpu().numpy()


def rounded(values: Tensor, precision: str) -> Tensor:
    """Return [tokens, K] rounded as a store would, numbers that do not fit as they are."""
    cast = values.to(PRECISIONS[precision][0]).to(values.dtype)
    return values if cast is values else torch.where(cast.isfinite(), cast, values)


def mapped(folder: Path, state: State, precision: str) -> Tensor:
    """Return a hidden state [tokens, K] of a finished store, mapped into memory and shared with other processes.

    The mapping is private: whatever is written to it stays in this process and never reaches the file.
    """
    bits = np.load(folder / f"{state.key}.npy", mmap_mode="c")
    return torch.from_numpy(bits).view(PRECISIONS[precision][0])


class Writer:
    """Appends the rows of a store, going on where an earlier process was stopped.

    Args:
        spec: All that the numbers and their order follow from; a started store of another spec is discarded. Among it
            `states`, the keys of hidden states in the order in which they are appended, `width`, K, `tokens`, the rows
            in all, and `stored_as`, the precision.

    Attributes:
        batches: How many were appended so far, by earlier processes too.
        rows: The rows in them.
    """

    def __init__(self, folder: Path, spec: Mapping[str, Any]):
        self.folder, self._spec = folder, spec
        self._names = [f"{key}.npy" for key in spec["states"]]
        self._width, self._precision, self._n_tokens = spec["width"], spec["stored_as"], spec["tokens"]
        self._kept = time.monotonic()
        self.batches = self.rows = 0
        if not self._resume():
            self._start()

    def append(self, states: Sequence[Tensor]) -> None:
        """Append the rows of one batch, a tensor [tokens, K] per hidden state."""
        named = zip(self._spec["states"], states, strict=True)
        arrays = [to_stored(state, self._precision, name) for name, state in named]
        for file, hasher, array in zip(self._files, self._hashers, arrays, strict=True):
            file.write(array.data)
            hasher.update(array.data)
        self.rows += len(arrays[0])
        self.batches += 1
        if time.monotonic() - self._kept > KEEP_SECONDS:
            self.keep()

    def keep(self) -> None:
        """Note what was appended so far: the next process goes on from here."""
        for file in self._files:
            file.flush()
        digests = [hasher.hexdigest() for hasher in self._hashers]
        progress = {"spec": self._spec, "batches": self.batches, "rows": self.rows, "xxh3_128": digests}
        Folder(self.folder).write_json(PROGRESS, progress)
        self._kept = time.monotonic()

    def finish(self, starts: np.ndarray, lengths: np.ndarray, about: JsonObject) -> None:
        """Make the store whole; `about` is written next to its key for people to read."""
        self.close()
        for name, values in (("starts.npy", starts), ("lengths.npy", lengths)):
            np.save(self.folder / name, values.astype(np.int64))
        digests = {name: hasher.hexdigest() for name, hasher in zip(self._names, self._hashers, strict=True)}
        digests |= {name: _digest(self.folder / name) for name in ("starts.npy", "lengths.npy")}
        files: JsonObject = {
            name: {"bytes": (self.folder / name).stat().st_size, "xxh3_128": digest}
            for name, digest in digests.items()
        }
        meta = {**self._spec, "examples": len(lengths), **about, "files": files}
        Folder(self.folder).write_sealed(META, meta)
        (self.folder / PROGRESS).unlink(missing_ok=True)

    def close(self) -> None:
        """Close the files, all of them; what was not kept is lost. Raises the `OSError` of one that cannot be."""
        with contextlib.ExitStack() as files:
            for file in self._files:
                files.callback(file.close)

    def _start(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        shape, header = (self._n_tokens, self._width), io.BytesIO()
        about = {"descr": PRECISIONS[self._precision][1], "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(header, about)
        self._files = [(self.folder / name).open("w+b") for name in self._names]
        self._hashers = [xxhash.xxh3_128(header.getvalue()) for _ in self._names]
        for file in self._files:
            file.write(header.getvalue())

    def _resume(self) -> bool:
        """Go on with a started store; return False where there is none, or it is not what was kept."""
        self._files, self._hashers = [], []
        try:
            progress = Folder(self.folder).read_json(PROGRESS)
            if progress["spec"] != to_json(self._spec):
                return False
            rows, batches = int(progress["rows"]), int(progress["batches"])
            for name, digest in zip(self._names, progress["xxh3_128"], strict=True):
                self._reopen(name, rows, digest)
        except (OSError, KeyError, TypeError, ValueError):  # none there, or damaged
            self.close()
            return False
        self.batches, self.rows = batches, rows
        return True

    def _reopen(self, name: str, rows: int, digest: str) -> None:
        """Open a started file to append to it, cut to its first rows. Raises `ValueError` if their checksum differs."""
        file = (self.folder / name).open("r+b")
        self._files.append(file)
        np.lib.format.read_magic(file)
        np.lib.format.read_array_header_1_0(file)
        file.truncate(file.tell() + rows * self._width * PRECISIONS[self._precision][0].itemsize)
        file.seek(0)
        self._hashers.append(cast("xxhash.xxh3_128", hashlib.file_digest(file, xxhash.xxh3_128)))
        if self._hashers[-1].hexdigest() != digest:
            raise ValueError(f"wanted the checksum {digest} of {name}")


def is_complete(folder: Path) -> bool:
    """Return whether a store exists and is finished; `read_meta` and `damage` check its content."""
    return (folder / META).exists()


def read_meta(folder: Path) -> dict[str, Any]:
    """Return the `meta.json` of a store, after a check of its files' sizes.

    Raises:
        BadInput: There is no such store, or a file has the wrong size.
    """
    meta, problem = checked(folder)
    if problem:
        raise BadInput(
            f"wanted a whole store of hidden states in {folder}, {problem}; run the study again to compute it again. "
            "On a cluster, name a --cache-dir that all machines share"
        )
    return meta


def damage(folder: Path, key: JsonObject) -> str | None:
    """Return what is wrong with a finished store; None if its key, sizes and checksums are right. Reads all."""
    meta, problem = checked(folder)
    if problem:
        return problem
    if meta.get("key") != key:
        return "it was computed from something else"
    for name, file in meta["files"].items():
        if _digest(folder / name) != file["xxh3_128"]:
            return f"the checksum of {name} is wrong"
    return None


def checked(folder: Path) -> tuple[dict[str, Any], str | None]:
    """Return the `meta.json` of a store, and what is wrong with it or with a file's size; None if nothing is."""
    if not is_complete(folder):
        return {}, f"it has no {META}"
    try:
        meta = Folder(folder).read_sealed(META)
        for name, file in meta["files"].items():
            if (size := (folder / name).stat().st_size) != file["bytes"]:
                return meta, f"{name} has {size} bytes, not {file['bytes']}"
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return {}, f"it cannot be opened ({type(error).__name__}: {error})"
    return meta, None


def touch(folder: Path) -> None:
    """Note that a store was used now; where the cache cannot be written, nothing is noted."""
    with contextlib.suppress(OSError):
        (folder / USED).touch()


@contextlib.contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Hold the store for this process alone; waits, with a message, while another holds it.

    The lock ends with the process that has it, however that ends. A cache that cannot be written to is
    only read, and needs none.
    """
    with contextlib.ExitStack() as held:
        if os.access(folder.parent, os.W_OK) and not held.enter_context(try_exclusive(folder)):
            logger.warning(f"another process computes the hidden states {folder.name}; waiting for it")
            held.enter_context(_lock(folder))
        yield


@contextlib.contextmanager
def try_exclusive(folder: Path) -> Iterator[bool]:
    """Hold the store for this process alone, without waiting; yields whether it is ours."""
    try:
        acquired = _lock(folder).acquire(timeout=0)
    except Timeout:
        yield False
        return
    with acquired:
        yield True


def reading(folder: Path, *, alone: bool = False) -> Callable[[], None] | None:
    """Hold a finished store against removal; return what lets it go, None where it cannot be held.

    Readers hold it together, as long as their process lives or until they let go (`flock` of its `meta.json`). Where
    the file system has no such lock, nothing is held.

    Args:
        folder: The store's.
        alone: Hold it against readers too, to remove it; None where there are any.
    """
    try:
        # Over NFS, whoever holds a file alone must be able to write it.
        descriptor = os.open(folder / META, (os.O_RDWR if alone else os.O_RDONLY) | os.O_NONBLOCK)
    except OSError:
        return lambda: None
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            os.close(descriptor)
            return None
    return functools.partial(os.close, descriptor)


def _lock(folder: Path) -> FileLock:
    return FileLock(folder.parent / f".{folder.name}.lock")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, xxhash.xxh3_128).hexdigest()
