"""Column files, as CoNLL's tasks have them: a word with its tags on a line, an empty line after each sentence."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from adalayers.errors import BadInput
from adalayers.tasks.files import DataFile

DOCUMENT, BORDER = "document", "-DOCSTART-"
MANY_WORDS = 30
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
    sentences: list[list[tuple[int, list[str]]]] = [[]]
    documents = [0]
    for number, line in enumerate(lines, 1):
        fields = line[: -1 if closed else None].split("\t") if tabs else _BLANKS.split(line.strip(" \t"))
        if line.strip() and fields[0].strip() != BORDER:
            sentences[-1].append((number, fields))
            continue
        documents.append(documents[-1] + (fields[0].strip() == BORDER))
        sentences.append([])
    kept = [(sentence, document) for sentence, document in zip(sentences, documents, strict=True) if sentence]
    rows = [row for sentence, _ in kept for row in sentence]
    widths = Counter(len(fields) for _, fields in [row for row in rows if row[1][0][:1] != "#"] or rows)
    width = widths.most_common(1)[0][0] if rows else 0
    commented = len(kept) > 1 and all(f"{sentence[0][1][0]} ".startswith("# ") for sentence, _ in kept)
    kept = [(_without_comments(sentence, width, commented), document) for sentence, document in kept]
    kept = [(sentence, document) for sentence, document in kept if sentence]
    if not kept:
        raise BadInput(f"wanted sentences in {file.name}, which has none; fill it")
    _require_columns(file, [sentence for sentence, _ in kept], width)
    by_column: dict[str, list[list[str]] | list[str]] = {
        str(i): [[fields[i] for _, fields in sentence] for sentence, _ in kept] for i in range(width)
    }
    counted = width > 2 and all(
        fields[0] == str(i) for sentence, _ in kept for i, (_, fields) in enumerate(sentence, 1)
    )
    if documents[-1]:
        by_column[DOCUMENT] = [f"{file.name} {document}" for _, document in kept]
    begins = np.array([sentence[0][0] for sentence, _ in kept])
    return by_column, begins, ("1" if counted else "0", str(width - 1))


def _without_comments(
    sentence: list[tuple[int, list[str]]], width: int, commented: bool
) -> list[tuple[int, list[str]]]:
    """Return the lines after comments: one where all sentences have one, and those of another number of columns."""
    begin = int(commented and len(sentence) > 1)
    while begin < len(sentence) and sentence[begin][1][0][:1] == "#" and len(sentence[begin][1]) != width:
        begin += 1
    return sentence[begin:]


def _require_columns(
    file: DataFile, sentences: Sequence[Sequence[tuple[int, list[str]]]], width: int
) -> None:
    """Raise `BadInput` where lines are not all a word and as many columns."""
    rows = [row for sentence in sentences for row in sentence]
    first = next(number for number, fields in rows if len(fields) == width)
    advice = (
        "a column file has a word with its tags on a line, as many columns on all, and an empty line after each "
        "sentence; a table with a header line is named .tsv or .csv"
    )
    if width < 2:
        raise BadInput(f"wanted a word and a tag in line {first} of {file.name}, got one column; {advice}")
    for number, fields in rows:
        if len(fields) != width:
            raise BadInput(
                f"wanted {width} columns in line {number} of {file.name}, as in line {first}, got {len(fields)}; "
                f"{advice}"
            )
    if len(rows) > MANY_WORDS and len(sentences) == 1:
        raise BadInput(
            f"wanted an empty line after each sentence of {file.name}, got {len(rows):,} lines without one; {advice}"
        )
    if all(" " in sentence[0][1][0].strip() for sentence in sentences):
        raise BadInput(f"wanted a word on each line of {file.name}, got texts; {advice}")
