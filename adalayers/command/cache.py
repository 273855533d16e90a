"""python -m adalayers cache: what the store of hidden states holds, and what of it is removed."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from adalayers.console.progress import duration
from adalayers.errors import BadInput
from adalayers.features import cache


@dataclass(frozen=True, kw_only=True)
class Removal:
    """What to remove: stores by name or pattern, by days without use, and until so many gigabytes are left.

    dry_run: say what would be removed, and leave it
    """

    names: tuple[str, ...] = ()
    unused_days: float | None = None
    keep_gb: float | None = None
    dry_run: bool = False

    @property
    def any(self) -> bool:
        return bool(self.names) or self.unused_days is not None or self.keep_gb is not None


def list_or_remove(root: Path, removal: Removal) -> None:
    """Print the stores below `root`, or remove those that `removal` names. Raises `BadInput` where none is there."""
    for flag, value in (("unused-days", removal.unused_days), ("keep-gb", removal.keep_gb)):
        if value is not None and not value >= 0:
            raise BadInput(f"wanted --{flag} of at least 0, got {value:g}; raise it")
    found = cache.entries(root)
    if not removal.any:
        for entry in found:
            print(_described(entry))
        print(f"{len(found)} stores, {_size(sum(entry.bytes for entry in found))}, in {root}")
        return
    taken = cache.chosen(
        found,
        names=removal.names,
        unused_days=removal.unused_days,
        keep_bytes=None if removal.keep_gb is None else removal.keep_gb * 1e9,
    )
    if removal.names and not taken:
        raise BadInput(
            f"wanted stores named {' '.join(removal.names)}, {root} holds {_names(found)}; "
            "python -m adalayers cache lists them"
        )
    _remove(taken, dry_run=removal.dry_run)


def _remove(taken: list[cache.Entry], *, dry_run: bool) -> None:
    freed = 0
    for entry in taken:
        if dry_run:
            print(f"would remove {entry.name}, {_size(entry.bytes)}")
        elif cache.remove(entry):
            freed += entry.bytes
            print(f"removed {entry.name}, {_size(entry.bytes)}")
        else:
            print(f"left {entry.name}: another process is computing it")
    print(f"{_size(freed)} freed")


def _described(entry: cache.Entry) -> str:
    about, ago = entry.about, duration(max(0.0, time.time() - entry.used))
    what = (
        f"{about.get('dataset', '?')} {about.get('split', '?')}, {about.get('examples', '?')} sequences, "
        f"{about.get('tokens', '?')} tokens, {about.get('stored_as', '?')}"
        if entry.is_whole
        else "not finished: the next study that needs it goes on with it"
    )
    return f"{entry.name}  {_size(entry.bytes)}, used {ago} ago  {what}"


def _names(found: list[cache.Entry]) -> str:
    return ", ".join(entry.name for entry in found) or "none"


def _size(n: float) -> str:
    return f"{n / 1e9:.2f} GB" if n >= 1e9 else f"{n / 1e6:.1f} MB"
