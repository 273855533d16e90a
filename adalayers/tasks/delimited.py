"""CSV and TSV files as they were written: every field is text, and no word stands for a missing value."""

from __future__ import annotations

import csv
import io
import re
import sys
from typing import Any

from adalayers.errors import BadInput
from adalayers.tasks.files import DataFile, Piece

SEPARATORS = {"csv": ",", "tsv": "\t"}
_OTHERS = (",", "\t", ";", "|")
NUMBER = re.compile(r"\s*-?((0|[1-9][0-9]{0,17})(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?\s*")
"""A number as files hold them. "01", "+1", and more digits than 64 bits hold, are text."""

Row = tuple[int, list[str]]
"""The line on which a row begins, and its fields."""


Checked = tuple[list[Row], BadInput | None]
"""The rows of a file, the header first, and what is wrong with the first one that is none."""


def read(file: DataFile) -> Piece:
    """Read a file, and note how.

    The separator is that of the format, or where the first line has none of it, the commonest other one there. In a CSV
    file quotes enclose fields unless that does not work out and quotes as text do. In a TSV file they are text unless
    that does not work out, or they can only enclose: one holds what else would need none, or all of the header have
    them.

    Raises:
        BadInput: If neither works out, both do for other rows of a CSV file, or the first line is no header of these
            columns.
    """
    text = file.text()
    header, own = text.lstrip("\n").partition("\n")[0], SEPARATORS[file.form]
    separator = own if own in header else max((own, *_OTHERS), key=header.count)
    notes = [] if separator == own else [f"separated by {separator!r}"]
    numbered = [(i, line) for i, line in enumerate(text.split("\n"), 1) if line]
    rows, fault = _checked(file, separator, [(i, line.split(separator)) for i, line in numbered])
    if '"' in text:
        enclosed, fault_of_enclosed = _enclosed(file, separator, text)
        works = fault_of_enclosed is None
        quoted = works and _quoted(enclosed, text)
        # A quote that is text may be closed by a later one, and swallow rows that are whole by themselves.
        swallows = works and fault is None and len(enclosed) < len(rows) and not quoted
        if separator == "\t":
            must = quoted or (works and not swallows and _must_enclose(enclosed, text))
            enclosing = must or (works and fault is not None)
        elif swallows:
            line = next(line for line, fields in enclosed if any("\n" in field for field in fields))
            raise BadInput(
                f"wanted quotes in {file.name} that read one way, in line {line} they enclose a line break or are text"
                "; if they enclose, put all names of the header into quotes, or write it as JSON Lines"
            )
        else:
            enclosing = works or fault is not None
        if enclosing:
            rows, fault = enclosed, fault_of_enclosed
        if separator == "\t" or not enclosing:
            notes.append("quotes enclose fields" if enclosing else "quotes are text")
    if fault:
        raise fault
    if broken := sum("\n" in field for _, fields in rows for field in fields):
        notes.append(f"fields that hold line breaks: {broken:,}")
    return Piece(file, _columns(file, rows), [line for line, _ in rows[1:]], tuple(notes))


def _enclosed(file: DataFile, separator: str, text: str) -> Checked:
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
        return [], BadInput(
            f"wanted a quote that opens a field to close it in {file.name}, got other quotes in the row that begins in "
            f'line {ended + 1} ({error}); double those within a field ("")'
        )
    return _checked(file, separator, [row for row in rows if row[1]])


def _quoted(rows: list[Row], text: str) -> bool:
    """Return whether all names of the header stand in quotes."""
    header = "\n".join(text.split("\n")[: rows[1][0] - 1 if rows[1:] else None])
    return all('"{}"'.format(name.replace('"', '""')) in header for name in rows[0][1])


def _must_enclose(rows: list[Row], text: str) -> bool:
    held = (field for _, fields in rows for field in fields)
    return any(
        "\t" in field or "\n" in field or ('"' in field and '"{}"'.format(field.replace('"', '""')) in text)
        for field in held
    )


def _checked(file: DataFile, separator: str, rows: list[Row]) -> Checked:
    """Return rows that all have as many fields as the header; a line of blanks is none."""
    if not rows:
        return [], BadInput(f"wanted a header line and rows in {file.name}, which is empty; fill it")
    width = len(rows[0][1])
    kept = [row for row in rows if len(row[1]) == width or any(map(str.strip, row[1]))]
    for line, fields in kept:
        if len(fields) != width:
            return kept, BadInput(
                f"wanted {width} fields in line {line} of {file.name}, as in its first line, got {len(fields)}; "
                f'correct it, or put a field that holds {separator!r} into quotes ("...", quotes within it doubled, '
                "no blank outside them)"
            )
    return kept, None


def _columns(file: DataFile, rows: list[Row]) -> dict[str, Any]:
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
    counted = len(names) > 1 and names in [[str(i + n) for i in range(len(names))] for n in (0, 1)]
    named: dict[str, Any] = {}
    for i, name in enumerate(names):
        values = [fields[i] or None for _, fields in others]
        given = [value for value in values if value is not None]
        number = all(map(NUMBER.fullmatch, (name, *given)))
        label = 2 * len({*given}) <= len(given) and name in {value.strip() for value in given}
        if given and not counted and (number or label):
            raise BadInput(
                f"wanted a header line in {file.name}, its first line begins a column with {name!r}, as others do; put "
                f"the names of the {len(names)} columns above it, or where it is one rename that column"
            )
        if name in named:
            raise BadInput(
                f"wanted each column once in {file.name}, got {name!r} twice in its header; rename one"
            )
        if name or given:
            named[name or f"column {i + 1}"] = values
    return named
