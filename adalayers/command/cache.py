"""adalayers cache: what the store of hidden states holds, and what of it is removed."""

from __future__ import annotations

import fnmatch
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adalayers.console.progress import duration, show, size
from adalayers.errors import BadInput, CannotWrite, local_path
from adalayers.features.store import META, PROGRESS, USED, checked, reading, try_exclusive
from adalayers.storage.cache_folder import default_cache


@dataclass(frozen=True)
class CacheEntry:
    """One store.

    Attributes:
        folder: Where it is.
        bytes: Its size.
        used: When it was last used, in seconds since the epoch.
        about: Its `meta.json`; empty for one that is not finished.
        damage: What is wrong with a finished one; None if nothing is.
    """

    folder: Path
    bytes: int
    used: float
    about: dict[str, Any]
    damage: str | None

    @property
    def name(self) -> str:
        return self.folder.name


def list_or_remove(
    cache_dir: str | None = None,
    names: Sequence[str] = (),
    keep_gb: float | None = None,
    dry_run: bool = False,
) -> None:
    """Print the stores in a cache, or remove some of them.

    Args:
        cache_dir: The cache; None: the user's own.
        names: Names of stores to remove, or patterns with * and ?.
        keep_gb: Remove those used longest ago, until so many gigabytes are left.
        dry_run: Say what would be removed, and leave it.

    Raises:
        BadInput: If a limit is below 0, no store has such a name, or the cache is a file.
    """
    root = local_path(cache_dir, "--cache-dir") if cache_dir else default_cache()
    if keep_gb is not None and not keep_gb >= 0:
        raise BadInput(f"wanted --keep-gb of at least 0, got {keep_gb:g}; raise it")
    if root.exists() and not root.is_dir():
        raise BadInput(f"wanted the folder of the feature store, {root} is a file; name another --cache-dir")
    stores = entries(root)
    if not names and keep_gb is None:
        for entry in stores:
            show(_described(entry))
        show(f"{len(stores)} stores, {size(sum(entry.bytes for entry in stores))}, in {root}")
        return
    chosen = [entry for entry in stores if any(fnmatch.fnmatchcase(entry.name, name) for name in names)]
    if names and not chosen:
        known = ", ".join(entry.name for entry in stores) or "none"
        raise BadInput(
            f"wanted stores named {' '.join(names)}, {root} holds {known}; adalayers cache lists them"
        )
    left = [entry for entry in stores if entry not in chosen]
    while keep_gb is not None and sum(entry.bytes for entry in left) > keep_gb * 1e9:
        chosen.append(left.pop())
    freed = 0
    for entry in chosen:
        if not dry_run and not _remove(entry):
            show(f"left {entry.name}: another process computes or reads it")
            continue
        freed += 0 if dry_run else entry.bytes
        show(f"{'would remove' if dry_run else 'removed'} {entry.name}, {size(entry.bytes)}")
    show(f"{size(freed)} freed")


def entries(root: Path) -> list[CacheEntry]:
    """Return the stores below `root`, finished or not, last used first; other folders are left alone."""
    folders = [path for path in root.iterdir() if path.is_dir()] if root.is_dir() else []
    stores = [_entry(folder) for folder in folders if any(folder.glob("*_[0-9][0-9].npy"))]
    return sorted(stores, key=lambda entry: (-entry.used, entry.name))


def _entry(folder: Path) -> CacheEntry:
    marks = [folder / name for name in (USED, META, PROGRESS) if (folder / name).exists()] or [folder]
    about, damage = checked(folder)
    return CacheEntry(
        folder=folder,
        bytes=sum(path.stat().st_size for path in folder.iterdir() if path.is_file()),
        used=max(mark.stat().st_mtime for mark in marks),
        about=about,
        damage=damage,
    )


def _remove(entry: CacheEntry) -> bool:
    """Remove a store; return False, leaving it, where another process computes or reads it.

    Raises:
        CannotWrite: The cache is not this user's to change.
    """
    try:
        with try_exclusive(entry.folder) as ours:
            if not ours or (let_go := reading(entry.folder, alone=True)) is None:
                return False
            try:
                if entry.folder.is_symlink():  # what it points to is not ours
                    entry.folder.unlink()
                else:
                    shutil.rmtree(entry.folder)
            finally:
                let_go()
            return True
    except OSError as error:
        raise CannotWrite(
            f"wanted to remove {entry.folder}, which failed ({error.strerror}); ask whose cache it is"
        ) from error


def _described(entry: CacheEntry) -> str:
    about, ago = entry.about, duration(max(0.0, time.time() - entry.used))
    if not (entry.folder / META).exists():
        what = "not finished: the next study that needs it goes on with it"
    elif entry.damage:
        what = f"damaged ({entry.damage}): the next study that needs it computes it again"
    else:
        pooling = about.get("key", {}).get("pooling")
        kept = f"one vector of each ({pooling})" if pooling else f"{about['tokens']} tokens"
        what = (
            f"{about['dataset']} {about['split']}, {about['examples']} sequences, {kept}, {about['stored_as']}; "
            f"from {about['path']}: {about['splits']}"
        )
    return f"{entry.name}  {size(entry.bytes)}, used {ago} ago  {what}"
