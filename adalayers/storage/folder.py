"""A folder on disk or at a URI, its files written whole, and nothing written or deleted outside it."""

from __future__ import annotations

import contextlib
import copy
import errno
import functools
import io
import json
import math
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import xxhash
from pyarrow import fs

from adalayers.errors import FULL, BadInput, CannotWrite, Unreachable, require_readable
from adalayers.storage.patience import Answer, within
from adalayers.storage.redaction import reason, redacted
from adalayers.storage.to_json import to_json

SEAL = b"adalayers-xxh3-128:"
"""Stands before a checksum in a file whose format has none for all of it, or whose readers do not look."""
CALL_SECONDS, SLOW_SECONDS = 15.0, 60.0
"""How long a store at a URI may take to answer, and to pass on a piece of a file, or delete and move."""
_PIECE_BYTES = 8 << 20


def _integer(digits: str) -> int:
    if not math.isfinite(float(digits)):
        raise ValueError(f"an integer of {len(digits)} digits, which no float can hold")
    return int(digits)


def numbered(name: str) -> list[tuple[str, int]]:
    """Return what names sort by where numbers in them count as such: "part-2" before "part-10"."""
    return [(text, int(digits or 0)) for text, digits in re.findall(r"(\D*)(\d*)", name)]


class Folder:
    """A folder on disk or at a URI, with atomic writes of whole files.

    Paths are relative to the folder, with forward slashes. A relative root is resolved at once, so that a
    later change of the working directory (Ray changes it) does not move the folder. A folder may come from
    elsewhere: no name leads out of it, and nothing is written or deleted through a link in it.

    Attributes:
        uri: where it is, as it may be shown: without credentials and without the query.
        address: where it is, as `Folder` opens it again.

    Raises:
        BadInput: the root is neither a path nor a URI that can be opened.
    """

    def __init__(self, root: str | Path):
        text = str(root)
        base, mark, query = text.partition("?") if "://" in text else (text, "", "")
        self._base, self._query, self.is_local = base.rstrip("/"), mark + query, "://" not in text
        try:
            if self.is_local:
                self._fs, self._root = fs.LocalFileSystem(), str(Path(text).expanduser().resolve())
                self._base = self._root
            else:
                self._fs, self._root = self._ask(fs.FileSystem.from_uri, self.address)
                if not self._root:
                    raise ValueError("it names no bucket")
        except (ValueError, OSError, RuntimeError, NotImplementedError) as error:
            # No such user, a loop of links, a scheme that nothing here opens, half an IPv6 address.
            raise BadInput(
                f"wanted a folder or a URI that can be opened, got {redacted(text)[:200]!r} ({reason(error, text)}); "
                "name another"
            ) from None
        self.is_local = isinstance(self._fs, fs.LocalFileSystem)
        if self.is_local:
            require_readable(self._root)
        self._trusted = self._root

    @property
    def uri(self) -> str:
        return redacted(self._base) if "://" in self._base else self._base

    @property
    def address(self) -> str:
        return f"{self._base}{self._query}"

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self._base.rsplit("/", 1)[-1]

    def parent(self) -> Folder:
        """Return the folder above this one."""
        above = self._base.rpartition("/")[0]
        return Folder(f"{above}{self._query}" if above else "/")

    def child(self, name: str) -> Folder:
        """Return the folder `name` below this one; it need not exist. Nothing is written through a link on the way."""
        below = copy.copy(self)
        below._root, below._base = self._at(name), f"{self._base}/{name}"
        return below

    def path(self, name: str = "") -> Path:
        """Return the path of `name` in a local folder."""
        return Path(self._at(name))

    def exists(self, name: str = "") -> bool:
        return bool(self._ask(self._fs.get_file_info, self._at(name)).type != fs.FileType.NotFound)

    def names(self, name: str = "") -> list[str]:
        """Return the sorted names of files and folders directly below `name`; empty where there is no such folder."""
        selector = fs.FileSelector(self._at(name), allow_not_found=True)
        with contextlib.suppress(NotADirectoryError):
            return sorted(info.base_name for info in self._ask(self._fs.get_file_info, selector))
        return []

    def read_bytes(self, name: str) -> bytes:
        path = self._at(name)
        if self.is_local and os.path.exists(path) and not os.path.isfile(path):  # a pipe would be waited for
            raise OSError(errno.EINVAL, "it is no file", path)
        stream = self._ask(self._fs.open_input_stream, path)
        read = functools.partial(self._ask, stream.read, _PIECE_BYTES, slow=True)
        data = b"".join(iter(read, b""))
        stream.close()  # not of a store that did not answer: it would be waited for
        return data

    def write_bytes(self, name: str, data: bytes) -> None:
        """Write a whole file so that a reader sees the old or the new one, never a part.

        Raises `CannotWrite`, the old file being as it was, where there is no room, no permission, or a link on
        the way.
        """
        target = self._at(name)
        self._refuse_links(target)
        try:
            if self.is_local:
                _replace(target, data)
            else:  # object stores show a file only once it is whole
                self._ask(self._fs.create_dir, target.rsplit("/", 1)[0])
                stream = self._ask(self._fs.open_output_stream, target)
                for start in range(0, len(data), _PIECE_BYTES):
                    self._ask(stream.write, data[start : start + _PIECE_BYTES], slow=True)
                self._ask(stream.close, slow=True)
        except Unreachable:
            raise
        except OSError as error:
            advice = "make room" if error.errno in FULL else "make it writable, or name another place"
            raise CannotWrite(
                f"wanted to write {redacted(self.uri)}/{name}, which failed: {error.strerror or error}; {advice}, then "
                "run the same command again: what was there before is as it was"
            ) from error

    def read_json(self, name: str) -> Any:
        """Raises `ValueError` where it is no JSON, or nothing that a study writes."""
        try:
            return json.loads(self.read_bytes(name), parse_int=_integer)
        except RecursionError:
            raise ValueError("it is nested too deep") from None

    def read_object(self, name: str) -> dict[str, Any]:
        """Return an object of JSON; nothing without a file, and of a broken one."""
        with contextlib.suppress(OSError, ValueError, TypeError):
            return dict(self.read_json(name))
        return {}

    def write_json(self, name: str, value: Any) -> None:
        self.write_bytes(name, (json.dumps(to_json(value), indent=1) + "\n").encode())

    def read_sealed(self, name: str) -> dict[str, Any]:
        """Return what `write_sealed` has written. Raises `ValueError` where it is not what was written."""
        document = self.read_json(name)
        if not isinstance(document, dict) or document.pop("checksum", None) != _checksum(document):
            raise ValueError("its checksum is wrong")
        return dict(document)

    def write_sealed(self, name: str, document: Mapping[str, Any]) -> None:
        """Write an object of JSON with a checksum: nobody but the study reads or changes it."""
        content = to_json(dict(document))
        self.write_json(name, {**content, "checksum": _checksum(content)})

    def read_parquet(self, name: str) -> pd.DataFrame:
        """Raises `OSError` where the file is not what its checksum says; files of others may have none."""
        data = self.read_bytes(name)
        footer = _footer(data)
        pages, seal, checksum = data[:footer].rpartition(SEAL)
        if seal and checksum != xxhash.xxh3_128_digest(pages + data[footer:]):
            raise OSError("its checksum is wrong")
        return pd.read_parquet(io.BytesIO(data))

    def write_parquet(self, name: str, frame: pd.DataFrame) -> None:
        """Write rows, with a checksum of the whole between pages and footer, where no reader of parquet looks.

        Parquet's own are of pages alone, and a column's name is not in them.
        """
        buffer = io.BytesIO()
        frame.to_parquet(buffer, index=False, compression="zstd")
        data = buffer.getvalue()
        footer = _footer(data)
        self.write_bytes(name, data[:footer] + SEAL + xxhash.xxh3_128_digest(data) + data[footer:])

    def delete(self, name: str) -> None:
        """Delete the file or folder `name`; nothing happens where there is none. Of a link, the link alone goes."""
        path = self._at(name)
        self._refuse_links(path)
        if self.is_local:
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            elif os.path.lexists(path):
                os.unlink(path)
            return
        kind = self._ask(self._fs.get_file_info, path).type
        if kind == fs.FileType.Directory:
            self._ask(self._fs.delete_dir, path, slow=True)
        elif kind == fs.FileType.File:
            self._ask(self._fs.delete_file, path)

    def move(self, name: str, to: Folder) -> None:
        """Move `name` to be the folder or file `to`, on the same file system."""
        path = self._at(name)
        there = self._ask(self._fs.get_file_info, path)
        if self.is_local or there.is_file:
            self._ask(self._fs.move, path, to._root, slow=True)
            return
        inside = fs.FileSelector(path, recursive=True)  # S3 moves no folder
        for each in self._ask(self._fs.get_file_info, inside):
            if each.is_file:
                self._ask(self._fs.move, each.path, to._root + each.path.removeprefix(path), slow=True)
        self.delete(name)

    def _ask(self, call: Callable[..., Answer], *given: Any, slow: bool = False) -> Answer:
        """Call the file system: in time, where it is not this machine's.

        pyarrow tries for up to 20 minutes, and hears no signal meanwhile.

        Raises:
            Unreachable: No answer in time, or a refusal; that something is not there is passed on as it is.
        """
        if self.is_local:
            return call(*given)
        try:
            return within(SLOW_SECONDS if slow else CALL_SECONDS, call, *given)
        except (FileNotFoundError, NotADirectoryError, ValueError):
            raise
        except OSError as error:
            raise Unreachable(
                f"wanted to reach {self.uri}, which failed ({reason(error, self.address)}); check its address, your "
                "permission and the network, then run the same command again"
            ) from error

    def check(self) -> None:
        """Raise `CannotWrite` where the folder itself lies behind a link below the root that the user named."""
        self._refuse_links(f"{self._root}/_")

    def _at(self, name: str) -> str:
        """Return where `name` lies. Raises `ValueError` for a name that leads out of the folder."""
        if not name:
            return self._root
        if any(part in ("", ".", "..") for part in name.split("/")):
            raise ValueError(f"wanted the name of something in {self.uri}, got {name!r}")
        return f"{self._root}/{name}"

    def _refuse_links(self, target: str) -> None:
        """Raise `CannotWrite` where a folder between the root that the user named and `target` is a link."""
        if not self.is_local:
            return
        here = self._trusted
        for part in target.removeprefix(self._trusted).strip("/").split("/")[:-1]:
            here = f"{here}/{part}"
            if os.path.islink(here):
                raise CannotWrite(
                    f"wanted to write in {here}, it is a link to {os.path.realpath(here)}; put a folder in its place, "
                    "or name the folder that it points to"
                )


def _checksum(document: Mapping[str, Any]) -> str:
    return str(xxhash.xxh3_128_hexdigest(json.dumps(document).encode()))


def _footer(data: bytes) -> int:
    """Return where the footer of a parquet file begins: its length is said before the last four bytes."""
    return max(len(data) - 8 - int.from_bytes(data[-8:-4], "little"), 0)


def _replace(target: str, data: bytes) -> None:
    """Write a file beside `target`, under a name that nobody can know, and put it in its place once it is whole."""
    parent, name = os.path.split(target)
    os.makedirs(parent, exist_ok=True)
    partial = f"{parent}/.{name}.{secrets.token_hex(6)}.partial"
    # O_EXCL follows no link, and opens no file that is there.
    number = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(number, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())  # else a power cut may leave the new name with nothing behind it
        os.replace(partial, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        raise


def require_files(folder: Folder | str | Path, names: Iterable[str], *, wanted: str, advice: str) -> Folder:
    """Return the folder, which holds the files `names`. Raises `BadInput` that names the first it lacks."""
    opened = folder if isinstance(folder, Folder) else Folder(folder)
    for name in names:
        if not opened.exists(name):
            raise BadInput(f"wanted {wanted}, found no {name} in {opened.uri}; name {advice}")
    return opened


def damaged(folder: Folder, name: str, why: object, *, lost: str, advice: str) -> BadInput:
    """Return the `BadInput` for a file that cannot be read: which, why, what is lost, and what to do."""
    reason = " ".join(str(why).split())[:200] or type(why).__name__
    return BadInput(f"could not read {name} in {redacted(folder.uri)} ({reason}): {lost}; {advice}")
