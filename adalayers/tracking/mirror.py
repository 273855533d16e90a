"""The MLflow door: a mirror of a results folder. The folder is the truth, MLflow a copy that can be replayed.

`Mirror` writes while a study runs, on a thread of its own, and never fails the study; `sync` writes a whole
folder later. What is written, and as what, says `mlflow_session`. Importing this module is free.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import pandas as pd

from adalayers.errors import BadInput
from adalayers.results.files import read_document, study_folder
from adalayers.storage.folder import Folder
from adalayers.storage.redaction import reason, redacted
from adalayers.storage.to_json import to_json
from adalayers.tracking.session import RUN_STATUS, SQLITE, Session, is_outage, set_environment
from adalayers.tracking.values import Trial

RETRY_SECONDS = 30.0
"""A server that failed is left alone for so long."""


def default_uri(output: Folder) -> str:
    """Return MLFLOW_TRACKING_URI, else a sqlite file in a local results root, else "none"."""
    if uri := os.environ.get("MLFLOW_TRACKING_URI", "").strip():
        return uri
    return f"sqlite:///{output.path('mlflow.db')}" if output.is_local else "none"


def check_uri(uri: str) -> None:
    """Raise `BadInput` for a tracking URI that is none, or a database of which nothing would stay."""
    try:
        urlsplit(uri)
    except ValueError as error:
        raise BadInput(
            f"wanted an MLflow tracking URI, got {redacted(uri)!r} ({error}); see --tracking-uri"
        ) from None
    if not uri.startswith("sqlite"):
        return
    match = SQLITE.match(uri)
    path = match["path"] if match else ""
    if path in ("", ":memory:"):
        raise BadInput(
            f"wanted a file as MLflow's database, got {redacted(uri)!r}, which is gone with the process; give "
            "--tracking-uri sqlite:///<path of a file>"
        )
    if os.path.isdir(path):
        raise BadInput(f"wanted a file as MLflow's database, {path} is a folder; name a file in it")


def identity(folder: Folder, study: Mapping[str, Any]) -> dict[str, str]:
    """Return the arguments of `Mirror` that name the study in `folder`, as `sync` finds it again.

    study: its study.json, {} where there is none yet. Experiment and run are named by its `study` and `name`,
           else as the folder is. A study is told apart by its `id`, else by these two names; without an `id`,
           one that `--fresh` starts in place of another continues that one's runs.
    """
    parts = ["study", "adalayers", *(part for part in folder.uri.split("/") if part)]
    experiment, run_name = str(study.get("study") or parts[-2]), str(study.get("name") or parts[-1])
    key = str(study.get("id") or f"{experiment}/{run_name}")
    return {"experiment": experiment, "run_name": run_name, "study_key": key}


def sync(folder: Folder | str, uri: str) -> int:
    """Mirror a whole results folder; return the number of trial runs written, without those already there.

    Raises `BadInput` where the folder holds no study, or MLflow cannot be reached or written.
    """
    opened = study_folder(folder, wanted="a study's results folder to mirror")
    if uri == "none":
        raise BadInput("wanted an MLflow tracking URI to mirror to, got 'none'; give one with --tracking-uri")
    check_uri(uri)
    set_environment()
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        session = Session(uri, **identity(opened, read_document(opened)), artifact_root=None)
        return session.mirror(opened)
    # A database's driver may not be installed, hence ImportError.
    except (MlflowException, SQLAlchemyError, OSError, ImportError) as error:
        raise BadInput(
            f"wanted to mirror {redacted(opened.uri)} to MLflow at {redacted(uri)}, "
            f"which failed ({reason(error, uri)})\n"
            "Check that the server runs and that the URI is right; the results folder itself is complete."
        ) from None  # the libraries' own messages may repeat the URI with its password


class Mirror:
    """Mirror of one study folder, written in batches on one background thread; never raises into the study.

    What cannot be written is kept and tried again, at most every `RETRY_SECONDS`, and once more by `finish`.

    Args:
        uri: MLflow's tracking URI; "none" makes an object that does nothing.
        experiment: name of the MLflow experiment, the study's ("alpha_lambda").
        run_name: name of the parent run ("minilm-cola").
        study_key: what identifies the study; the same key continues the same parent run (see `identity`).
        artifact_root: folder for artifacts of a new experiment; None: next to a sqlite file. A server has its own.
    """

    def __init__(
        self, uri: str, *, experiment: str, run_name: str, study_key: str, artifact_root: str | None
    ):
        self._uri = uri
        self._open = lambda: Session(
            uri, experiment=experiment, run_name=run_name, study_key=study_key, artifact_root=artifact_root
        )
        self._study: Mapping[str, Any] = {}
        self._changed = threading.Condition()  # guards all below
        self._queue: deque[_Item] = deque()
        self._refused: list[_Item] = []
        self._thread: threading.Thread | None = None
        self._closing = False
        self._abandoned = False
        self._why = ""

    def start(self, study: dict[str, Any]) -> None:
        """Queue the parent run: find or create it, and write what study.json says was asked, and on what."""
        self._study = study = to_json(study)  # a copy: the caller goes on filling its own
        self._put(_Item("study", lambda session: session.describe(study)))

    def trial(self, row: Mapping[str, Any], history: pd.DataFrame) -> None:
        """Queue the nested run of a trial that ended: its row of trials.csv, its rows of history.parquet.

        A row that is `unfinished` is left until it ends.
        """
        if self._uri == "none" or row.get("status") not in RUN_STATUS:
            return
        try:
            trial = Trial.of(row, history)
        except (KeyError, TypeError, ValueError) as error:
            with self._changed:
                self._why = reason(error, self._uri)
                self._refused.append(_Item("trial", lambda session: None))
            return
        self._put(_Item("trial", lambda session: session.write(trial)))

    def finish(self, folder: Folder, *, timeout: float = 60.0) -> list[str]:
        """Write the results folder's files and what is still queued, end the parent run, end the thread.

        Trials in the folder that no earlier run could mirror are written as well. Returns within `timeout`
        seconds, with sentences about what could not be written; none when all is well. The mirror takes
        nothing more after this call.
        """
        if self._uri == "none":
            return []
        with self._changed:
            self._put(_Item("end", lambda session: session.mirror(folder)))
            self._closing = True
            self._changed.notify()
            thread = self._thread
        if thread is not None:
            thread.join(timeout)
        with self._changed:
            self._abandoned = True
            if thread is not None and thread.is_alive() and not self._why:
                self._why = f"no answer within {timeout:g} s"
            return self._sentences(folder)

    def _put(self, item: _Item) -> None:
        if self._uri == "none":
            return
        with self._changed:
            if self._closing:
                return
            self._queue.append(item)
            if self._thread is None:
                # A daemon, so that a server that hangs does not hold up the end of the process.
                self._thread = threading.Thread(target=self._run, name="adalayers-mirror", daemon=True)
                self._thread.start()
            self._changed.notify()

    def _run(self) -> None:
        session: Session | None = None
        retry_at = 0.0
        while True:
            with self._changed:
                while not self._closing and (not self._queue or time.monotonic() < retry_at):
                    self._changed.wait(max(retry_at - time.monotonic(), 0.01) if self._queue else None)
                if self._abandoned or not self._queue:
                    return
                item, last = self._queue[0], self._closing
            try:
                if session is None:
                    session = self._open()
                    session.know(self._study)
                item.write(session)
            except Exception as error:  # the thread's boundary: a mirror that fails must not fail the study
                down = session is None or is_outage(error)
                with self._changed:
                    self._why = reason(error, self._uri)
                    if not down:
                        # The server lives and will never take this one: the rest need not wait for it.
                        self._refused.append(self._queue.popleft())
                if down and last:
                    return
                if down:
                    # A new session asks again what is there: a call that timed out may have been carried out.
                    session, retry_at = None, time.monotonic() + RETRY_SECONDS
            else:
                with self._changed:
                    self._queue.popleft()
                    if not self._refused:
                        self._why = ""

    def _sentences(self, folder: Folder) -> list[str]:
        missing = [*self._refused, *self._queue]
        if not missing:
            return []
        trials = sum(item.kind == "trial" for item in missing)
        if trials:
            what = f"{trials} trial{' is' if trials == 1 else 's are'}"
        else:
            what = "the study is" if missing[0].kind == "study" else "the end of the study is"
        wrong = "could not be reached" if self._queue else "refused what it was sent"
        return [
            f"MLflow at {redacted(self._uri)} {wrong} ({self._why}): {what} not tracked; "
            f"`python -m adalayers sync {redacted(folder.uri)}` writes {'them' if trials > 1 else 'it'} later"
        ]


@dataclass(frozen=True)
class _Item:
    """Something to be written: `kind` is "study", "trial" or "end"."""

    kind: str
    write: Callable[[Session], object]
