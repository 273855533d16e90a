"""Column files, as CoNLL's tasks have them: a word with its tags on a line, an empty line after each sentence."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from adalayers.errors import BadInput
from adalayers.tasks.files import DataFile

DOCUMENT, BORDER = "document", "-DOCSTART-"
_BLANKS = re.compile(r"[ \t]+")


def columns(
    file: DataFile, text: str
) -> tuple[dict[str, list[list[str]] | list[str]], np.ndarray, tuple[str, str]]:
    """Read a column file.

    Args:
        file: The file.
        text: What it holds.

    Returns:
        By the column's number, "0" the first, the lists of a sentence each, and under "document" the file and number of
        each sentence's document, where the file names documents; the line on which each sentence begins; and the
        columns of words and of tags: the first that does not count the words, and the last.

    Raises:
        BadInput: If lines have different numbers of columns, or it is no column file.
    """
    lines = text.split("\n")
    written = [line for line in lines if line.strip()]
    tabs = 2 * sum("\t" in line for line in written) > len(written)
    closed = tabs and all(line.endswith("\t") for line in written)
    document = 0
    sentences: list[tuple[int, list[tuple[int, list[str]]]]] = [(document, [])]
    for number, line in enumerate(lines, 1):
        fields = line[: -1 if closed else None].split("\t") if tabs else _BLANKS.split(line.strip(" \t"))
        if line.strip() and fields[0].strip() != BORDER:
            sentences[-1][1].append((number, fields))
        else:
            document += fields[0].strip() == BORDER
            sentences.append((document, []))
    _drop_comments([rows for _, rows in sentences if rows])
    sentences = [(number, rows) for number, rows in sentences if rows]
    if not sentences:
        raise BadInput(f"wanted sentences in {file.name}, which has none; fill it")
    width = _width([fields for _, rows in sentences for _, fields in rows])
    _require_columns(file, [rows for _, rows in sentences], width)
    by_column: dict[str, list[list[str]] | list[str]] = {
        str(i): [[fields[i] for _, fields in rows] for _, rows in sentences] for i in range(width)
    }
    counted = width > 2 and all(
        fields[0] == str(i) for _, rows in sentences for i, (_, fields) in enumerate(rows, 1)
    )
    if document:
        by_column[DOCUMENT] = [f"{file.name} {number}" for number, _ in sentences]
    begins = np.array([rows[0][0] for _, rows in sentences])
    return by_column, begins, ("1" if counted else "0", str(width - 1))


def _width(rows: Sequence[Sequence[str]]) -> int:
    """Return the commonest number of columns, of lines that may be comments only where all may."""
    widths = Counter(map(len, [fields for fields in rows if fields[0][:1] != "#"] or rows))
    return widths.most_common(1)[0][0] if rows else 0


def _drop_comments(sentences: Sequence[list[tuple[int, list[str]]]]) -> None:
    """Drop the lines of comments: one where all sentences have one, and those of another number of columns."""
    width = _width([fields for rows in sentences for _, fields in rows])
    commented = len(sentences) > 1 and all(f"{rows[0][1][0]} ".startswith("# ") for rows in sentences)
    for rows in sentences:
        if commented and len(rows) > 1:
            del rows[0]
        while rows and rows[0][1][0][:1] == "#" and len(rows[0][1]) != width:
            del rows[0]


def _require_columns(
    file: DataFile, sentences: Sequence[Sequence[tuple[int, list[str]]]], width: int
) -> None:
    """Raise `BadInput` where lines are not all a word and as many columns."""
    advice = (
        "a column file has a word with its tags on a line, as many columns on all, and an empty line after each "
        "sentence; a table with a header line is named .tsv or .csv"
    )
    for number, fields in [row for rows in sentences for row in rows]:
        if len(fields) != max(width, 2):
            raise BadInput(
                f"wanted {max(width, 2)} columns in line {number} of {file.name}, got {len(fields)}; {advice}"
            )
    if all(" " in rows[0][1][0].strip() for rows in sentences):
        raise BadInput(f"wanted a word on each line of {file.name}, got texts; {advice}")
