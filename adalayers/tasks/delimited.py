"""CSV and TSV files as they were written: every field is text, and no word stands for a missing value."""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from adalayers.errors import BadInput
from adalayers.tasks.files import DataFile

SEPARATORS = {"csv": ",", "tsv": "\t"}
_OTHERS = (",", "\t", ";", "|")
_SPOKEN = {",": "a comma", "\t": "a tab"}
NUMBER = r"\s*-?(([0-9]+)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?\s*"
_NUMBER = re.compile(NUMBER)
_COLUMN_FILE = "; if each line is a word with its tags, and an empty line ends each sentence, call it .conll"


@dataclass(frozen=True)
class Rows:
    """The rows of a file, the header first.

    Attributes:
        fields: By row.
        lines: int64 [rows], on which line each begins.
        fault: What is wrong with the first row that is no row, "" where all are.
    """

    fields: list[list[str]]
    lines: np.ndarray
    fault: str = ""


@dataclass(frozen=True)
class Delimited:
    """A file of separated fields, of which it must be decided whether quotes enclose fields or are text."""

    file: DataFile
    text: str

    @cached_property
    def separator(self) -> str:
        """That of the format, or where the first line has none of it, the commonest other one there."""
        header, own = self.text.lstrip("\n").partition("\n")[0], SEPARATORS[self.file.form]
        return own if own in header else max((own, *_OTHERS), key=header.count)

    @cached_property
    def plain(self) -> Rows:
        """The rows where quotes are text."""
        lines = [(i, line) for i, line in enumerate(self.text.split("\n"), 1)]
        return self._checked([(i, line.split(self.separator)) for i, line in lines if line])

    @cached_property
    def enclosed(self) -> Rows:
        """The rows where quotes enclose fields, which may then hold separators, line breaks and doubled quotes."""
        csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
        reader = csv.reader(io.StringIO(self.text, newline=""), delimiter=self.separator, strict=True)
        rows: list[tuple[int, list[str]]] = []
        ended = 0
        try:
            for fields in reader:
                rows.append((ended + 1, fields))
                ended = reader.line_num
        except csv.Error as error:
            return Rows(
                [],
                np.zeros(0),
                f"wanted a quote that opens a field to close it in {self.file.name}, got other quotes in the row that "
                f'begins in line {ended + 1} ({error}); double those within a field ("")',
            )
        return self._checked([(line, fields) for line, fields in rows if fields])

    @cached_property
    def certain(self) -> bool:
        """Whether quotes can only enclose fields: all that open close, and one holds what would else need none."""
        rows = self.enclosed
        if '"' not in self.text or rows.fault:
            return False
        # A quote that is text may be closed by a later one, and swallow rows that are whole by themselves.
        if len(rows.fields) < len(self.plain.fields) and not self.plain.fault:
            return False
        held = (field for fields in rows.fields for field in fields)
        return all(f'"{name}"' in self.text for name in rows.fields[0]) or any(
            self.separator in field
            or "\n" in field
            or ('"' in field and '"{}"'.format(field.replace('"', '""')) in self.text)
            for field in held
        )

    def read(self, others_are_certain: bool) -> tuple[Rows, tuple[str, ...]]:
        """Return the rows, and notes on how they were read.

        In a CSV file quotes enclose fields unless that does not work out and quotes as text do; in a TSV file the other
        way round.

        Raises:
            BadInput: If neither works out.
        """
        notes = [f"separated by {self.separator!r}"] if self.separator != SEPARATORS[self.file.form] else []
        if '"' not in self.text:
            rows = self.plain
        elif self.separator == "\t":
            enclosing = self.certain or (others_are_certain and not self.enclosed.fault)
            rows = (
                self.enclosed if enclosing or (self.plain.fault and not self.enclosed.fault) else self.plain
            )
        else:
            swallowed = len(self.enclosed.fields) < len(self.plain.fields)
            as_text = not self.plain.fault and (self.enclosed.fault or swallowed)
            rows = self.plain if as_text else self.enclosed
        if '"' in self.text and (self.separator == "\t" or rows is self.plain):
            notes.append("quotes are text" if rows is self.plain else "quotes enclose fields")
        if rows.fault:
            raise BadInput(rows.fault)
        if broken := sum("\n" in field for fields in rows.fields for field in fields):
            notes.append(f"fields that hold line breaks: {broken:,}")
        return rows, tuple(notes)

    def _checked(self, rows: Sequence[tuple[int, list[str]]]) -> Rows:
        """Return rows that all have as many fields as the header; a line of blanks is none."""
        if not rows:
            return Rows(
                [], np.zeros(0), f"wanted a header line and rows in {self.file.name}, which is empty; fill it"
            )
        width = len(rows[0][1])
        kept = [
            (line, fields) for line, fields in rows if len(fields) == width or any(map(str.strip, fields))
        ]
        odd = next(((line, fields) for line, fields in kept if len(fields) != width), None)
        fault = ""
        if odd is not None:
            separator = _SPOKEN.get(self.separator, repr(self.separator))
            fault = (
                f"wanted {width} fields in line {odd[0]} of {self.file.name}, as in its first line, got {len(odd[1])}; "
                f'correct it, or put a field that holds {separator} into quotes ("...", quotes within it doubled, no '
                "blank outside them)"
            )
        return Rows([fields for _, fields in kept], np.array([line for line, _ in kept]), fault)


def columns(file: DataFile, rows: Rows) -> dict[str, list[str | None]]:
    """Return columns by the names of the header; an empty field is a missing value.

    Raises:
        BadInput: If a name stands there twice, or the first line is no header.
    """
    names = [name.strip() for name in rows.fields[0]]
    by_column: list[list[str | None]] = [
        [field or None for field in column] for column in zip(*rows.fields[1:], strict=True)
    ] or [[] for _ in names]
    repeated = [
        i for i, fields in enumerate(rows.fields) if i and fields == rows.fields[0] and len(fields) > 1
    ]
    if repeated:
        raise BadInput(
            f"wanted one header line in {file.name}, line {rows.lines[repeated[0]]} is the same as the first; remove it"
        )
    numbered = [name for name in names if _NUMBER.fullmatch(name)]
    counted = (
        numbered in ([str(i + first) for i in range(len(numbered))] for first in (0, 1)) and len(numbered) > 1
    )
    for name, values in zip(names, by_column, strict=True):
        given = [value for value in values if value is not None]
        number = name in numbered and all(map(_NUMBER.fullmatch, given))
        label = 2 * len({*given}) <= len(given) and name in {value.strip() for value in given}
        if given and not counted and (number or label):
            raise BadInput(
                f"wanted a header line in {file.name}, its first line begins a column with {name!r}, as others do; "
                f"put a line with the names of the {len(names)} columns above it, or where it is one rename that column"
                + _COLUMN_FILE
                * bool((np.diff(rows.lines) > 1).any())
            )
    named = {}
    for i, (name, values) in enumerate(zip(names, by_column, strict=True), 1):
        if not name and not any(values):
            continue
        if name in named:
            raise BadInput(
                f"wanted each column once in {file.name}, got {name!r} twice in its header; rename one"
            )
        named[name or f"column {i}"] = values
    return named
