"""Column files, as CoNLL's tasks have them: a word with its tags on a line, an empty line after each sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from adalayers.errors import BadInput
from adalayers.tasks.files import DataFile

DOCUMENT, BORDER = "document", "-DOCSTART-"
MANY_WORDS = 30
_BLANKS = re.compile(r"[ \t]+")


def columns(file: DataFile, text: str) -> tuple[dict[str, list[list[str]] | list[int]], np.ndarray]:
    """Read a column file.

    Args:
        file: The file.
        text: What it holds.

    Returns:
        By the column's number, "0" the words, the lists of a sentence each, and under "document" the number of each
        sentence's document, where the file names documents; and the line on which each sentence begins.

    Raises:
        BadInput: If lines have different numbers of columns, or it is no column file.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    written = [line for line in lines if line.strip()]
    tabs = 2 * sum("\t" in line for line in written) > len(written)
    sentences: list[list[tuple[int, list[str]]]] = [[]]
    documents = [0]
    for number, line in enumerate(lines, 1):
        fields = line.split("\t") if tabs else _BLANKS.split(line.strip(" \t"))
        if line.strip() and fields[0].strip() != BORDER:
            sentences[-1].append((number, fields))
            continue
        documents.append(documents[-1] + (fields[0].strip() == BORDER))
        sentences.append([])
    kept = [(sentence, document) for sentence, document in zip(sentences, documents, strict=True) if sentence]
    if not kept:
        raise BadInput(f"wanted sentences in {file.name}, which has none; fill it")
    begins = [sentence[0][1][0] for sentence, _ in kept]
    comments = len(kept) > 1 and all(word.startswith("#") for word in begins)
    width = len(kept[0][0][-1][1])
    for i, (sentence, document) in enumerate(kept):
        if (
            sentence[0][1][0].startswith("#")
            and len(sentence) > 1
            and (comments or len(sentence[0][1]) != width)
        ):
            kept[i] = (sentence[1:], document)
    _require_columns(file, [sentence for sentence, _ in kept], width)
    by_column: dict[str, list[list[str]] | list[int]] = {
        str(i): [[fields[i] for _, fields in sentence] for sentence, _ in kept] for i in range(width)
    }
    if documents[-1]:
        by_column[DOCUMENT] = [document for _, document in kept]
    return by_column, np.array([sentence[0][0] for sentence, _ in kept])


def _require_columns(
    file: DataFile, sentences: Sequence[Sequence[tuple[int, list[str]]]], width: int
) -> None:
    """Raise `BadInput` where lines are not all a word and as many columns."""
    first = sentences[0][-1][0]
    advice = (
        "a column file has a word with its tags on a line, as many columns on all, and an empty line after each "
        "sentence; a table with a header line is named .tsv or .csv"
    )
    for sentence in sentences:
        for number, fields in sentence:
            if width < 2:
                raise BadInput(
                    f"wanted a word and a tag in line {first} of {file.name}, got one column; {advice}"
                )
            if len(fields) != width:
                raise BadInput(
                    f"wanted {width} columns in line {number} of {file.name}, as in line {first}, got {len(fields)}; "
                    f"{advice}"
                )
    longest = max(sentences, key=len)
    if len(longest) > MANY_WORDS and len(sentences) == 1:
        raise BadInput(
            f"wanted an empty line after each sentence of {file.name}, got {len(longest):,} lines without one; {advice}"
        )
    if all(" " in sentence[0][1][0].strip() for sentence in sentences):
        raise BadInput(f"wanted a word on each line of {file.name}, got texts; {advice}")
