"""Text of data and files as it is shown, on a page of Markdown or at a terminal: never as markup or control codes.

Labels, texts, names and whatever else a file holds pass through one of these functions on their way to a reader.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import quote

CONTROL_CHARACTERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""What moves a cursor, colours or turns around what follows; and half characters, which no file can hold."""


def plain(text: object) -> str:
    """Return text for a terminal or a figure: "?" in place of control characters, line ends and tabs as they are."""
    return CONTROL_CHARACTERS.sub("?", str(text))


def code(text: object, most: int = 300) -> str:
    """Return text as code, safe in a table, cut at `most` characters; nothing for nothing."""
    clean = _line(text, most).replace("`", "'").replace("|", "\\|")
    return f"`{clean}`" if clean else ""


def visible(name: str) -> str:
    """Return a name, in quotes where blanks around it, or that it is empty, would not be seen."""
    return name if name and name == name.strip() else repr(name)


def listed(names: Iterable[object], most: int = 8) -> str:
    """Return names as a sentence has them, of many the first `most`."""
    every = list(map(str, names))
    return ", ".join(every[:most]) + (f" and {len(every) - most:,} more" if len(every) > most else "")


def escape(text: object, most: int = 300) -> str:
    """Return text as one line that Markdown leaves as it is, cut at `most` characters."""
    return _escaped(_line(text, most))


def prose(text: object, most: int = 2000) -> str:
    """Return text as `escape` does, but for names between backticks, which are code."""
    pieces = _line(text, most).split("`")
    if len(pieces) % 2 == 0:  # a backtick without its other half
        return escape(text, most)
    return "".join(code(piece) if position % 2 else _escaped(piece) for position, piece in enumerate(pieces))


def link(text: object, target: str) -> str:
    """Return a link of Markdown to a file or an address."""
    return f"[{escape(text)}](<{quote(target, safe='/:')}>)"


def fenced(text: object, language: str = "") -> str:
    """Return text as a block of code, line by line."""
    return f"```{language}\n{plain(text).replace('```', '~~~')}\n```"


def _line(text: object, most: int) -> str:
    clean = plain(" ".join(str(text).split()))
    return clean if len(clean) <= most else clean[: most - 1] + "…"


def _escaped(clean: str) -> str:
    clean = clean.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|#~$])", r"\\\1", clean)
