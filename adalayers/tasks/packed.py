"""The bytes of a data file, unpacked where it is packed, but never to far more than text packs to."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import math
import zipfile
from pathlib import Path
from typing import Any

from adalayers.console.progress import size
from adalayers.errors import BadInput

UNPACKED_BYTES, UNPACKED_TIMES = 100_000_000, 100
"""Most that an archive or parquet file may unpack to: so many bytes, or times its size. Text packs to about a tenth."""
PACKED = (".gz", ".bz2", ".xz")
"""Endings after that of the format: "train.csv.gz"."""
_OPENERS: dict[str, Any] = {"gzip": gzip.open, "bz2": bz2.open, "xz": lzma.open}


def content(path: Path, member: str | None = None) -> bytes:
    """Return the bytes of a file, or of a member of a zip.

    Raises:
        BadInput: If it unpacks to far more than text does, or is an archive whose size nothing tells.
    """
    from datasets.utils.extract import Extractor

    form = Extractor.infer_extractor_format(path)
    packed, unpacked = path.stat().st_size, 0.0
    limit = max(UNPACKED_BYTES, UNPACKED_TIMES * packed)
    data = b""
    if form is None:
        data = path.read_bytes()
    elif form == "zip" and member is not None:
        with zipfile.ZipFile(path) as archive:
            unpacked = archive.getinfo(member).file_size
            if unpacked <= limit:
                data = archive.read(member)
    elif form in _OPENERS:
        with _OPENERS[form](path) as stream:
            data = stream.read(limit + 1)
        unpacked = len(data)
    else:
        raise _too_much(path, f"is a {form}", "unpack it there, and look")
    if unpacked > limit:
        raise _too_much(path, _times(packed, limit), "unpack it there, and look")
    if data[:4] == b"PAR1" and (unpacked := _parquet_bytes(data, limit)) > limit:
        raise _too_much(path, _times(packed, limit), "look")
    return data


def members(path: Path) -> list[str]:
    """Return the files in a zip; none of what is no zip."""
    if not zipfile.is_zipfile(path):
        return []
    with zipfile.ZipFile(path) as archive:
        return [info.filename for info in archive.infolist() if not info.is_dir()]


def _times(packed: int, limit: float) -> str:
    return f"of {size(packed)} would unpack to more than {size(limit)}"


def _too_much(path: Path, what: str, advice: str) -> BadInput:
    return BadInput(
        f"wanted files of text and labels, {path.name} in the dataset's folder {what}; {advice} at what is in it"
    )


def _parquet_bytes(data: bytes, limit: float) -> float:
    """Return the bytes that a parquet file's columns take once read, or any number beyond `limit`.

    Its footer tells the size of its pages alone: one text of a page's dictionary may stand for a million rows.
    """
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(io.BytesIO(data)) as file:
        groups = [file.metadata.row_group(i) for i in range(file.num_row_groups)]
        columns = [group.column(i) for group in groups for i in range(group.num_columns)]
        pages = sum(column.total_uncompressed_size for column in columns)
        told = max(pages, sum(column.num_values for column in columns))
        if told > limit:
            return told
        read = 0
        # As few rows at a time as stay below the limit even where each has the largest text that there can be.
        for batch in file.iter_batches(batch_size=max(1, int(limit) // max(pages, 1))):
            read += batch.nbytes
            if read > limit:
                return math.inf
        return read
