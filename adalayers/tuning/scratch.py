"""Scratch folders of Ray on this machine, and what a driver that was killed has left of them and of its processes.

A driver holds a lock in its scratch folder, which the system lets go when it dies: a folder whose lock can be had is a
dead driver's, whatever process has its number now. The processes of a local Ray bear the folder's name in their
environment, or write their output to a file in it. Nothing else is ever killed or deleted.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
from filelock import FileLock, Timeout

from adalayers.errors import BadInput

logger = logging.getLogger(__name__)


MARK = "ADALAYERS_RAY"
"""The name of the environment variable that Ray's processes get from the driver that starts them."""

_NAME = "adalayers-ray-"
_LOCK = "lock"
_USABLE = re.compile(r"[A-Za-z0-9_./+~-]{1,14}")
"""Folders that Ray takes: it splits others at blanks, reads them as addresses, or wants ASCII; below longer ones its
sockets have names that not every system takes (103 characters on a Mac)."""
_SHORT = Path("/tmp")
"""Where Ray's files go where TMPDIR is another one."""
_REMOVE_SECONDS = 2.0


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """Make a folder for Ray, this user's alone, that goes in the end, once what killed drivers have left is gone.

    Raises:
        BadInput: It cannot be made.
    """
    clear_dead()
    folder = _root() / f"{_NAME}{secrets.token_hex(4)}"
    try:
        folder.mkdir(mode=0o700)
    except OSError as error:
        raise BadInput(
            f"wanted a temporary folder for Ray in {folder.parent}, which cannot be written ({error.strerror}); set "
            "TMPDIR to one whose path is of at most 14 ASCII letters, without blanks"
        ) from error
    with FileLock(folder / _LOCK, timeout=0):
        try:
            yield folder
        finally:
            _remove(folder)


def clear_dead() -> None:
    """End the processes and delete the scratch folders of this user's drivers that are dead."""
    for folder in _root().glob(_NAME + 8 * "[0-9a-f]"):
        with contextlib.suppress(Timeout, OSError):  # its driver lives, or another process clears it
            if folder.is_symlink() or folder.stat().st_uid != os.getuid() or not (folder / _LOCK).exists():
                continue
            with FileLock(folder / _LOCK, timeout=0):
                ended = end_processes(folder)
                _remove(folder)
            logger.warning(f"a killed run had left {ended} processes and {folder}; they are gone now")


def end_processes(folder: Path) -> int:
    """Kill what belongs to the Ray of a scratch folder; return how many processes that were."""
    left = [process for process in psutil.process_iter() if _belongs(process, folder)]
    for process in left:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(left, timeout=_REMOVE_SECONDS)
    return len(left)


def _root() -> Path:
    root = Path(tempfile.gettempdir()).resolve()
    return root if _USABLE.fullmatch(str(root)) else _SHORT


def _belongs(process: psutil.Process, folder: Path) -> bool:
    """Whether a process is of the Ray that had this scratch folder."""
    with contextlib.suppress(psutil.Error, OSError):
        if process.environ().get(MARK) == folder.name:
            return True
    # Workers rename themselves, which on Linux overwrites the environment that others see.
    for number in (1, 2):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{process.pid}/fd/{number}").startswith(f"{folder}/"):
                return True
    return False


def _remove(folder: Path) -> None:
    """Delete a scratch folder; Ray's processes may still write to it for a moment."""
    end = time.monotonic() + _REMOVE_SECONDS
    while folder.exists() and time.monotonic() < end:
        shutil.rmtree(folder, ignore_errors=True)
        time.sleep(0.05)
