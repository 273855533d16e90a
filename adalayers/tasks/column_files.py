"""Column files, as CoNLL's tasks have them: a word with its tags on a line, an empty line after each sentence."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from adalayers.errors import BadInput
from adalayers.tasks.files import DataFile, Piece

DOCUMENT, BORDER = "document", "-DOCSTART-"
_BLANKS = re.compile(r"[ \t]+")
_NO_WORD = re.compile(r"\d+[-.]\d+")
"""What CoNLL-U numbers a line with that repeats several words as they are written, or stands for one that is not."""


class Line(NamedTuple):
    """A word with its tags: the number of the line, that of its document, and the fields."""

    number: int
    document: int
    fields: list[str]


def read(file: DataFile) -> Piece:
    """Read a column file.

    Its columns are called by number, "0" the first, with the list of each sentence; "document" is the file and number
    of each sentence's document, where the file names documents. Words are the first that does not count them, tags the
    last.

    Raises:
        BadInput: If lines have different numbers of columns, or it is no column file.
    """
    lines = file.text().split("\n")
    written = [line for line in lines if line.strip()]
    tabs = 2 * sum("\t" in line for line in written) > len(written)
    closed = tabs and all(line.endswith("\t") for line in written)
    document = 0
    sentences: list[list[Line]] = [[]]
    for number, line in enumerate(lines, 1):
        fields = line[: -1 if closed else None].split("\t") if tabs else _BLANKS.split(line.strip(" \t"))
        if line.strip() and fields[0].strip() != BORDER:
            sentences[-1].append(Line(number, document, fields))
        else:
            document += fields[0].strip() == BORDER
            sentences.append([])
    sentences = _without_comments([rows for rows in sentences if rows])
    if not sentences:
        raise BadInput(f"wanted sentences in {file.name}, which has none; fill it")
    width = _width(sentences)
    advice = (
        "a column file has a word with its tags on a line, as many columns on all, and an empty line after each "
        "sentence; a table with a header line is named .tsv or .csv"
    )
    for row in itertools.chain.from_iterable(sentences):
        if len(row.fields) != max(width, 2):
            raise BadInput(
                f"wanted {max(width, 2)} columns in line {row.number} of {file.name}, got {len(row.fields)}; {advice}"
            )
    blanks = [" " in row.fields[0].strip() for row in itertools.chain.from_iterable(sentences)]
    if 2 * sum(blanks) > len(blanks):
        raise BadInput(f"wanted a word on each line of {file.name}, got texts; {advice}")
    words = [[row for row in rows if not _NO_WORD.fullmatch(row.fields[0])] for rows in sentences]
    counted = any(
        all([row.fields[0] for row in rows] == [*map(str, range(first, first + len(rows)))] for rows in words)
        for first in (0, 1)
    )
    if counted:
        sentences = [rows for rows in words if rows]
    by_column: dict[str, Any] = {
        str(i): [[row.fields[i] for row in rows] for rows in sentences] for i in range(width)
    }
    if document:
        by_column[DOCUMENT] = [f"{file.name} {rows[0].document}" for rows in sentences]
    universal = file.form == "conllu" and width == 10  # its fourth column is the part of speech
    told = ("1" if counted and width > 2 else "0", "3" if universal else str(width - 1))
    return Piece(file, by_column, [rows[0].number for rows in sentences], told=told)


def _width(sentences: Sequence[Sequence[Line]]) -> int:
    """Return the commonest number of columns, of lines that may be comments only where all may."""
    rows = [row.fields for rows in sentences for row in rows]
    widths = Counter(map(len, [fields for fields in rows if fields[0][:1] != "#"] or rows))
    return widths.most_common(1)[0][0] if rows else 0


def _without_comments(sentences: Sequence[list[Line]]) -> list[list[Line]]:
    """Return sentences without comments: a line where all have one, and those of another number of columns."""
    width = _width(sentences)
    commented = len(sentences) > 1 and all(f"{rows[0].fields[0]} ".startswith("# ") for rows in sentences)
    for rows in sentences:
        if commented and len(rows) > 1:
            del rows[0]
        while rows and rows[0].fields[0][:1] == "#" and len(rows[0].fields) != width:
            del rows[0]
    return [rows for rows in sentences if rows]
