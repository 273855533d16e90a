"""The frame of the long forms: a folder to work in, kept where something is wrong, and an exit code."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path


class Wrong(Exception):
    """Something that must not happen did."""


def parser_of(name: str, doc: str | None) -> argparse.ArgumentParser:
    """Return the parser of `python -m tests.<name>` with --folder; doc: the module's own."""
    parser = argparse.ArgumentParser(prog=f"python -m tests.{name}", description=(doc or "").splitlines()[0])
    parser.add_argument(
        "--folder", type=Path, help="where it works, a short path; kept (default: a temporary folder)"
    )
    return parser


def in_folder(folder: Path | None, check: Callable[[Path], object]) -> int:
    """Run a check in a folder and return the exit code; one that was made for it goes unless something is wrong."""
    # Short: Ray's sockets lie below it.
    root = folder.resolve() if folder else Path(tempfile.mkdtemp(prefix="l-", dir="/tmp"))
    root.mkdir(parents=True, exist_ok=True)
    try:
        check(root)
    except (Wrong, subprocess.TimeoutExpired) as wrong:
        print(f"wrong: {wrong}\n{root} is left as it is", file=sys.stderr)
        return 1
    if not folder:
        shutil.rmtree(root, ignore_errors=True)
    return 0
