"""One driver at a time on a results folder.

A file next to the folder (not in it, because `--fresh` renames it) says who works on it. On a disk a lock beside that
counts, which the system lets go with the process that holds it, however that ends; at a URI the time in the file, which
is renewed as long as the process lives.
"""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from adalayers.errors import BadInput, CannotWrite, Unreachable
from adalayers.storage.folder import Folder
from adalayers.storage.redaction import redacted
from adalayers.storage.to_json import JsonObject

logger = logging.getLogger(__name__)

RENEW_SECONDS, STALE_SECONDS = 30.0, 120.0
"""How often a stamp at a URI is renewed, and after how long it counts for nothing."""
SETTLE_SECONDS = 2.0
"""Of two drivers that begin at once at a URI, which has no lock, the one that is named after so long goes on."""


@contextlib.contextmanager
def one_driver(folder: Folder, command: str) -> Iterator[None]:
    """Lock a results folder for this process alone.

    Args:
        folder: the results folder; it need not exist.
        command: of this process, as another driver's user may see it.

    Raises:
        BadInput: another driver holds the folder; it is named.
        CannotWrite: nothing can be written there.
    """
    folder.check()
    driver = {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "since": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": command,
    }
    holding = _locked if folder.is_local else _stamped
    with holding(folder, folder.parent(), _driver_file(folder), driver):
        yield


def is_driven(folder: Folder) -> bool:
    """Return whether a driver works on a results folder; of one at a URI, whether its driver said so lately."""
    parent = folder.parent()
    if not folder.is_local:
        return _fresh(parent.read_object(_driver_file(folder)))
    try:
        # For reading: it may be another user's.
        with contextlib.suppress(FileNotFoundError), _lock_file(folder).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def own_lock(path: Path, timeout: float) -> FileLock:
    """Return a lock of our own in a folder that others may write to. Raises `CannotWrite` where a link lies there."""
    if path.is_symlink():  # some releases of filelock empty what it points to
        raise CannotWrite(f"wanted a file of our own at {path}, it is a link; remove it")
    return FileLock(path, timeout=timeout)


@contextlib.contextmanager
def _locked(folder: Folder, parent: Folder, name: str, driver: Mapping[str, Any]) -> Iterator[None]:
    path = _lock_file(folder)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = own_lock(path, timeout=0)
        lock.acquire()
    except Timeout:
        raise _taken(folder, parent.read_object(name)) from None
    except OSError as error:
        raise CannotWrite(
            f"wanted to write results to {folder.uri}, which cannot be done ({error.strerror or error}); "
            "choose another --output"
        ) from error
    try:
        parent.write_json(name, driver)
        yield
    finally:
        with contextlib.suppress(OSError, BadInput):
            parent.delete(name)
        lock.release()


@contextlib.contextmanager
def _stamped(folder: Folder, parent: Folder, name: str, driver: Mapping[str, Any]) -> Iterator[None]:
    """Stamp the folder while the block runs. Clocks of the machines must agree to within a minute."""
    driver = {**driver, "id": secrets.token_hex(8)}

    def stamp() -> None:
        driving = parent.read_object(name)
        if _fresh(driving) and driving.get("id") != driver["id"]:
            raise _taken(folder, driving)
        parent.write_json(name, {**driver, "time": time.time()})

    def renew() -> None:
        while not ended.wait(RENEW_SECONDS):
            try:
                stamp()
            except Unreachable:  # later, perhaps
                continue
            except BadInput as error:  # a driver that stood still for too long must not write another word
                logger.error(f"error: {error}; this run stood still for too long and writes nothing more")
                os._exit(2)

    ended = threading.Event()
    stamp()
    time.sleep(SETTLE_SECONDS)
    stamp()
    renewing = threading.Thread(target=renew, name="adalayers-stamp", daemon=True)
    renewing.start()
    try:
        yield
    finally:
        ended.set()
        renewing.join()
        with contextlib.suppress(OSError, BadInput):
            if parent.read_object(name).get("id") == driver["id"]:
                parent.delete(name)


def _lock_file(folder: Folder) -> Path:
    return folder.parent().path(f".{folder.name}.lock")


def _driver_file(folder: Folder) -> str:
    return f".{folder.name}.driver.json"


def _fresh(stamp: JsonObject) -> bool:
    told = stamp.get("time")
    return isinstance(told, int | float) and time.time() - told < STALE_SECONDS


def _taken(folder: Folder, driver: Mapping[str, Any]) -> BadInput:
    names = ("pid", "host", "since", "command")
    pid, host, since, command = (" ".join(str(driver.get(name, "?")).split()) for name in names)
    return BadInput(
        f"wanted {redacted(folder.uri)} for this run alone, process {pid} on {host}, since {since} ({command}) works "
        "on it; wait until that one ends or stop it, or take another folder with --label NAME"
    )
