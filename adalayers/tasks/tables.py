"""Data files as tables: what stands in the files, with types that all splits share."""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adalayers.errors import BadInput
from adalayers.storage import hub
from adalayers.tasks import column_files, delimited, packed
from adalayers.tasks.files import ARCHIVES, COLUMN_FORMS, FORMS, DataFile, Source, listed

_WHOLE = r"^\s*(-?[1-9][0-9]{0,17}|0)\s*$"
_LONG = r"^\s*-?[0-9]{19,}\s*$"
_NUMBER = r"^\s*-?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?\s*$"
"""Numbers as files hold them. "01", "+1", and more digits than 64 bits hold, are text."""


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
                return (
                    f"row {row - first} of {name}"
                    if lines is None
                    else f"line {lines[row - first]} of {name}"
                )
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


def read(sources: Mapping[str, Source], declared: Any = None) -> Tables:
    """Read the files of splits.

    Args:
        sources: By the split's name, its files.
        declared: Features that a description beside the files gives; used where it has their columns.

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
    declared = declared if declared and all({*piece.columns} == {*declared} for piece in pieces) else {}
    names = list(dict.fromkeys(itertools.chain.from_iterable(piece.columns for piece in pieces)))
    typed: list[dict[str, Any]] = [dict(piece.columns) for piece in pieces]
    for name in names:
        with_it = [i for i, piece in enumerate(pieces) if name in piece.columns]
        arrays = _typed([pieces[i] for i in with_it], name, as_text=name in declared)
        for i, array in zip(with_it, arrays, strict=True):
            typed[i][name] = array
    splits, places, remaining = {}, {}, iter(zip(pieces, typed, strict=True))
    for split, source in sources.items():
        of_split = list(itertools.islice(remaining, len(source.files)))
        places[split] = Places(tuple((piece.file.name, piece.rows, piece.lines) for piece, _ in of_split))
        splits[split] = _table(of_split, declared)
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


def _text(file: DataFile) -> str:
    """Return what a file holds, all line ends alike."""
    data = packed.content(file.path, file.member)
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
    return _json_rows(file, _text(file))


def _json_rows(file: DataFile, text: str) -> Piece:
    lines = [(i, line) for i, line in enumerate(text.split("\n"), 1) if line.strip()]
    rows = []
    for number, line in lines:
        try:
            rows.append(json.loads(line))
        except ValueError as error:
            raise BadInput(f"wanted JSON in line {number} of {file.name}, got {error}; correct it") from error
    return _records(file, rows, [number for number, _ in lines])


def _json(file: DataFile) -> Piece:
    text = _text(file)
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        if error.msg != "Extra data":
            raise BadInput(f"wanted JSON in {file.name}, got {error}; correct it") from error
        return _json_rows(file, text)
    if isinstance(document, dict):
        lists = {key: value for key, value in document.items() if isinstance(value, list)}
        records = [
            key for key, value in lists.items() if value and all(isinstance(row, dict) for row in value)
        ]
        by_index = [value for value in document.values() if isinstance(value, dict)]
        if len(records) == 1:
            return _records(file, document[records[0]], None)
        if (
            by_index
            and len(by_index) == len(document)
            and all(value.keys() == by_index[0].keys() for value in by_index)
        ):
            lists = {key: list(value.values()) for key, value in document.items()}
        if not records and len(lists) == len(document) and len({*map(len, lists.values())}) == 1:
            return Piece(file, lists, len(next(iter(lists.values()))))
        raise BadInput(
            f"wanted a list of objects in {file.name}, got one object with {', '.join(map(repr, [*document][:6]))}; "
            "write a file of JSON lines for each split"
        )
    return _records(file, document, None)


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

    return _arrow_table(file, pyarrow.parquet.read_table(io.BytesIO(packed.content(file.path, file.member))))


def _arrow(file: DataFile) -> Piece:
    data = packed.content(file.path, file.member)
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


def _archive(file: DataFile) -> Piece:
    packed.content(file.path)
    raise BadInput(
        f"wanted files of data in {file.name}, got none that is known; unpack it, and look at what is in it"
    )


_READERS: dict[str, Callable[[DataFile], Piece]] = {
    "parquet": _parquet,
    "arrow": _arrow,
    "json": _json,
    **dict.fromkeys(("jsonl", "ndjson"), _json_lines),
    **dict.fromkeys(COLUMN_FORMS, _column_file),
    **dict.fromkeys(ARCHIVES, _archive),
}


def _typed(pieces: Sequence[Piece], name: str, *, as_text: bool) -> list[Any]:
    """Return a column's values by file as Arrow arrays, of one type where that keeps what was written."""
    arrays: list[Any] = [piece.columns[name] for piece in pieces]
    separated = [i for i, piece in enumerate(pieces) if piece.file.form in delimited.SEPARATORS]
    values = [i for i, array in enumerate(arrays) if isinstance(array, list) and i not in separated]
    for chosen, typing in ((separated, _of_text if not as_text else _as_text), (values, _of_json)):
        for i, array in zip(chosen, typing([arrays[i] for i in chosen]), strict=True):
            arrays[i] = array
    if any(type(piece.features[name]).__name__ == "ClassLabel" for piece in pieces if piece.features):
        return arrays
    return _of_one_type(arrays)


def _as_text(columns: Sequence[list[str | None]]) -> list[Any]:
    return [pa.array(column, pa.string()) for column in columns]


def _of_text(columns: Sequence[list[str | None]]) -> list[Any]:
    """Return texts as whole numbers or numbers where every one in all files is, else as they are."""
    arrays = _as_text(columns)
    texts = pa.chunked_array(arrays, pa.string()).drop_null()

    def share(pattern: str) -> float:
        return pc.mean(pc.match_substring_regex(texts, pattern)).as_py() or 0

    if share(_NUMBER) < 1 or share(_LONG):
        return arrays
    numbers = [pc.utf8_trim_whitespace(array).cast(pa.float64()) for array in arrays]
    if not share(_WHOLE) or not all(_are_whole(array) for array in numbers):
        return numbers
    exact = share(_WHOLE) == 1
    return [
        (pc.utf8_trim_whitespace(array) if exact else number).cast(pa.int64())
        for array, number in zip(arrays, numbers, strict=True)
    ]


def _are_whole(numbers: Any) -> bool:
    return pc.all(pc.equal(numbers, pc.floor(numbers))).as_py() is not False


def _of_json(columns: Sequence[list[Any]]) -> list[Any]:
    """Return values of JSON as arrays of one type; scalars of several kinds are text, as they were written."""
    kinds = {type(value) for column in columns for value in column} - {type(None)}
    if kinds == {list}:
        inner = _of_json(
            [list(itertools.chain.from_iterable(value or () for value in column)) for column in columns]
        )
        return [
            pa.ListArray.from_arrays(_offsets(column), pa.array(array) if isinstance(array, list) else array)
            for column, array in zip(columns, inner, strict=True)
        ]
    if kinds & {list, dict}:  # nothing that a task reads: kept as what it is
        written = [
            [None if value is None else {"json": json.dumps(value)} for value in column] for column in columns
        ]
        return [pa.array(column, pa.struct({"json": pa.string()})) for column in written]
    if kinds and kinds <= {int, float}:
        columns = [[None if value != value else value for value in column] for column in columns]
        numbers = [value for column in columns for value in column if value is not None]
        whole = int in kinds and all(float(value).is_integer() for value in numbers)
        try:
            kind, cast = (pa.int64(), int) if whole else (pa.float64(), float)
            return [pa.array([None if v is None else cast(v) for v in column], kind) for column in columns]
        except OverflowError:  # more digits than 64 bits hold
            columns = [[None if value is None else str(value) for value in column] for column in columns]
            kinds = {str}
    if len(kinds) > 1:
        columns = [
            [v if v is None or isinstance(v, str) else json.dumps(v) for v in column] for column in columns
        ]
        kinds = {str}
    kind = pa.string() if str in kinds else pa.bool_() if bool in kinds else pa.null()
    return [pa.array(column, kind) for column in columns]


def _offsets(lists: Sequence[list[Any] | None]) -> Any:
    """Return where lists begin and end among all their values, null for one that is missing."""
    ends = list(itertools.accumulate((len(value or ()) for value in lists), initial=0))
    return pa.array(
        [
            *(end if value is not None else None for end, value in zip(ends[:-1], lists, strict=True)),
            ends[-1],
        ],
        pa.int32(),
    )


def _of_one_type(arrays: Sequence[Any]) -> list[Any]:
    """Return arrays of several types as of one: whole numbers before others, and text for what is in part text."""
    types = {array.type for array in arrays if not pa.types.is_null(array.type)}
    if len({array.type for array in arrays}) < 2:
        return list(arrays)
    floating = [pa.types.is_floating(kind) for kind in types]
    numbers = all(one or pa.types.is_integer(kind) for one, kind in zip(floating, types, strict=True))
    scalar = all(not pa.types.is_nested(kind) for kind in types)
    try:
        if len(types) == 1:
            [kind] = types
        elif numbers:
            arrays = [
                pc.if_else(pc.is_nan(a), None, a) if pa.types.is_floating(a.type) else a for a in arrays
            ]
            fractions = any(
                pc.all(pc.equal(a, pc.floor(a))).as_py() is False
                for a in arrays
                if pa.types.is_floating(a.type)
            )
            kind = pa.float64() if fractions or all(floating) else pa.int64()
        elif scalar:
            kind = pa.string()
        else:
            schemas = [pa.schema([("column", kind)]) for kind in types]
            kind = pa.unify_schemas(schemas, promote_options="permissive").field(0).type
        return [array.cast(kind) for array in arrays]
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):  # lists of one and of the other
        return list(arrays)


def _table(pieces: Sequence[tuple[Piece, Mapping[str, Any]]], declared: Any) -> Any:
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
    if declared:
        try:
            table, features = datasets.table.table_cast(table, declared.arrow_schema), declared
        except (TypeError, ValueError) as error:
            raise BadInput(
                f"wanted {first.file.name} to have the types that its description declares (README.md, or "
                f"dataset_infos.json), got {hub.first_line(error)}; correct the description, or move it away"
            ) from error
    return datasets.Dataset(table, info=datasets.DatasetInfo(features=datasets.Features(features)))
