"""What the user can fix: bad input, a place that cannot be written, and near names for mistyped ones."""

from __future__ import annotations

import difflib
import errno
import math
import operator
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from adalayers.escaping import listed

FULL = (errno.ENOSPC, errno.EDQUOT)
"""What a disk says that has no room left, or none for this user."""


class BadInput(ValueError):
    """Input that the user can fix: what was wanted, what came, what to do.

    The first line of the message suffices. The command line prints the message without a traceback and
    ends with exit code 2, before any trial starts.
    """


class CannotWrite(BadInput):
    """A file that could not be written: the disk is full, or its place is not ours to write to."""


class Unreachable(CannotWrite, OSError):
    """A store at a URI that refuses a call, or does not answer it in time."""


def require_readable(path: str) -> None:
    """Raise `BadInput` for a path that this process's locale does not read as the libraries do, as UTF-8."""
    locale = sys.getfilesystemencoding()
    if path.isascii() or (locale == "utf-8" and not re.search("[\ud800-\udfff]", path)):
        return
    shown = path.encode("ascii", "backslashreplace").decode()[:200]
    raise BadInput(
        f"wanted a path that is UTF-8, got {shown} in a locale that reads paths as {locale}; set PYTHONUTF8=1, or "
        "name another"
    )


def local_path(text: str | os.PathLike[str], what: str) -> Path:
    """Return an absolute path, `~` filled in.

    Args:
        text: The path as it was typed.
        what: What it is for, as the error says it.

    Raises:
        BadInput: What no path can be.
    """
    try:
        path = Path(text).expanduser().resolve()
        path.exists()
    # No such user, a loop of links, a NUL, a name too long.
    except (RuntimeError, OSError, ValueError) as error:
        raise BadInput(
            f"wanted a path as {what}, got {str(text)[:200]!r} ({str(error)[:200]}); name another"
        ) from error
    require_readable(str(path))
    return path


def require_within(name: str, value: float, bounds: Mapping[str, Any]) -> None:
    """Raise `BadInput` for a value outside `least` and `most` (included), `above` and `below` (excluded, finite)."""
    for kind, (holds, wanted, advice) in _BOUNDS.items():
        if kind in bounds and not holds(value, bounds[kind]):
            bound = wanted.format(bounds[kind])
            raise BadInput(f"wanted {name} {bound}, got {value:,}; {advice} {name}")


_BOUNDS: dict[str, tuple[Callable[[float, float], bool], str, str]] = {
    "least": (operator.ge, "of at least {:,}", "raise"),
    "most": (operator.le, "of at most {:,}", "lower"),
    "above": (lambda value, bound: bound < value < math.inf, "above {:,} and finite", "change"),
    "below": (operator.lt, "below {:,}", "lower"),
}
"""Kind of bound -> whether a value holds it, how that is said, and what to do with one that does not."""


def unknown(what: str, came: str, options: Iterable[str], *, hint: str = "") -> BadInput:
    """Return a `BadInput` for a name that is not among `options`, with the nearest names first.

    Args:
        what:    What kind of name was wanted: "hyperparameter", "dataset".
        came:    The name.
        options: All valid names.
        hint:    What else is accepted, for a line of its own.
    """
    names = sorted(options)
    near = difflib.get_close_matches(str(came), names, n=3, cutoff=0.6)
    advice = f"did you mean {' or '.join(map(repr, near))}?" if near else f"known: {listed(names, 50)}"
    return BadInput(f"unknown {what} {came!r}; {advice}" + (f"\n{hint}" if hint else ""))
