"""A folder on disk or at a URI, its files written whole."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pandas as pd
from pyarrow import fs

from adalayers.plain import plain


class Folder:
    """A folder on disk or at a URI, with atomic writes of whole files.

    Paths are relative to the folder, with forward slashes. A relative root is resolved at once, so that a
    later change of the working directory (Ray changes it) does not move the folder.
    """

    def __init__(self, root: str | Path):
        text = str(root)
        if "://" in text:
            self._fs, self._root = fs.FileSystem.from_uri(text)
            self.uri = text.rstrip("/")
        else:
            self._fs, self._root = fs.LocalFileSystem(), str(Path(text).expanduser().resolve())
            self.uri = self._root
        self.is_local = isinstance(self._fs, fs.LocalFileSystem)

    def __repr__(self) -> str:
        return f"Folder({self.uri!r})"

    def child(self, name: str) -> Folder:
        """Return the folder `name` below this one; it need not exist."""
        return Folder(f"{self.uri}/{name}")

    def path(self, name: str = "") -> Path:
        """Return the local path of `name`. Raises `ValueError` for a folder that is not on this disk."""
        if not self.is_local:
            raise ValueError(f"wanted a local folder, got {self.uri}; copy it to this machine first")
        return Path(self._root, name)

    def exists(self, name: str = "") -> bool:
        return bool(self._fs.get_file_info(self._at(name)).type != fs.FileType.NotFound)

    def names(self, name: str = "") -> list[str]:
        """Return the sorted names of files and folders directly below `name`; empty where there is none."""
        selector = fs.FileSelector(self._at(name), allow_not_found=True)
        return sorted(info.base_name for info in self._fs.get_file_info(selector))

    def read_bytes(self, name: str) -> bytes:
        with self._fs.open_input_stream(self._at(name)) as stream:
            return bytes(stream.read())

    def write_bytes(self, name: str, data: bytes) -> None:
        """Write a whole file so that a reader sees the old or the new one, never a part."""
        target = self._at(name)
        self._fs.create_dir(target.rsplit("/", 1)[0], recursive=True)
        # Object stores show a file only once it is whole; a disk needs the rename.
        partial = f"{target}.partial" if self.is_local else target
        with self._fs.open_output_stream(partial) as stream:
            stream.write(data)
        if self.is_local:
            self._fs.move(partial, target)

    def read_json(self, name: str) -> Any:
        return json.loads(self.read_bytes(name))

    def write_json(self, name: str, value: Any) -> None:
        self.write_bytes(name, (json.dumps(plain(value), indent=1) + "\n").encode())

    def read_parquet(self, name: str) -> pd.DataFrame:
        return pd.read_parquet(io.BytesIO(self.read_bytes(name)))

    def write_parquet(self, name: str, frame: pd.DataFrame) -> None:
        buffer = io.BytesIO()
        frame.to_parquet(buffer, index=False, compression="zstd")
        self.write_bytes(name, buffer.getvalue())

    def delete(self, name: str) -> None:
        """Delete the file or folder `name`; nothing happens where there is none."""
        kind = self._fs.get_file_info(self._at(name)).type
        if kind == fs.FileType.Directory:
            self._fs.delete_dir(self._at(name))
        elif kind == fs.FileType.File:
            self._fs.delete_file(self._at(name))

    def move(self, name: str, to: Folder) -> None:
        """Move `name` to be the folder or file `to`, on the same file system."""
        self._fs.move(self._at(name), to._root)

    def _at(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root
