"""A mirror in MLflow of a results folder. The folder is the truth, MLflow a copy that can be replayed.

`Mirror` writes while a study runs, on a thread of its own, and never fails the study; `sync` does the same once, later.
Both write what the folder has and MLflow has not. What is written, and as what, says `session`. Importing this module
is free.
"""

from __future__ import annotations

import logging
import os
import threading
from urllib.parse import urlsplit

from adalayers.errors import BadInput
from adalayers.results.files import STUDY, study_folder
from adalayers.results.study_file import read_study
from adalayers.storage.folder import Folder
from adalayers.storage.redaction import reason, redacted
from adalayers.tracking.session import SQLITE, Session, is_refusal

logger = logging.getLogger(__name__)

EVERY_SECONDS, RETRY_SECONDS = 10.0, 30.0
"""A folder that changes is written this often; a server that failed is left alone for so long."""
TRY_SECONDS = 60.0
"""How long the first attempt to open it may take before a study starts without an answer."""


def default_uri(output: Folder) -> str:
    """Return MLFLOW_TRACKING_URI, else a sqlite file in a local results root, else "none".

    Raises:
        BadInput: The file would be another one, as MLflow reads its path.
    """
    if uri := os.environ.get("MLFLOW_TRACKING_URI", "").strip():
        return uri
    if not output.is_local:
        return "none"
    path = str(output.path("mlflow.db"))
    if odd := sorted({*path} & {*"?#%"}):  # MLflow reads it as part of an address
        raise BadInput(
            f"wanted MLflow's database at a path without {' and '.join(odd)}, got {path}; name another --output, or "
            "give --tracking-uri (none turns MLflow off)"
        )
    return f"sqlite:///{path}"


def check_uri(uri: str) -> None:
    """Check a tracking URI before anything runs.

    Raises:
        BadInput: It is none, a folder as a database, which SQLAlchemy would try for minutes, or a database that is
            gone with the process. What else MLflow refuses says `Mirror.check`.
    """
    path = SQLITE.match(uri)
    try:
        kept = not urlsplit(uri).scheme.startswith("sqlite")
        if path:
            kept = path["path"] != ":memory:" and not os.path.isdir(path["path"])
    except ValueError:
        kept = False
    if not kept:
        raise BadInput(
            "wanted an MLflow tracking URI, the address of a server or a file as MLflow's database, got "
            f"{redacted(uri)!r}; give --tracking-uri sqlite:///<path of a file>"
        )


def runs_page(uri: str, page: str) -> str:
    """Return where a browser finds the runs of a study, in words; `page`: `Session.page`."""
    if uri.startswith(("http://", "https://")):
        return f"{redacted(uri).rstrip('/')}/{page}"
    command = f"mlflow server --backend-store-uri {redacted(uri)} --workers 1"
    return f"http://127.0.0.1:5000/{page}, once `{command}` runs"


def sync(folder: Folder | str, uri: str) -> int:
    """Mirror a whole results folder; return the number of trial runs written, without those already there.

    Args:
        folder: Of one case of a study, local or a URI.
        uri: MLflow's tracking URI.

    Raises:
        BadInput: The folder holds no study, or MLflow cannot be reached or written.
    """
    opened = study_folder(folder, wanted="a study's results folder to mirror")
    if uri == "none":
        raise BadInput("wanted an MLflow tracking URI to mirror to, got 'none'; give one with --tracking-uri")
    check_uri(uri)
    study = read_study(opened)
    mirror = Mirror(uri, opened, experiment=study.study, run_name=study.name, study_key=study.id)
    if failed := mirror.finish(timeout=None):
        raise BadInput(failed)
    logger.info(f"MLflow: {mirror.page}")
    return mirror.written


class Mirror:
    """Mirror of one study folder, written on one background thread; never raises into the study.

    Args:
        uri: MLflow's tracking URI; "none" makes an object that does nothing.
        folder: The study's results folder.
        experiment: name of the MLflow experiment, the study's ("alpha_lambda").
        run_name: name of the parent run ("minilm-cola").
        study_key: what identifies the study; the same key continues the same parent run.

    Attributes:
        page: Where a browser finds the study's runs, in words, once they are written.
        written: How many trials were written.
    """

    def __init__(self, uri: str, folder: Folder, *, experiment: str, run_name: str, study_key: str):
        self._uri, self._folder = uri, folder
        self._open = lambda: Session(uri, experiment=experiment, run_name=run_name, study_key=study_key)
        # A daemon, so that a server that hangs does not hold up the end of the process.
        self._thread = threading.Thread(target=self._run, name="adalayers-mirror", daemon=True)
        self._changed, self._ended, self._tried = (threading.Event() for _ in range(3))
        self._why = self.page = ""
        self._refused = False
        self.written = 0

    def check(self) -> None:
        """Open it before anything is computed. A server that is down keeps nothing from beginning, and it is said.

        Raises:
            BadInput: It refuses, and would refuse after the last trial as well.
        """
        if self._uri == "none":
            return
        self.changed()
        self._tried.wait(TRY_SECONDS)
        if self._refused:
            raise BadInput(
                f"wanted to write to MLflow at {redacted(self._uri)}, which refuses ({self._why}); mend that, or give "
                "another --tracking-uri (none turns MLflow off)"
            )
        if self._why or not self._tried.is_set():
            why = self._why or f"no answer within {TRY_SECONDS:g} s"
            logger.warning(
                f"MLflow at {redacted(self._uri)} is out of reach ({why}); the study goes on without it"
            )

    def changed(self) -> None:
        """Write what the folder has and MLflow has not, soon."""
        if self._uri == "none":
            return
        self._changed.set()
        if self._thread.ident is None:  # not started yet
            self._thread.start()

    def finish(self, *, timeout: float | None = 60.0) -> str:
        """Write all that is not there yet, the folder's files too, end the parent run, end the thread.

        Args:
            timeout: Seconds within which it returns; None: as long as it takes.

        Returns:
            A sentence about what could not be written; "" when all is well.
        """
        if self._uri == "none":
            return ""
        self._ended.set()
        self.changed()
        self._thread.join(timeout)
        if self._thread.is_alive():
            self._why = self._why or f"no answer within {timeout:g} s"
        if not self._why:
            return ""
        return (
            f"MLflow at {redacted(self._uri)} could not be written ({self._why}): the study is not wholly tracked; "
            f"`adalayers sync {redacted(self._folder.uri)}` writes what is missing later"
        )

    def _run(self) -> None:
        session: Session | None = None
        last = False
        while not last:
            self._changed.wait()
            self._changed.clear()
            last, pause = self._ended.is_set(), EVERY_SECONDS
            try:
                session = session or self._open()
                self._tried.set()
                if last or self._folder.exists(STUDY):
                    self.written += session.mirror(self._folder, last=last)
                self._why, self.page = "", runs_page(self._uri, session.page)
            except Exception as error:  # the thread's boundary: a mirror that fails must not fail the study
                self._why, self._refused = reason(error, self._uri), is_refusal(error, self._uri)
                # A new session asks again what is there: a call that timed out may have been carried out.
                session, pause = None, RETRY_SECONDS
            self._tried.set()
            self._ended.wait(pause)
