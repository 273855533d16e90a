"""adalayers cache: what the store of hidden states holds, and what of it is removed."""

from __future__ import annotations

import fnmatch
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from adalayers.console.progress import duration, show, size
from adalayers.environ import default_cache
from adalayers.errors import BadInput, CannotWrite, local_path, unknown
from adalayers.features.store import META, PROGRESS, USED, checked, reading, try_exclusive


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
        BadInput: If a limit is below 0, or no store has such a name.
    """
    root = local_path(cache_dir, "--cache-dir") if cache_dir else default_cache()
    if root.exists() and not root.is_dir():
        raise BadInput(f"wanted a folder of stores, {root} is none; name another with --cache-dir")
    if keep_gb is not None and not keep_gb >= 0:
        raise BadInput(f"wanted --keep-gb of at least 0, got {keep_gb:g}; raise it")
    found = {folder: _bytes(folder) for folder in stores(root)}
    if not names and keep_gb is None:
        for folder in found:
            show(_described(folder, found[folder]))
        show(f"{len(found)} stores, {size(sum(found.values()))}, in {root}")
        return
    there = [folder.name for folder in found]
    for name in names:
        if not fnmatch.filter(there, name):
            raise unknown("store", name, there)
    chosen = [folder for folder in found if any(fnmatch.fnmatchcase(folder.name, name) for name in names)]
    left = [folder for folder in found if folder not in chosen]
    while keep_gb is not None and sum(found[folder] for folder in left) > keep_gb * 1e9:
        chosen.append(left.pop())
    freed = 0
    for folder in chosen:
        if not dry_run and not _remove(folder):
            show(f"left {folder.name}: another process computes or reads it")
            continue
        freed += 0 if dry_run else found[folder]
        show(f"{'would remove' if dry_run else 'removed'} {folder.name}, {size(found[folder])}")
    show(f"{size(freed)} freed")


def stores(root: Path) -> list[Path]:
    """Return the stores below `root`, finished or not, last used first; other folders are left alone."""
    found = {path.parent for path in root.glob("*/*_[0-9][0-9].npy")}
    return sorted(found, key=lambda folder: (-_used(folder), folder.name))


def _used(folder: Path) -> float:
    """Return when a store was last used, in seconds since the epoch."""
    marks = [folder / name for name in (USED, META, PROGRESS) if (folder / name).exists()] or [folder]
    return max(mark.stat().st_mtime for mark in marks)


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir() if path.is_file())


def _remove(folder: Path) -> bool:
    """Remove a store; return False, leaving it, where another process computes or reads it.

    Raises:
        CannotWrite: The cache is not this user's to change.
    """
    try:
        with try_exclusive(folder) as ours:
            if not ours or (let_go := reading(folder, alone=True)) is None:
                return False
            try:
                shutil.rmtree(folder)  # of a link it makes an error: what that points to is not ours
            finally:
                let_go()
            return True
    except OSError as error:
        raise CannotWrite(
            f"wanted to remove {folder}, which failed ({error}); ask whose cache it is"
        ) from error


def _described(folder: Path, n_bytes: int) -> str:
    (about, damage), ago = checked(folder), duration(max(0.0, time.time() - _used(folder)))
    if not (folder / META).exists():
        what = "not finished: the next study that needs it goes on with it"
    elif damage:
        what = f"damaged ({damage}): the next study that needs it computes it again"
    else:
        pooling = about.get("key", {}).get("pooling")
        kept = f"one vector of each ({pooling})" if pooling else f"{about['tokens']} tokens"
        what = (
            f"{about['dataset']} {about['split']}, {about['examples']} sequences, {kept}, {about['stored_as']}; "
            f"from {about['path']}: {about['splits']}"
        )
    return f"{folder.name}  {size(n_bytes)}, used {ago} ago  {what}"
