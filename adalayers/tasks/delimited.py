"""CSV and TSV files as they were written: every field is text, and no word stands for a missing value."""

from __future__ import annotations

import csv
import io
import re
import sys
from dataclasses import dataclass

from adalayers.errors import BadInput
from adalayers.tasks.files import DataFile

SEPARATORS = {"csv": ",", "tsv": "\t"}
_OTHERS = (",", "\t", ";", "|")
NUMBER = re.compile(r"\s*-?((0|[1-9][0-9]{0,17})(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?\s*")
"""A number as files hold them. "01", "+1", and more digits than 64 bits hold, are text."""

Row = tuple[int, list[str]]
"""The line on which a row begins, and its fields."""


@dataclass(frozen=True)
class Rows:
    """The rows of a file, the header first; `fault`: what is wrong with the first row that is none."""

    rows: list[Row]
    fault: BadInput | None = None

    def __len__(self) -> int:
        return len(self.rows)


def read(file: DataFile, text: str) -> tuple[list[Row], tuple[str, ...]]:
    """Return the rows of a file, the header first, and notes on how they were read.

    The separator is that of the format, or where the first line has none of it, the commonest other one there. In a CSV
    file quotes enclose fields unless that does not work out and quotes as text do. In a TSV file they are text unless
    that does not work out, or they can only enclose: one holds what else would need none, or all of the header have
    them.

    Raises:
        BadInput: If neither works out.
    """
    header, own = text.lstrip("\n").partition("\n")[0], SEPARATORS[file.form]
    separator = own if own in header else max((own, *_OTHERS), key=header.count)
    notes = [] if separator == own else [f"separated by {separator!r}"]
    numbered = [(i, line) for i, line in enumerate(text.split("\n"), 1) if line]
    rows = _checked(file, separator, [(i, line.split(separator)) for i, line in numbered])
    if '"' in text:
        plain, enclosed = rows, _enclosed(file, separator, text)
        # A quote that is text may be closed by a later one, and swallow rows that are whole by themselves.
        works = not enclosed.fault and (plain.fault is not None or len(enclosed) >= len(plain))
        if separator == "\t":
            enclosing = works and (plain.fault is not None or _must_enclose(enclosed.rows, text))
        else:
            enclosing = works or plain.fault is not None
        rows = enclosed if enclosing else plain
        if separator == "\t" or not enclosing:
            notes.append("quotes enclose fields" if enclosing else "quotes are text")
    if rows.fault:
        raise rows.fault
    if broken := sum("\n" in field for _, fields in rows.rows for field in fields):
        notes.append(f"fields that hold line breaks: {broken:,}")
    return rows.rows, tuple(notes)


def _enclosed(file: DataFile, separator: str, text: str) -> Rows:
    """Return the rows where quotes enclose fields, which may hold separators, line breaks and doubled quotes."""
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    rows: list[Row] = []
    ended = 0
    try:
        for fields in reader:
            rows.append((ended + 1, fields))
            ended = reader.line_num
    except csv.Error as error:
        fault = BadInput(
            f"wanted a quote that opens a field to close it in {file.name}, got other quotes in the row that begins in "
            f'line {ended + 1} ({error}); double those within a field ("")'
        )
        return Rows([], fault)
    return _checked(file, separator, [row for row in rows if row[1]])


def _must_enclose(rows: list[Row], text: str) -> bool:
    held = (field for _, fields in rows for field in fields)
    return all(f'"{name}"' in text for name in rows[0][1]) or any(
        "\t" in field or "\n" in field or ('"' in field and '"{}"'.format(field.replace('"', '""')) in text)
        for field in held
    )


def _checked(file: DataFile, separator: str, rows: list[Row]) -> Rows:
    """Return rows that all have as many fields as the header; a line of blanks is none."""
    if not rows:
        return Rows([], BadInput(f"wanted a header line and rows in {file.name}, which is empty; fill it"))
    width = len(rows[0][1])
    kept = [row for row in rows if len(row[1]) == width or any(map(str.strip, row[1]))]
    for line, fields in kept:
        if len(fields) != width:
            fault = BadInput(
                f"wanted {width} fields in line {line} of {file.name}, as in its first line, got {len(fields)}; "
                f'correct it, or put a field that holds {separator!r} into quotes ("...", quotes within it doubled, '
                "no blank outside them)"
            )
            return Rows(kept, fault)
    return Rows(kept)


def columns(file: DataFile, rows: list[Row]) -> dict[str, list[str | None]]:
    """Return columns by the names of the header; an empty field is a missing value.

    Raises:
        BadInput: If a name stands there twice, or the first line is no header.
    """
    (_, header), *others = rows
    names = [name.strip() for name in header]
    for line, fields in others:
        if fields == header and len(header) > 1:
            raise BadInput(
                f"wanted one header line in {file.name}, line {line} is the same as the first; remove it"
            )
    numbers = [name for name in names if NUMBER.fullmatch(name)]
    counted = len(numbers) > 1 and numbers in [
        [str(i + first) for i in range(len(numbers))] for first in (0, 1)
    ]
    named: dict[str, list[str | None]] = {}
    for i, name in enumerate(names):
        values = [fields[i] or None for _, fields in others]
        given = [value for value in values if value is not None]
        number = name in numbers and all(map(NUMBER.fullmatch, given))
        label = 2 * len({*given}) <= len(given) and name in {value.strip() for value in given}
        if given and not counted and (number or label):
            raise BadInput(
                f"wanted a header line in {file.name}, its first line begins a column with {name!r}, as others do; put "
                f"a line with the names of the {len(names)} columns above it, or where it is one rename that column; a "
                "file of a word with its tags on each line, and an empty line after each sentence, is called .conll"
            )
        if name in named:
            raise BadInput(
                f"wanted each column once in {file.name}, got {name!r} twice in its header; rename one"
            )
        if name or given:
            named[name or f"column {i + 1}"] = values
    return named
