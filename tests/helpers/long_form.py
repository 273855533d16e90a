"""Long forms: tests that `make test` leaves out, and the frame of those that are commands of their own."""

import argparse
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Container, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from adalayers.backbones.sources import MINILM_PACKAGE

LONG = pytest.mark.skipif(
    os.environ.get("ADALAYERS_LONG") != "1", reason="the long form: ADALAYERS_LONG=1 make test"
)
"""Mark of tests whose next of kin run always."""
MINILM = pytest.mark.skipif(find_spec(MINILM_PACKAGE) is None, reason="NO REAL WEIGHTS: run `make setup`")
"""Mark of tests of the real MiniLM."""


def long_but(short: Container[Any], names: Iterable[Any]) -> list[Any]:
    """Return parameters of a test: all those not in `short` belong to its long form."""
    return [name if name in short else pytest.param(name, marks=LONG) for name in names]


class Wrong(Exception):
    """Something that must not happen did."""


def free_port() -> int:
    """Return a port of this machine that nothing listens at."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def parser_of(name: str, doc: str | None) -> argparse.ArgumentParser:
    """Return the parser of `python -m tests.<name>` with --folder; doc: the module's own."""
    parser = argparse.ArgumentParser(prog=f"python -m tests.{name}", description=(doc or "").splitlines()[0])
    told = "where it works, a short path; kept (default: a temporary folder)"
    parser.add_argument("--folder", type=Path, help=told)
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
