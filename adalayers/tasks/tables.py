"""Data files as tables: what stands in the files, with types that all splits share."""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from adalayers.errors import BadInput
from adalayers.escaping import listed
from adalayers.storage import hub
from adalayers.tasks import column_files, delimited
from adalayers.tasks.files import COLUMN_FORMS, FORMS, DataFile, Piece, Source


@dataclass(frozen=True)
class Corpus:
    """A dataset as it came.

    Attributes:
        splits: By role, a `datasets.Dataset`.
        places: By role, the files in which its rows stand.
        notes: What a reader may not expect of how files were read, a clause each.
        columns: The columns of texts and of labels that the format itself tells, () for none.
        path: Where it was read: a folder, or an id on the hub.
        titles: By role, what people call its split: the name, or the files.
        unused: Splits, and files of data in the folder, that were not read, each with why.
    """

    splits: Mapping[str, Any]
    places: Mapping[str, Sequence[Piece]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    path: str = ""
    titles: Mapping[str, str] = field(default_factory=dict)
    unused: tuple[str, ...] = ()

    def place(self, role: str, row: int) -> str:
        """Return where a row of a split stands."""
        return place(self.places.get(role, ()), row)


def place(pieces: Sequence[Piece], row: int) -> str:
    """Return where a row of a split that is in these files stands: "line 51 of train.jsonl"."""
    for piece in pieces:
        if row < len(piece):
            where = f"row {row}" if piece.lines is None else f"line {piece.lines[row]}"
            return f"{where} of {piece.file.name}"
        row -= len(piece)
    return f"row {row}"


def read(sources: Mapping[str, Source]) -> Corpus:
    """Read the files of splits.

    Args:
        sources: By role, its files.

    Raises:
        BadInput: For a file that is not what its name says, by file and line.
    """
    by_split = {split: [_read(file) for file in source.files] for split, source in sources.items()}
    pieces = [*itertools.chain.from_iterable(by_split.values())]
    for name in dict.fromkeys(itertools.chain.from_iterable(piece.columns for piece in pieces)):
        of_column = [piece for piece in pieces if name in piece.columns]
        where = listed(piece.file.name for piece in of_column)
        with hub.refusing(f"wanted text or numbers in column {name!r} of {where}, got others", "correct it"):
            name.encode()  # of half a character no table is made
            _share_type(of_column, name)
    told = {piece.told for piece in pieces}
    notes: dict[str, list[str]] = {}
    for piece in pieces:
        for note in piece.notes:
            notes.setdefault(note, []).append(piece.file.name)
    return Corpus(
        {split: _table(of_split) for split, of_split in by_split.items()},
        by_split,
        tuple(f"{listed(names)}: {note}" for note, names in notes.items()),
        told.pop() if len(told) == 1 else (),
        titles={role: str(source) for role, source in sources.items()},
    )


def _read(file: DataFile) -> Piece:
    """Return what a file holds. Whatever its reader raises is `BadInput` that names the file."""
    wanted = f"wanted {file.form} in {file.name}, which cannot be read as such"
    with hub.refusing(wanted, f"write it anew, or name it by its format ({', '.join(FORMS)})"):
        return _READERS[file.form](file)


def _json_lines(file: DataFile) -> Piece:
    rows = []
    for number, line in enumerate(file.text().split("\n"), 1):
        if line.strip():
            try:
                rows.append((number, json.loads(line)))
            except ValueError as error:
                raise BadInput(
                    f"wanted JSON in line {number} of {file.name}, got {error}; correct it"
                ) from error
    return _records(file, [row for _, row in rows], [number for number, _ in rows])


def _json(file: DataFile) -> Piece:
    try:
        document = json.loads(file.text())
    except json.JSONDecodeError as error:
        if error.msg != "Extra data":
            raise
        return _json_lines(file)
    if not isinstance(document, dict):
        return _records(file, document if isinstance(document, list) else [document])
    if all(isinstance(values, dict) for values in document.values()):  # of each column, its values by row
        rows = dict.fromkeys(itertools.chain.from_iterable(document.values()))
        document = {name: [values.get(row) for row in rows] for name, values in document.items()}
    lists = [values for values in document.values() if isinstance(values, list)]
    cells = not any(isinstance(value, dict) for values in lists for value in values)
    if cells and len(lists) == len(document) and len({*map(len, lists)}) == 1:
        return Piece(file, document)
    raise BadInput(
        f"wanted a list of objects in {file.name}, got one object with {listed(map(repr, document))}; write JSON lines"
    )


def _records(file: DataFile, rows: list[Any], lines: Sequence[int] | None = None) -> Piece:
    for i, row in enumerate(rows):
        if not isinstance(row, dict):
            where = f"row {i}" if lines is None else f"line {lines[i]}"
            raise BadInput(
                f"wanted an object of columns in {where} of {file.name}, got {type(row).__name__}; write "
                '{"text": ..., "label": ...} for each example'
            )
    names = dict.fromkeys(itertools.chain.from_iterable(rows))
    return Piece(file, {name: [row.get(name) for row in rows] for name in names}, lines)


def _parquet(file: DataFile) -> Piece:
    import pyarrow.parquet

    return _arrow_table(file, pyarrow.parquet.read_table(io.BytesIO(file.content())))


def _arrow(file: DataFile) -> Piece:
    data = file.content()
    opened = pa.ipc.open_file if data[:6] == b"ARROW1" else pa.ipc.open_stream
    return _arrow_table(file, opened(data).read_all())


def _arrow_table(file: DataFile, table: pa.Table) -> Piece:
    import datasets

    for i, column in enumerate(table.schema):
        if pa.types.is_dictionary(column.type):
            table = table.set_column(i, column.name, table[column.name].cast(column.type.value_type))
    table.validate(full=True)  # text may be no UTF-8
    features = datasets.Features.from_arrow_schema(table.schema)
    return Piece(file, {name: table[name] for name in table.column_names}, features=features)


_READERS: dict[str, Callable[[DataFile], Piece]] = {
    "parquet": _parquet,
    "arrow": _arrow,
    "json": _json,
    **dict.fromkeys(("jsonl", "ndjson"), _json_lines),
    **dict.fromkeys(delimited.SEPARATORS, delimited.read),
    **dict.fromkeys(COLUMN_FORMS, column_files.read),
}


def _share_type(pieces: Sequence[Piece], name: str) -> None:
    """Make a column's values Arrow arrays, of one type in all files where that keeps what was written."""
    texts = [piece for piece in pieces if piece.file.form in delimited.SEPARATORS]
    for piece, values in zip(texts, _numbers([piece.columns[name] for piece in texts]), strict=True):
        piece.columns[name] = values
    columns = [piece.columns[name] for piece in pieces]
    types = {None if isinstance(values, list) else values.type for values in columns}
    if any(type(piece.features[name]).__name__ == "ClassLabel" for piece in pieces if piece.features):
        made = [_of_json([values])[0] if isinstance(values, list) else values for values in columns]
    elif len(types) == 1 and None not in types:
        made = columns
    else:
        made = _of_json([values if isinstance(values, list) else values.to_pylist() for values in columns])
    for piece, values in zip(pieces, made, strict=True):
        piece.columns[name] = values


_NOT_FINITE = ("nan", "inf", "infinity")
"""What stands among numbers in a file of texts where there is none, or an infinite one."""


def _numbers(columns: Sequence[list[str | None]]) -> list[Any]:
    """Return texts as numbers where every one in all columns is one, or none ("nan") or infinite; else as texts."""
    given = [text for column in columns for text in column if text is not None]
    numbers = [delimited.NUMBER.fullmatch(text) for text in given]
    if not any(numbers) or not all(
        found or text.strip().lower().lstrip("+-") in _NOT_FINITE
        for found, text in zip(numbers, given, strict=True)
    ):
        return [pa.array(column, pa.string()) for column in columns]

    def number(text: str) -> int | float:
        return int(text) if text.strip().removeprefix("-").isdecimal() else float(text)

    return [[None if text is None else number(text) for text in column] for column in columns]


def _of_json(columns: Sequence[list[Any]]) -> list[Any]:
    """Return Python values as Arrow arrays of one type."""
    kind, convert = _type_of(itertools.chain.from_iterable(columns))
    return [
        pa.array([None if _missing(value) else convert(value) for value in column], kind)
        for column in columns
    ]


def _missing(value: Any) -> bool:
    """Whether a value of JSON is none, or the NaN that pandas writes for one."""
    return value is None or value != value


def _type_of(values: Iterable[Any]) -> tuple[Any, Callable[[Any], Any]]:
    """Return the type of values, and what makes them of it: whole numbers go before others, text before both."""
    values = [value for value in values if not _missing(value)]
    kinds = {type(value) for value in values}
    if kinds == {list}:
        inner, convert = _type_of(itertools.chain.from_iterable(values))
        return pa.list_(inner), lambda value: [None if _missing(v) else convert(v) for v in value]
    if kinds & {list, dict}:  # nothing that a task reads: kept as what it is
        return pa.struct({"json": pa.string()}), lambda value: {"json": json.dumps(value, default=str)}
    if kinds and kinds <= {int, float} and all(isinstance(v, float) or abs(v) < 2**63 for v in values):
        there = [float(value) for value in values]
        whole = int in kinds and all(value.is_integer() and abs(value) < 2**63 for value in there)
        return (pa.int64(), int) if whole else (pa.float64(), float)
    if len(kinds) < 2 and not kinds & {int, str}:
        return pa.array(values).type, lambda value: value
    return pa.string(), lambda value: value if isinstance(value, str) else json.dumps(value, default=str)


def _table(pieces: Sequence[Piece]) -> Any:
    """Return the files of a split as one `datasets.Dataset`."""
    import datasets

    first, parts = pieces[0], list[Any]()
    for piece in pieces:
        if {*piece.columns} != {*first.columns} and "json" not in piece.file.form:
            raise BadInput(
                f"wanted the columns of {first.file.name} in {piece.file.name}: {', '.join(first.columns)}, got "
                f"{', '.join(piece.columns)}; files of one split have the same"
            )
        table = pa.table(piece.columns)
        features = datasets.Features.from_arrow_schema(table.schema)
        for name, feature in (piece.features or {}).items():
            if piece.features.arrow_schema.field(name).type == table.schema.field(name).type:
                features[name] = feature  # which may name classes
        parts.append(datasets.Dataset(table, info=datasets.DatasetInfo(features=features)))
    names = listed(piece.file.name for piece in pieces)
    with hub.refusing(
        f"wanted one type of each column in all files of a split, not so in {names}", "cast it"
    ):
        return datasets.concatenate_datasets(parts)
