"""One driver at a time on a results folder.

On a disk: a lock next to the folder, which the system lets go with the process that holds it, however that ends. At
a URI: a lease next to it, renewed as long as the process lives. Both are next to the folder and not in it, because
`--fresh` renames it.
"""

from __future__ import annotations

import contextlib
import datetime
import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

from filelock import FileLock, Timeout

from adalayers.errors import BadInput, CannotWrite
from adalayers.storage.folder import Folder
from adalayers.storage.redaction import redacted

logger = logging.getLogger(__name__)

RENEW_SECONDS, STALE_SECONDS = 30.0, 120.0
"""How often a lease is renewed, and after how long without it counts for nothing."""
SETTLE_SECONDS = 2.0
"""Of two drivers that take a lease at once, the one that is still named after so long has it."""


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
    with (_locked if folder.is_local else _leased)(folder.parent(), folder.name, folder.uri, driver):
        for below in ("", "best", "figures"):
            folder.tidy(below)
        yield


@contextlib.contextmanager
def _locked(parent: Folder, name: str, uri: str, driver: Mapping[str, Any]) -> Iterator[None]:
    driver_file, path = f".{name}.driver.json", parent.path(f".{name}.lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink():  # some releases of filelock empty what it points to
            raise CannotWrite(f"wanted a file of our own at {path}, it is a link; remove it")
        lock = FileLock(path)
        lock.acquire(timeout=0)
    except Timeout:
        raise _taken(uri, _read(parent, driver_file)) from None
    except OSError as error:
        raise CannotWrite(
            f"wanted to write results to {uri}, which cannot be done ({error.strerror or error}); "
            "choose another --output"
        ) from error
    try:
        parent.write_json(driver_file, driver)
        yield
    finally:
        with contextlib.suppress(OSError, BadInput):
            parent.delete(driver_file)
        lock.release()


@contextlib.contextmanager
def _leased(parent: Folder, name: str, uri: str, driver: Mapping[str, Any]) -> Iterator[None]:
    lease = Lease(parent, f".{name}.lease.json", uri, driver)
    lease.take()
    stop = threading.Event()
    renewing = threading.Thread(target=lease.renew_until, args=(stop,), name="adalayers-lease", daemon=True)
    renewing.start()
    try:
        yield
    finally:
        stop.set()
        renewing.join()
        lease.give_back()


class Lease:
    """A file that says who works on a folder at a URI, and when it last said so.

    Clocks of the machines must agree to within a minute. An object store has no lock: two drivers that start within
    the same moment are told apart by who is named `SETTLE_SECONDS` later.
    """

    def __init__(self, parent: Folder, name: str, uri: str, driver: Mapping[str, Any]):
        self._parent, self._name, self._uri = parent, name, uri
        self._driver = {**driver, "id": uuid.uuid4().hex}

    def take(self) -> None:
        """Take the lease. Raises `BadInput` where another driver has it."""
        self._refuse_another()
        self._write()
        time.sleep(SETTLE_SECONDS)
        self._refuse_another()

    def renew_until(self, stop: threading.Event, lost: Callable[[], NoReturn] | None = None) -> None:
        """Renew the lease until `stop` is set; where another driver has taken it, call `lost`, or end the process.

        A driver that stood still for longer than a lease lasts must not write another word.
        """
        while not stop.wait(RENEW_SECONDS):
            try:
                lease = self._other()
                if lease is None:
                    self._write()
                    continue
            except (OSError, BadInput):  # the store is out of reach: later, perhaps
                continue
            logger.error(
                f"error: {_taken(self._uri, lease)}; this run stood still for too long and writes nothing more"
            )
            (lost or (lambda: os._exit(2)))()

    def give_back(self) -> None:
        """Let the next driver in at once."""
        with contextlib.suppress(OSError, BadInput):
            if self._other() is None:
                self._parent.delete(self._name)

    def _refuse_another(self) -> None:
        if (lease := self._other()) is not None:
            raise _taken(self._uri, lease)

    def _other(self) -> dict[str, Any] | None:
        """Return what another driver's lease says, None where there is none that counts."""
        lease = _read(self._parent, self._name)
        renewed = lease.get("renewed")
        fresh = isinstance(renewed, int | float) and time.time() - renewed < STALE_SECONDS
        return lease if fresh and lease.get("id") != self._driver["id"] else None

    def _write(self) -> None:
        self._parent.write_json(self._name, {**self._driver, "renewed": time.time()})


def _read(parent: Folder, name: str) -> dict[str, Any]:
    """Return what a driver has said of itself, {} where nothing can be read."""
    try:
        document = parent.read_json(name)
    except (OSError, ValueError):
        return {}
    return dict(document) if isinstance(document, Mapping) else {}


def _taken(uri: str, driver: Mapping[str, Any]) -> BadInput:
    named = {
        key: " ".join(str(driver[key]).split())
        for key in ("pid", "host", "since", "command")
        if key in driver
    }
    who = (
        f"process {named['pid']} on {named['host']}, since {named['since']} ({named['command']})"
        if len(named) == 4
        else "another process"
    )
    return BadInput(
        f"wanted {redacted(uri)} for this run alone, {who} works on it; wait until that one ends or stop it, or take "
        "another folder with --label NAME"
    )
