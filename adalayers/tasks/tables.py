"""Data files as tables: what stands in the files, with types that all splits share."""

from __future__ import annotations

import bz2
import gzip
import io
import itertools
import json
import lzma
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adalayers.errors import BadInput
from adalayers.escaping import listed
from adalayers.storage import hub
from adalayers.tasks import column_files, delimited
from adalayers.tasks.files import COLUMN_FORMS, FORMS, DataFile, Source

_WHOLE = r"^\s*(-?[1-9][0-9]{0,17}|0)\s*$"
_LONG = r"^\s*-?[0-9]{19,}\s*$"
_NUMBER = r"^\s*-?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?\s*$"
"""Numbers as files hold them. "01", "+1", and more digits than 64 bits hold, are text."""
_PACKINGS: dict[bytes, Callable[[bytes], bytes]] = {
    b"\x1f\x8b": gzip.decompress,
    b"BZh": bz2.decompress,
    b"\xfd7zXZ": lzma.decompress,
}


@dataclass(frozen=True)
class Piece:
    """What one file holds.

    Attributes:
        file: The file.
        columns: By name, values in the order of the rows: texts that have no type yet, values of JSON, or of Arrow.
        rows: How many rows.
        lines: int64 [rows], the line on which each begins; None for a file without lines.
        notes: What a reader may not expect of how it was read.
        told: The columns of words and of tags that the format itself tells, () for none.
        features: Types of columns that have one already.
    """

    file: DataFile
    columns: Mapping[str, Any]
    rows: int
    lines: np.ndarray | None = None
    notes: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    features: Any = None


@dataclass(frozen=True)
class Places:
    """Where the rows of a split stand.

    Attributes:
        files: In their order, the name, how many rows, and the line of each; None for a file without lines.
    """

    files: tuple[tuple[str, int, np.ndarray | None], ...] = ()

    def of(self, row: int) -> str:
        """Return where a row stands: "line 51 of train.jsonl"."""
        first = 0
        for name, rows, lines in self.files:
            if row < first + rows:
                return f"{f'row {row - first}' if lines is None else f'line {lines[row - first]}'} of {name}"
            first += rows
        return f"row {row}"


@dataclass(frozen=True)
class Tables:
    """Splits as tables.

    Attributes:
        splits: By name, a `datasets.Dataset`.
        places: By name, where its rows stand.
        notes: What a reader may not expect of how files were read, a clause each.
        columns: The columns of texts and of labels that the format itself tells, () for none.
    """

    splits: Mapping[str, Any]
    places: Mapping[str, Places]
    notes: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


def read(sources: Mapping[str, Source]) -> Tables:
    """Read the files of splits.

    Args:
        sources: By the split's name, its files.

    Raises:
        BadInput: For a file that is not what its name says, by file and line.
    """
    files = [file for source in sources.values() for file in source.files]
    separated = {file: _guarded(file, _separated) for file in files if file.form in delimited.SEPARATORS}
    certain = any(each.certain for each in separated.values())
    pieces = [
        _guarded(
            file,
            lambda file: _rows(separated[file], certain) if file in separated else _READERS[file.form](file),
        )
        for file in files
    ]
    names = list(dict.fromkeys(itertools.chain.from_iterable(piece.columns for piece in pieces)))
    typed: list[dict[str, Any]] = [dict(piece.columns) for piece in pieces]
    for name in names:
        with_it = [i for i, piece in enumerate(pieces) if name in piece.columns]
        arrays = _typed([pieces[i] for i in with_it], name)
        for i, array in zip(with_it, arrays, strict=True):
            typed[i][name] = array
    splits, places, remaining = {}, {}, iter(zip(pieces, typed, strict=True))
    for split, source in sources.items():
        of_split = list(itertools.islice(remaining, len(source.files)))
        places[split] = Places(tuple((piece.file.name, piece.rows, piece.lines) for piece, _ in of_split))
        splits[split] = _table(of_split)
    told = {piece.told for piece in pieces}
    notes: dict[str, list[str]] = {}
    for piece in pieces:
        for note in piece.notes:
            notes.setdefault(note, []).append(piece.file.name)
    return Tables(
        splits,
        places,
        tuple(f"{listed(names)}: {note}" for note, names in notes.items()),
        told.pop() if len(told) == 1 else (),
    )


def _guarded(file: DataFile, reader: Callable[[DataFile], Any]) -> Any:
    """Return what a reader makes of a file. Whatever it raises is `BadInput` that names the file."""
    try:
        return reader(file)
    except BadInput:
        raise
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise BadInput(
            f"wanted UTF-8 text in {file.name}, got byte {error.object[error.start]:#04x} in line {line}; save it as "
            "UTF-8"
        ) from error
    except Exception as error:  # whatever a user's files make libraries raise
        raise BadInput(
            f"wanted {file.form} in {file.name}, which cannot be read as such ({type(error).__name__}: "
            f"{hub.first_line(error)}); write it anew, or name it by its format ({', '.join(FORMS)})"
        ) from error


def _content(file: DataFile) -> bytes:
    """Return the bytes of a file, unpacked where they are packed."""
    data = file.path.read_bytes()
    return next((unpack(data) for mark, unpack in _PACKINGS.items() if data.startswith(mark)), data)


def _text(file: DataFile) -> str:
    """Return what a file holds, all line ends alike."""
    data = _content(file)
    wide = data[:2] in (b"\xff\xfe", b"\xfe\xff")
    text = data.decode("utf-16" if wide else "utf-8").removeprefix("\ufeff")
    return text.replace("\r\n", "\n") if "\n" in text else text.replace("\r", "\n")


def _separated(file: DataFile) -> delimited.Delimited:
    return delimited.Delimited(file, _text(file))


def _rows(separated: delimited.Delimited, others_are_certain: bool) -> Piece:
    rows, notes = separated.read(others_are_certain)
    columns = delimited.columns(separated.file, rows)
    return Piece(separated.file, columns, len(rows.fields) - 1, rows.lines[1:], notes)


def _column_file(file: DataFile) -> Piece:
    columns, lines, told = column_files.columns(file, _text(file))
    return Piece(file, columns, len(lines), lines, told=told)


def _json_lines(file: DataFile) -> Piece:
    rows, lines = [], []
    for number, line in enumerate(_text(file).split("\n"), 1):
        if line.strip():
            try:
                rows.append(json.loads(line))
            except ValueError as error:
                raise BadInput(
                    f"wanted JSON in line {number} of {file.name}, got {error}; correct it"
                ) from error
            lines.append(number)
    return _records(file, rows, lines)


def _json(file: DataFile) -> Piece:
    try:
        document = json.loads(_text(file))
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            return _json_lines(file)
        raise BadInput(f"wanted JSON in {file.name}, got {error}; correct it") from error
    if not isinstance(document, dict):
        return _records(file, document, None)
    records = [
        rows for rows in document.values() if isinstance(rows, list) and isinstance([*rows, 0][0], dict)
    ]
    if len(records) == 1:
        return _records(file, records[0], None)
    columns = {
        name: [*values.values()] if isinstance(values, dict) else values for name, values in document.items()
    }
    lists = all(isinstance(values, list) for values in columns.values())
    if lists and not records and len({*map(len, columns.values())}) == 1:
        return Piece(file, columns, len(next(iter(columns.values()))))
    raise BadInput(
        f"wanted a list of objects in {file.name}, got one object with {listed(map(repr, document))}; write a file "
        "of JSON lines for each split"
    )


def _records(file: DataFile, rows: Any, lines: Sequence[int] | None) -> Piece:
    for i, row in enumerate(rows if isinstance(rows, list) else [rows]):
        if not isinstance(row, dict):
            where = f"row {i}" if lines is None else f"line {lines[i]}"
            raise BadInput(
                f"wanted an object of columns in {where} of {file.name}, got {type(row).__name__}; write "
                '{"text": ..., "label": ...} for each example'
            )
    names = dict.fromkeys(itertools.chain.from_iterable(rows))
    columns = {name: [row.get(name) for row in rows] for name in names}
    return Piece(file, columns, len(rows), None if lines is None else np.array(lines))


def _parquet(file: DataFile) -> Piece:
    import pyarrow.parquet

    return _arrow_table(file, pyarrow.parquet.read_table(io.BytesIO(_content(file))))


def _arrow(file: DataFile) -> Piece:
    data = _content(file)
    opened = pa.ipc.open_file if data[:6] == b"ARROW1" else pa.ipc.open_stream
    return _arrow_table(file, opened(data).read_all())


def _arrow_table(file: DataFile, table: pa.Table) -> Piece:
    import datasets

    for i, column in enumerate(table.schema):
        if pa.types.is_dictionary(column.type):
            table = table.set_column(i, column.name, table[column.name].cast(column.type.value_type))
    features = datasets.Features.from_arrow_schema(table.schema)
    columns = {name: table[name] for name in table.column_names}
    if len(columns) < table.num_columns:
        raise BadInput(f"wanted each column once in {file.name}, got {table.column_names}; rename one")
    return Piece(file, columns, table.num_rows, features=features)


_READERS: dict[str, Callable[[DataFile], Piece]] = {
    "parquet": _parquet,
    "arrow": _arrow,
    "json": _json,
    **dict.fromkeys(("jsonl", "ndjson"), _json_lines),
    **dict.fromkeys(COLUMN_FORMS, _column_file),
}


def _typed(pieces: Sequence[Piece], name: str) -> list[Any]:
    """Return a column's values by file as Arrow arrays, of one type where that keeps what was written."""
    arrays: list[Any] = [piece.columns[name] for piece in pieces]
    separated = [i for i, piece in enumerate(pieces) if piece.file.form in delimited.SEPARATORS]
    texts = _of_text([pa.array(arrays[i], pa.string()) for i in separated])
    for i, array in zip(separated, texts, strict=True):
        arrays[i] = array
    if any(type(piece.features[name]).__name__ == "ClassLabel" for piece in pieces if piece.features):
        return arrays
    if len({getattr(array, "type", None) for array in arrays}) == 1 and not isinstance(arrays[0], list):
        return arrays
    return _of_json([array if isinstance(array, list) else array.to_pylist() for array in arrays])


def _of_text(arrays: list[Any]) -> list[Any]:
    """Return texts as whole numbers or numbers where every one in all files is, else as they are."""
    texts = pa.chunked_array(arrays, pa.string()).drop_null()

    def share(pattern: str) -> float:
        return pc.mean(pc.match_substring_regex(texts, pattern)).as_py() or 0

    if share(_NUMBER) < 1 or share(_LONG):
        return arrays
    numbers = [pc.utf8_trim_whitespace(array).cast(pa.float64()) for array in arrays]
    whole = (pc.all(pc.equal(array, pc.floor(array))).as_py() is not False for array in numbers)
    if not share(_WHOLE) or not all(whole):
        return numbers
    exact = share(_WHOLE) == 1
    return [
        (pc.utf8_trim_whitespace(array) if exact else number).cast(pa.int64())
        for array, number in zip(arrays, numbers, strict=True)
    ]


def _of_json(columns: Sequence[list[Any]]) -> list[Any]:
    """Return Python values as Arrow arrays of one type."""
    kind, convert = _type_of(itertools.chain.from_iterable(columns))
    return [
        pa.array([None if value is None else convert(value) for value in column], kind) for column in columns
    ]


def _type_of(values: Iterable[Any]) -> tuple[Any, Callable[[Any], Any]]:
    """Return the type of values, and what makes them of it: whole numbers go before others, text before both."""
    values = [value for value in values if value is not None]
    kinds = {type(value) for value in values}
    if kinds == {list}:
        inner, convert = _type_of(itertools.chain.from_iterable(values))
        return pa.list_(inner), lambda value: [None if v is None else convert(v) for v in value]
    if kinds & {list, dict}:  # nothing that a task reads: kept as what it is
        return pa.struct({"json": pa.string()}), lambda value: {"json": json.dumps(value, default=str)}
    if kinds and kinds <= {int, float} and all(isinstance(v, float) or abs(v) < 2**63 for v in values):
        whole = int in kinds and all(float(value).is_integer() for value in values if value == value)
        kind, cast = (pa.int64(), int) if whole else (pa.float64(), float)
        return kind, lambda value: cast(value) if value == value else None
    if len(kinds) == 1 and not kinds & {int, str}:
        return pa.array(values).type, lambda value: value
    if not kinds:
        return pa.null(), lambda value: value
    return pa.string(), lambda value: value if isinstance(value, str) else json.dumps(value, default=str)


def _table(pieces: Sequence[tuple[Piece, Mapping[str, Any]]]) -> Any:
    """Return the files of a split as one `datasets.Dataset`."""
    import datasets

    first = pieces[0][0]
    features: dict[str, Any] = {}
    for piece, arrays in pieces:
        if {*piece.columns} != {*first.columns} and "json" not in piece.file.form:
            raise BadInput(
                f"wanted the columns of {first.file.name} in {piece.file.name}: {', '.join(first.columns)}, got "
                f"{', '.join(piece.columns)}; files of one split have the same"
            )
        own = datasets.Features.from_arrow_schema(
            pa.schema([(name, array.type) for name, array in arrays.items()])
        )
        for name, array in arrays.items():
            feature = own[name]
            if piece.features and array.type == piece.columns[name].type:
                feature = piece.features[name]
            if features.setdefault(name, feature) != feature:
                raise BadInput(
                    f"wanted one type of column {name!r} in all files of a split, got {features[name]} in "
                    f"{first.file.name} and {feature} in {piece.file.name}; cast it"
                )
    table = pa.concat_tables([pa.table(dict(arrays)) for _, arrays in pieces], promote_options="default")
    table = table.select(list(features))
    return datasets.Dataset(table, info=datasets.DatasetInfo(features=datasets.Features(features)))
