"""What the feature store's folder holds, and how it is cleared."""

from __future__ import annotations

import fnmatch
import json
import shutil
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adalayers.features.store import META, PROGRESS, USED, try_exclusive

DAY = 86400.0


@dataclass(frozen=True)
class Entry:
    """One store: its folder, size in bytes, and when it was last used (seconds since the epoch).

    about: its `meta.json`; empty for one that is not finished
    """

    folder: Path
    bytes: int
    used: float
    about: dict[str, Any]

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def is_whole(self) -> bool:
        return bool(self.about)


def entries(root: Path) -> list[Entry]:
    """Return the stores below `root`, finished or not, last used first; other folders are left alone."""
    folders = [path for path in root.iterdir() if path.is_dir()] if root.is_dir() else []
    stores = [_entry(folder) for folder in folders if any(folder.glob("*_[0-9][0-9].npy"))]
    return sorted(stores, key=lambda entry: (-entry.used, entry.name))


def chosen(
    stores: Sequence[Entry],
    *,
    names: Iterable[str] = (),
    unused_days: float | None = None,
    keep_bytes: float | None = None,
    now: float | None = None,
) -> list[Entry]:
    """Return the entries that one of the rules takes.

    names:       names, or patterns with * and ?
    unused_days: those not used for so many days
    keep_bytes:  those used longest ago, until what is left is at most so large
    """
    now = time.time() if now is None else now
    taken = [
        entry
        for entry in stores
        if any(fnmatch.fnmatchcase(entry.name, name) for name in names)
        or (unused_days is not None and now - entry.used > unused_days * DAY)
    ]
    if keep_bytes is not None:
        left = [entry for entry in stores if entry not in taken]
        for entry in sorted(left, key=lambda entry: entry.used):
            if sum(other.bytes for other in left) <= keep_bytes:
                break
            left.remove(entry)
            taken.append(entry)
    return [entry for entry in stores if entry in taken]


def remove(entry: Entry) -> bool:
    """Remove a store; return False, leaving it, where another process is computing it."""
    with try_exclusive(entry.folder) as held:
        if held:
            shutil.rmtree(entry.folder)
        return held


def _entry(folder: Path) -> Entry:
    files = [path.stat() for path in folder.iterdir() if path.is_file()]
    marks = [folder / name for name in (USED, META, PROGRESS) if (folder / name).exists()] or [folder]
    try:
        about = json.loads((folder / META).read_text())
    except (OSError, ValueError):
        about = {}
    return Entry(
        folder=folder,
        bytes=sum(file.st_size for file in files),
        used=max(mark.stat().st_mtime for mark in marks),
        about=about,
    )
