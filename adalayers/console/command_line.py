"""What all command lines share: how their flags are read, and how they end."""

from __future__ import annotations

import argparse
import io
import logging
import os
import sys
from collections.abc import Callable
from typing import NoReturn

from adalayers import environ
from adalayers.console.interrupts import INTERRUPTED
from adalayers.console.progress import log_to_stderr
from adalayers.errors import BadInput

logger = logging.getLogger(__name__)

DONE, MOST_FAILED, BAD_INPUT, BROKEN_PIPE = 0, 1, 2, 141
"""Exit codes; the last one as a shell has it of SIGPIPE."""


class Parser(argparse.ArgumentParser):
    """A parser to which a mistyped flag is bad input like any other, without the usage in front of it."""

    def error(self, message: str) -> NoReturn:
        raise BadInput(f"{message}; see --help")


def run_command(command: Callable[[], int]) -> int:
    """Run a command and return its exit code: what it returns, or 2 for bad input, which is said on stderr.

    What stdout cannot show of a text (`é` in an ASCII terminal) is escaped.
    """
    log_to_stderr()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        try:
            with environ.prepared():
                code = command()
        except SystemExit as ended:  # --help
            code = ended.code if isinstance(ended.code, int) else DONE
        sys.stdout.flush()
    except BadInput as error:
        logger.error(f"error: {error}")
        return BAD_INPUT
    except KeyboardInterrupt:
        logger.error("interrupted")
        return INTERRUPTED
    except BrokenPipeError:  # stdout's reader has left (`... | head`)
        # What is still to be written goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    return code
