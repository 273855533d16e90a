"""The MLflow door: a mirror of a results folder. The folder is the truth, MLflow a copy that can be replayed.

One parent run per study, one nested run per trial that ended:

    params    a trial: the `config/*` columns under the hyperparameter's own name, `seed`, `stage`, `arm`
              a study: `asked/...` and `on/...` of study.json. MLflow's params cannot change: what a later
              run of the same study asks differently (--trials, --seeds) becomes a tag of the same name
    series    `val/*`, `train/loss`, `lr`, `mix/weight_01`..., by step, as in history.parquet
    finals    `test/*`, `mix/entropy`, `mix/live_layers`, `parameters`, `seconds`, `epochs`, `best_epoch` as
              in trials.csv; its `val/*`, the values at the best epoch, as `best/val/*`: `val/*` is the series
    tags      `adalayers.kind` (study, trial), `adalayers.study`, `adalayers.trial_id`, `stage`, `arm`,
              `status`, `error`
    status    completed FINISHED, stopped KILLED, failed and diverged FAILED; unfinished trials are left out

Nothing here uses MLflow's fluent API, so a user's own active run stays as it is. mlflow is imported on first
use, on the mirror's own thread: importing this module is free.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import numbers
import os
import posixpath
import re
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from adalayers.errors import BadInput
from adalayers.results import BEST, CLAIMS, HISTORY, REPORT, STUDY, TRIALS, Folder, counts, plain, read_trials

RETRY_SECONDS = 30.0
"""A server that failed is left alone for so long."""

SERIES_POINTS = 200
"""At most so many points of a series are mirrored; history.parquet has them all."""

_RUN_STATUS = {"completed": "FINISHED", "stopped": "KILLED", "failed": "FAILED", "diverged": "FAILED"}
_CUT_SHORT = ("interrupted", "time is up")
_FINALS = ("mix/entropy", "mix/live_layers", "parameters", "seconds", "epochs", "best_epoch")
_ARTIFACTS = (REPORT, CLAIMS, "contrasts.json", TRIALS, STUDY)
_ARTIFACT_FOLDERS = ("figures", BEST)
_READABLE = (".md", ".json", ".csv")

# What every MLflow server accepts; newer ones accept more.
_NAME_LENGTH = 250
_PARAM_LENGTH = 500
_TAG_LENGTH = 5000
_BATCH = 1000
_BATCH_PARAMS = 100

# Without these a dead server holds one call for minutes, and MLflow writes to the terminal. What the user set
# stays.
_ENVIRONMENT = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "5",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "1",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
}

_HIDDEN = "***"
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"<>]+")
# The last "@" ends the user's part; a password may hold "@", and "/" after a colon that starts no port.
_CREDENTIALS = re.compile(r"://(?:[^/?#]*|[^/@]*:(?!\d+(?:/|$)).*)@")
_QUERY_VALUE = re.compile(r"([?&;][^=&;#]*)=[^&;#]*")
_SECRET_QUERY = re.compile(
    r"[?&;][^=&;#]*(?:pass|pwd|secret|token|key|sig|cred|auth)[^=&;#]*=", re.IGNORECASE
)
_SECRET_NAME = re.compile(
    r"(^|[_\-/.])(password|passwd|secret|token|api_?key|access_?key|credentials?)$", re.IGNORECASE
)
_SQLITE = re.compile(r"sqlite(?:\+\w+)?:///(?P<path>[^?]+)")


def default_uri(output: Folder) -> str:
    """Return MLFLOW_TRACKING_URI, else a sqlite file in a local results root, else "none"."""
    asked = os.environ.get("MLFLOW_TRACKING_URI", "").strip()
    if asked:
        return asked
    return f"sqlite:///{output.path('mlflow.db')}" if output.is_local else "none"


def redacted(uri: str) -> str:
    """Return `uri` fit to be shown: without user and password, and without the values of its query."""
    return _QUERY_VALUE.sub(rf"\1={_HIDDEN}", _CREDENTIALS.sub(f"://{_HIDDEN}@", uri))


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
    place = folder if isinstance(folder, Folder) else Folder(folder)
    for name in (STUDY, TRIALS):
        if not place.exists(name):
            raise BadInput(
                f"wanted a study's results folder to mirror, found no {name} in {place.uri}; "
                "name a folder that a study wrote, <output>/<study>/<backbone>-<dataset>"
            )
    if uri == "none":
        raise BadInput("wanted an MLflow tracking URI to mirror to, got 'none'; give one with --tracking-uri")
    _set_environment()
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        session = _Session(uri, **identity(place, place.read_json(STUDY)), artifact_root=None)
        return session.mirror(place)
    # A database's driver may not be installed, hence ImportError.
    except (MlflowException, SQLAlchemyError, OSError, ImportError) as error:
        raise BadInput(
            f"wanted to mirror {redacted(place.uri)} to MLflow at {redacted(uri)}, "
            f"which failed ({_reason(error, uri)})\n"
            "Check that the server runs and that the URI is right; the results folder itself is complete."
        ) from None  # the libraries' own messages may repeat the URI with its password


class Mirror:
    """Mirror of one study folder, written in batches on one background thread; never raises into the study.

    uri:           MLflow's tracking URI; "none" makes an object that does nothing
    experiment:    name of the MLflow experiment, the study's ("alpha_lambda")
    run_name:      name of the parent run ("minilm-cola")
    study_key:     what identifies the study; the same key continues the same parent run (see `identity`)
    artifact_root: folder for artifacts of a new experiment; None: beside a sqlite file. A server has its own

    What cannot be written is kept and tried again, at most every `RETRY_SECONDS`, and once more by `finish`.
    """

    def __init__(
        self, uri: str, *, experiment: str, run_name: str, study_key: str, artifact_root: str | None
    ):
        self._uri = uri
        self._open = lambda: _Session(
            uri, experiment=experiment, run_name=run_name, study_key=study_key, artifact_root=artifact_root
        )
        self._changed = threading.Condition()  # guards all below
        self._queue: deque[_Item] = deque()
        self._refused: list[_Item] = []
        self._thread: threading.Thread | None = None
        self._closing = False
        self._abandoned = False
        self._why = ""

    def start(self, study: dict[str, Any]) -> None:
        """Queue the parent run: find or create it, and write what study.json says was asked, and on what."""
        study = plain(study)  # a copy: the caller goes on filling its own
        self._put(_Item("study", lambda session: session.describe(study)))

    def trial(self, row: Mapping[str, Any], history: pd.DataFrame) -> None:
        """Queue the nested run of a trial that ended: its row of trials.csv, its rows of history.parquet.

        A row that is `unfinished` is left until it ends.
        """
        if self._uri == "none" or row.get("status") not in _RUN_STATUS:
            return
        try:
            trial = _Trial.of(row, history)
        except (KeyError, TypeError, ValueError) as error:
            with self._changed:
                self._why = _reason(error, self._uri)
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
        session: _Session | None = None
        retry_at = 0.0
        while True:
            with self._changed:
                while not self._closing and (not self._queue or time.monotonic() < retry_at):
                    self._changed.wait(max(retry_at - time.monotonic(), 0.01) if self._queue else None)
                if self._abandoned or not self._queue:
                    return
                item, last = self._queue[0], self._closing
            try:
                session = session or self._open()
                item.write(session)
            except Exception as error:  # the thread's boundary: a mirror that fails must not fail the study
                down = session is None or _is_outage(error)
                with self._changed:
                    self._why = _reason(error, self._uri)
                    if not down:
                        # The server lives and will never take this one: the rest need not wait for it.
                        self._refused.append(self._queue.popleft())
                if down and last:
                    return
                if down:
                    # A new session asks anew what is there: a call that timed out may have been carried out.
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
    write: Callable[[_Session], object]


@dataclass(frozen=True)
class _Trial:
    """A trial as MLflow takes it, small enough to wait for a server that is down.

    finals: name -> value of the trial's row
    series: name -> (steps, values), thinned
    """

    trial_id: str
    status: str
    seconds: float
    params: dict[str, str]
    tags: dict[str, str]
    finals: dict[str, float]
    series: dict[str, tuple[np.ndarray, np.ndarray]]

    @classmethod
    def of(cls, row: Mapping[str, Any], history: pd.DataFrame) -> _Trial:
        texts = {name: _text(row.get(name)) for name in ("seed", "stage", "arm", "status", "error")}
        config = {
            name.removeprefix("config/"): _text(row[name]) for name in row if name.startswith("config/")
        }
        config |= {name: texts[name] for name in ("seed", "stage", "arm")}
        finals = {f"best/{name}": row[name] for name in row if name.startswith("val/")}
        finals |= {name: row[name] for name in row if name.startswith("test/") or name in _FINALS}
        numbers_only = {
            _name(name): number for name, value in finals.items() if (number := _number(value)) is not None
        }
        trial_id = str(row["trial_id"])
        tags = {
            "adalayers.trial_id": trial_id,
            **{name: texts[name] for name in ("stage", "arm", "status", "error")},
        }
        return cls(
            trial_id=trial_id,
            status=str(row["status"]),
            seconds=_number(row.get("seconds")) or 0.0,
            params={_name(name): text[:_PARAM_LENGTH] for name, text in config.items() if text},
            tags={name: text[:_TAG_LENGTH] for name, text in tags.items() if text},
            finals=numbers_only,
            series=_series(history),
        )


class _Session:
    """An open connection: the experiment, the parent run, and the trials it has.

    Every method may raise what MLflow, SQLAlchemy and the file system raise.
    """

    def __init__(
        self, uri: str, *, experiment: str, run_name: str, study_key: str, artifact_root: str | None
    ):
        _set_environment()
        from mlflow import MlflowClient

        if (sqlite := _SQLITE.match(uri)) is not None:
            beside = Path(sqlite["path"]).absolute().parent
            beside.mkdir(parents=True, exist_ok=True)
            # MLflow's own default is a folder in the working directory.
            artifact_root = artifact_root or str(beside / "mlartifacts")
        elif uri.startswith(("http://", "https://")):
            artifact_root = None
        with _quiet():
            self._client = MlflowClient(tracking_uri=uri)
            self._key = study_key
            self._experiment = self._find_experiment(experiment, artifact_root)
            self._parent = self._find_parent(run_name)
            self._written = self._find_trials()

    def describe(self, study: Mapping[str, Any]) -> None:
        """Write what was asked, and on what, as params of the parent; what changed since as tags."""
        from mlflow.entities import Param, RunTag

        asked = dict(_flat({name: study.get(name) or {} for name in ("asked", "on")}))
        with _quiet():
            data = self._client.get_run(self._parent).data
            params = [Param(name, text) for name, text in asked.items() if name not in data.params]
            tags = [
                RunTag(name, text)
                for name, text in asked.items()
                if data.tags.get(name, data.params.get(name, text)) != text
            ]
            for start in range(0, max(len(params), len(tags)), _BATCH_PARAMS):
                part = slice(start, start + _BATCH_PARAMS)
                self._client.log_batch(self._parent, params=params[part], tags=tags[part], synchronous=True)

    def write(self, trial: _Trial) -> bool:
        """Write the nested run of a trial, unless it is there; return whether it was written."""
        from mlflow.entities import Metric, Param

        run_id, status = self._written.get(trial.trial_id, ("", ""))
        if status == trial.status:
            return False
        end = int(time.time() * 1000)
        begin = end - int(trial.seconds * 1000)
        with _quiet():
            if run_id:
                # Half written by a process that died, or of a trial that was tried anew: params cannot be
                # changed and points would be doubled, so it is written from the start.
                self._client.delete_run(run_id)
            tags = {
                **trial.tags,
                "adalayers.kind": "trial",
                "adalayers.study": self._key,
                "mlflow.parentRunId": self._parent,
            }
            run_id = self._client.create_run(
                self._experiment, start_time=begin, tags=tags, run_name=trial.trial_id
            ).info.run_id
            self._written[trial.trial_id] = (run_id, "")
            metrics = [Metric(name, value, end, 0) for name, value in trial.finals.items()]
            last = max((steps[-1] for steps, _ in trial.series.values()), default=0) or 1
            for name, (steps, values) in trial.series.items():
                # history.parquet keeps no clock: the points are spread over the trial's time by their steps.
                times = begin + (end - begin) * steps // last
                metrics += map(Metric, [name] * len(steps), values.tolist(), times.tolist(), steps.tolist())
            params = [Param(name, text) for name, text in trial.params.items()]
            while params or metrics:
                room = _BATCH - min(len(params), _BATCH_PARAMS)
                self._client.log_batch(run_id, metrics[:room], params[:_BATCH_PARAMS], synchronous=True)
                metrics, params = metrics[room:], params[_BATCH_PARAMS:]
            self._client.set_terminated(run_id, _RUN_STATUS[trial.status], end_time=end)
        self._written[trial.trial_id] = (run_id, trial.status)
        return True

    def mirror(self, folder: Folder) -> int:
        """Write what is in the folder and not there yet, end the parent run; return the trials written."""
        from mlflow.entities import Metric

        study, trials = folder.read_json(STUDY), read_trials(folder)
        self.describe(study)
        happened = dict(_numbers({"happened": study.get("happened") or {}, "trials": counts(trials)}))
        with _quiet(), tempfile.TemporaryDirectory(prefix="adalayers-") as staged:
            for name in _artifacts(folder):
                target = Path(staged, name)
                target.parent.mkdir(parents=True, exist_ok=True)
                data = folder.read_bytes(name)
                target.write_bytes(_clean(data.decode()).encode() if name.endswith(_READABLE) else data)
            self._client.log_artifacts(self._parent, staged)
            known = self._client.get_run(self._parent).data.metrics
            now = int(time.time() * 1000)
            changed = [
                Metric(name, value, now, 0) for name, value in happened.items() if known.get(name) != value
            ]
            self._client.log_batch(self._parent, metrics=changed[:_BATCH], synchronous=True)
        rows = [{str(name): value for name, value in row.items()} for row in trials.to_dict("records")]
        missing = [
            row
            for row in rows
            if row["status"] in _RUN_STATUS
            and self._written.get(row["trial_id"], ("", ""))[1] != row["status"]
        ]
        written = 0
        if missing:
            history = (
                folder.read_parquet(HISTORY) if folder.exists(HISTORY) else pd.DataFrame({"trial_id": []})
            )
            of_trial = dict(iter(history.groupby("trial_id")))
            for row in missing:
                written += self.write(_Trial.of(row, of_trial.get(row["trial_id"], history.iloc[:0])))
        with _quiet():
            self._client.set_terminated(self._parent, _study_status(study, trials))
        return written

    def _find_experiment(self, name: str, artifact_root: str | None) -> str:
        from mlflow.exceptions import MlflowException

        if (found := self._client.get_experiment_by_name(name)) is not None:
            return str(found.experiment_id)
        try:
            return str(
                self._client.create_experiment(name, f"{artifact_root}/{name}" if artifact_root else None)
            )
        except MlflowException as error:
            # Another study of this name may have been quicker.
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise
            found = self._client.get_experiment_by_name(name)
            if found is None:
                raise
            return str(found.experiment_id)

    def _find_parent(self, run_name: str) -> str:
        studies = self._runs("tags.`adalayers.kind` = 'study'")
        found = [run for run in studies if run.data.tags.get("adalayers.study") == self._key]
        if not found:
            tags = {"adalayers.kind": "study", "adalayers.study": self._key}
            return str(self._client.create_run(self._experiment, tags=tags, run_name=run_name).info.run_id)
        first = min(found, key=lambda run: run.info.start_time)
        if first.info.status != "RUNNING":
            self._client.update_run(first.info.run_id, status="RUNNING")
        return str(first.info.run_id)

    def _find_trials(self) -> dict[str, tuple[str, str]]:
        """Return trial id -> (run id, status in trials.csv); no status where the run is only half written."""
        return {
            run.data.tags["adalayers.trial_id"]: (
                run.info.run_id,
                run.data.tags.get("status", "") if run.info.status in _RUN_STATUS.values() else "",
            )
            for run in self._runs(f"tags.`mlflow.parentRunId` = '{self._parent}'")
            if "adalayers.trial_id" in run.data.tags
        }

    def _runs(self, filter_string: str) -> Iterator[Any]:
        token = None
        while True:
            page = self._client.search_runs(
                [self._experiment], filter_string, max_results=500, page_token=token
            )
            yield from page
            token = page.token
            if not token:
                return


def _set_environment() -> None:
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)


def _series(history: pd.DataFrame) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return name -> (steps, values) of the columns that are series: rising steps, finite values, thinned."""
    if history.empty or "step" not in history:
        return {}
    steps = pd.to_numeric(history["step"], errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    order = np.argsort(steps, kind="stable")
    wanted = [
        name
        for name in history
        if name in ("train/loss", "lr") or str(name).startswith(("val/", "mix/weight_"))
    ]
    series = {}
    for name in wanted:
        values = pd.to_numeric(history[name], errors="coerce").to_numpy(dtype=float, na_value=np.nan)[order]
        kept = np.flatnonzero(np.isfinite(values) & np.isfinite(steps[order]))
        if len(kept) > SERIES_POINTS:
            kept = kept[np.linspace(0, len(kept) - 1, SERIES_POINTS).round().astype(int)]
        if len(kept):
            series[_name(str(name))] = (steps[order][kept].astype(np.int64), values[kept])
    return series


def _artifacts(folder: Folder) -> list[str]:
    inside = [f"{name}/{file}" for name in _ARTIFACT_FOLDERS for file in folder.names(name)]
    return [name for name in (*_ARTIFACTS, *inside) if not name.endswith(".partial") and folder.exists(name)]


def _study_status(study: Mapping[str, Any], trials: pd.DataFrame) -> str:
    """Return the parent's status, by `happened.state` and how the trials ended."""
    state = (study.get("happened") or {}).get("state")
    if len(trials) and trials["status"].isin(["failed", "diverged"]).all():
        return "FAILED"
    if state in _CUT_SHORT or (state != "finished" and (trials["status"] == "unfinished").any()):
        return "KILLED"
    return "FINISHED"


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield (name/of/the/leaf, text) of nested mappings; secrets hidden, empty values left out."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _flat(item, f"{name}/{key}" if name else str(key))
    elif text := _text(value):
        yield _name(name), (_HIDDEN if _SECRET_NAME.search(name) else text)[:_PARAM_LENGTH]


def _numbers(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """Yield (name/of/the/leaf, value) of the finite numbers in nested mappings; `counts` are given apart."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key != "counts":
                yield from _numbers(item, f"{name}/{key}" if name else str(key))
    elif (number := _number(value)) is not None:
        yield _name(name), number


def _number(value: Any) -> float | None:
    """Return a finite number as a float, else None (also for None, NaN, pandas' NA, text and booleans)."""
    if isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    return None


def _text(value: Any) -> str:
    """Return a value as text, "" for what is missing. 8.0 is "8": a column with gaps comes back as floats."""
    value = plain(value)
    if value is None or value is pd.NA:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    return _clean(value if isinstance(value, str) else json.dumps(value, default=str))


def _name(name: str) -> str:
    """Return `name` as MLflow accepts it for a param or metric: few characters, a tidy relative path."""
    tidy = posixpath.normpath(re.sub(r"[^\w\-. :/]", "_", name)).lstrip("/")
    return tidy.replace("..", "_")[:_NAME_LENGTH]


def _clean(text: str) -> str:
    """Return `text` with every URI in it redacted that carries credentials."""
    return _URI.sub(lambda uri: redacted(uri[0]) if _holds_secret(uri[0]) else uri[0], text)


def _holds_secret(uri: str) -> bool:
    return bool(_CREDENTIALS.search(uri) or _SECRET_QUERY.search(uri))


def _reason(error: BaseException, uri: str) -> str:
    """Return one line that says what went wrong, without the credentials of `uri`."""
    root = error
    while (deeper := root.__cause__ or root.__context__) is not None:
        root = deeper
    # "Connection refused" is the news, not the layers of libraries that pass it on.
    error = root if isinstance(root, OSError) else error
    text = str(error).replace(uri, redacted(uri))
    for secret in re.findall(r"://[^/]*?:([^@]+)@", uri):
        text = text.replace(secret, _HIDDEN)
    lines = [
        line.strip() for line in _URI.sub(lambda found: redacted(found[0]), text).splitlines() if line.strip()
    ]
    line = lines[0] if lines else ""
    return f"{type(error).__name__}: {line[:200]}{'…' if len(line) > 200 else ''}"


def _is_outage(error: Exception) -> bool:
    """Say whether the server or database failed, rather than refused what it was sent."""
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    if isinstance(error, MlflowException):
        return error.error_code != "INVALID_PARAMETER_VALUE"
    return isinstance(error, (OSError, SQLAlchemyError))


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep what MLflow logs on this thread off the terminal; what is logged on others goes through."""
    here = threading.get_ident()

    def elsewhere(record: logging.LogRecord) -> bool:
        return record.thread != here

    # MLflow's handlers serve mlflow, alembic and sqlalchemy; urllib3 warns of each retry on its own logger.
    sources = [*logging.getLogger("mlflow").handlers, logging.getLogger("urllib3.connectionpool")]
    for source in sources:
        source.addFilter(elsewhere)
    try:
        yield
    finally:
        for source in sources:
            source.removeFilter(elsewhere)
