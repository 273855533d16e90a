"""What is written to MLflow: a run per study, in it one per arm and per trial of the search, in an arm's its trials.

    params    a trial: the `config/*` columns under the hyperparameter's own name, `seed`, `stage`, `arm`
              a study: `request/...` and `environment/...` of study.json. MLflow's params cannot change: what a later
              run of the same study asks differently (--trials, --seeds) becomes a tag of the same name
    series    `training/val/*`, `training/train/loss` and `lr`, `training/weights/weight_01`..., by step, as in
              history.parquet (`mix/*` there)
    finals    `test/*`, `val/*` at the best epoch, `weights/entropy`, `weights/live_layers`. Bookkeeping
              (`seconds`, `parameters`, `epochs`, `best_epoch`, `cost/*`) is among the params, and a study's counts are
              tags: MLflow draws a chart of every metric
    tags      `adalayers.kind` (study, arm, trial), `adalayers.study`, `adalayers.trial_id`, `stage`, `arm`,
              `status`, `error`; MLflow's own for the source, for the colour, an arm's own, and for the kind of
              experiment: models are trained
    arms      of the selection metric `test/f1`, `... low`, `... high` (the mean over seeds and its interval, as on the
              page) and `n`, at the end of a run of the study
    view      a tag of the experiment for each study, by which `Session.page` shows its arms
    status    completed FINISHED, stopped KILLED, failed and diverged FAILED; unfinished trials are left out

Nothing here uses MLflow's fluent API, so a user's own active run stays as it is. mlflow is imported on first
use: importing this module is free.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shlex
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pandas as pd

from adalayers import environ
from adalayers.errors import BadInput
from adalayers.results.files import (
    BEST,
    CLAIMS,
    HISTORY,
    REPORT,
    STUDY,
    TRIALS,
    counts,
    read_rows,
    read_trials,
)
from adalayers.results.frames import StudyResults
from adalayers.results.study_file import StudyFile, read_study
from adalayers.storage.folder import Folder
from adalayers.storage.lock import own_lock
from adalayers.storage.redaction import clean, redacted
from adalayers.tracking.values import (
    Trial,
    colours,
    data_params,
    flat,
    in_symbols,
    mlflow_name,
    run_name,
    runs_view,
    symbols,
)

logger = logging.getLogger(__name__)

RUN_STATUS = {"completed": "FINISHED", "stopped": "KILLED", "failed": "FAILED", "diverged": "FAILED"}
_CUT_SHORT = ("interrupted", "time is up")
_ARTIFACTS = (REPORT, "details.md", CLAIMS, "contrasts.json", TRIALS, STUDY)
_ARTIFACT_FOLDERS = ("figures", BEST)
_READABLE = (".md", ".json", ".csv")

# What every MLflow server accepts; newer ones accept more.
_BATCH_ENTRIES = 1000
_BATCH_PARAMS = 100
_NOTE, _MOST_RUNS = 4000, 50_000

KIND = {"mlflow.experimentKind": "custom_model_development"}
"""By this tag MLflow opens an experiment as one of models that are trained; else it asks, or guesses traces."""

VIEW = "mlflow.sharedViewState."
"""With a key behind it, a tag of an experiment: how MLflow's page of runs looks when an address names that key."""

SQLITE = re.compile(r"sqlite(?:\+\w+)?:///(?P<path>[^?]+)")


class Session:
    """An open connection: the experiment, the parent run, and the trials it has.

    Every method may raise what MLflow, SQLAlchemy and the file system raise.
    """

    def __init__(self, uri: str, *, experiment: str, run_name: str, study_key: str):
        environ.set_defaults()
        from mlflow import MlflowClient

        self._artifacts: Path | None = None
        alone: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
        if (sqlite := SQLITE.match(uri)) is not None:
            database = Path(sqlite["path"]).absolute()
            beside = database.parent
            # Two studies that begin at once would both make its tables.
            alone = own_lock(beside / f".{database.name}.lock", timeout=120)
            beside.mkdir(parents=True, exist_ok=True)
            # MLflow's own default is a folder in the working directory.
            self._artifacts = beside / "mlartifacts"
        self._arms: dict[str, str] = {}  # arm -> run
        self._written: dict[str, tuple[str, str]] = {}  # trial -> run, and its status in trials.csv
        self._study = StudyFile()
        with alone, _quiet():
            self._client = MlflowClient(tracking_uri=uri)
            self._key = study_key
            self._experiment = self._find_experiment(experiment)
            self._find_runs(run_name)
        self.page = f"#/experiments/{self._experiment}/runs?workflowType=machine_learning&viewStateShareKey={study_key}"

    def mirror(self, folder: Folder, *, last: bool = True) -> int:
        """Write what the results folder has and is not there yet.

        Args:
            folder: The study's.
            last: Whether a run of the study has ended: its files are written too, and the parent run ends.

        Returns:
            The number of trials written.
        """
        study = read_study(folder)
        with _quiet():
            self._describe(study)
            if not folder.exists(TRIALS):
                return 0
            trials = read_trials(folder)
            missing = [
                {str(name): value for name, value in row.items()}
                for row in trials[trials["status"].isin(list(RUN_STATUS))].to_dict("records")
                if self._written.get(row["trial_id"], ("", ""))[1] != row["status"]
            ]
            history, refused = _history(folder) if missing else pd.DataFrame(), []
            for row in missing:
                try:
                    self._write(Trial.from_row(row, history[history["trial_id"] == row["trial_id"]]))
                except Exception as error:  # a trial that is refused does not hold up the others
                    if is_outage(error):
                        raise
                    refused.append(error)
            if last:
                self._end(folder, study, trials)
        if refused:
            raise refused[0]
        return len(missing)

    def _describe(self, study: StudyFile) -> None:
        """Write what was asked, and on what, as params of the parent; what changed since as tags."""
        from mlflow.entities import Param, RunTag

        document = study.as_json()
        texts = dict(flat({name: document[name] for name in ("request", "environment")}))
        self._study = study
        data = self._client.get_run(self._parent).data
        params = [Param(name, text) for name, text in texts.items() if name not in data.params]
        tags = [
            RunTag(name, text)
            for name, text in texts.items()
            if data.tags.get(name, data.params.get(name, text)) != text
        ]
        tags += [RunTag(name, text) for name, text in _source(study).items() if data.tags.get(name) != text]
        self._log_to_parent(params, tags)
        self._client.set_experiment_tag(
            self._experiment, VIEW + self._key, runs_view(self._key, study.request.metric)
        )

    def _create(
        self,
        kind: str,
        name: str,
        tags: Mapping[str, str] = {},
        *,
        parent: str = "",
        begin: int | None = None,
    ) -> str:
        tags = {**tags, **_source(self._study), "adalayers.kind": kind, "adalayers.study": self._key}
        if colour := colours(self._study).get(tags.get("arm", "")):
            tags["mlflow.runColor"] = colour
        tags |= {"mlflow.parentRunId": parent} if parent else {}
        run = self._client.create_run(self._experiment, start_time=begin, tags=tags, run_name=name)
        return str(run.info.run_id)

    def _write(self, trial: Trial) -> None:
        """Write the run of a trial."""
        from mlflow.entities import Metric, Param

        end = int(time.time() * 1000)
        begin = end - int(trial.seconds * 1000)
        if run_id := self._written.get(trial.trial_id, ("", ""))[0]:
            # Half written by a process that died, or of a trial that was tried again: params cannot be changed and
            # points would be doubled, so it is written from the start.
            self._client.delete_run(run_id)
        parent, arm = self._parent, trial.tags.get("arm")
        data, factors = data_params(self._study), symbols(self._study)
        params = [Param(name, text) for name, text in {**data, **trial.params}.items()]
        if arm and trial.tags.get("stage") == "confirm":
            if arm not in self._arms:
                name = in_symbols(arm, factors)
                self._arms[arm] = self._create("arm", name, {"arm": arm}, parent=parent, begin=begin)
                shared = [param for param in params if param.key in trial.of_arm or param.key in data]
                self._client.log_batch(self._arms[arm], params=shared[:_BATCH_PARAMS], synchronous=True)
            parent = self._arms[arm]
        name = run_name(trial, factors)
        run_id = self._create("trial", name, trial.tags, parent=parent, begin=begin)
        self._written[trial.trial_id] = (run_id, "")
        metrics = [Metric(name, value, end, 0) for name, value in trial.finals.items()]
        most = max((steps[-1] for steps, _ in trial.series.values()), default=0) or 1
        for name, (steps, values) in trial.series.items():
            # history.parquet keeps no clock: the points are spread over the trial's time by their steps.
            times = begin + (end - begin) * steps // most
            metrics += map(Metric, [name] * len(steps), values.tolist(), times.tolist(), steps.tolist())
        while params or metrics:
            room = _BATCH_ENTRIES - min(len(params), _BATCH_PARAMS)
            self._client.log_batch(run_id, metrics[:room], params[:_BATCH_PARAMS], synchronous=True)
            metrics, params = metrics[room:], params[_BATCH_PARAMS:]
        self._client.set_terminated(run_id, RUN_STATUS[trial.status], end_time=end)
        self._written[trial.trial_id] = (run_id, trial.status)

    def _end(self, folder: Folder, study: StudyFile, trials: pd.DataFrame) -> None:
        """Write the folder's files and what the arms scored, and end the parent run."""
        from mlflow.entities import Metric, RunTag

        numbers = {name: value for name, value in vars(study.runs).items() if isinstance(value, int | float)}
        outcome = dict(flat({"runs": numbers, "trials": counts(trials)}))
        with tempfile.TemporaryDirectory(prefix="adalayers-") as staged:
            for name in _artifacts(folder):
                target, content = Path(staged, name), folder.read_bytes(name)
                target.parent.mkdir(parents=True, exist_ok=True)
                if name.endswith(_READABLE):
                    content = clean(content.decode(errors="replace")).encode()
                target.write_bytes(content)
            if self._artifacts:
                self._refuse_links(self._artifacts, _artifacts(folder))
            self._client.log_artifacts(self._parent, staged)
            if folder.exists(REPORT):
                outcome["mlflow.note.content"] = Path(staged, REPORT).read_text(encoding="utf-8")[:_NOTE]
        before = self._client.get_run(self._parent).data.tags
        # Trials that an earlier run left unfinished, say, have ended since.
        outcome |= {name: "0" for name in before if name.startswith("trials/") and name not in outcome}
        changed = [RunTag(name, text) for name, text in outcome.items() if before.get(name) != text]
        self._log_to_parent([], changed)
        results, now = StudyResults(folder), int(time.time() * 1000)
        for row in results.arms.to_dict("records"):
            if run_id := self._arms.get(str(row["arm"])):
                score = f"{row['split']}/{results.study.request.metric}"
                values = {
                    score: row["mean"],
                    f"{score} low": row["low"],
                    f"{score} high": row["high"],
                    "n": row["n"],
                }
                finite = {
                    mlflow_name(name): float(value) for name, value in values.items() if not pd.isna(value)
                }
                metrics = [Metric(name, value, now, int(row["n"])) for name, value in finite.items()]
                self._client.log_batch(run_id, metrics=metrics, synchronous=True)
                self._client.set_terminated(run_id)
        self._client.set_terminated(self._parent, _study_status(study, trials))

    def _refuse_links(self, root: Path, names: Sequence[str]) -> None:
        """Raise `BadInput` where a file of the parent run would be written outside `root`, which is beside a database.

        A results folder may come from elsewhere, with links in it, or a database that names another machine's folders.
        """
        inside = Path(os.path.realpath(root.parent), root.name)
        uri = urlsplit(self._client.get_run(self._parent).info.artifact_uri)
        if uri.scheme not in ("", "file"):
            return
        for name in names:
            target = Path(os.path.realpath(Path(url2pathname(uri.path), name)))
            if not target.is_relative_to(inside):
                raise BadInput(
                    f"wanted MLflow's files below {inside}, {name} would be written to {target}; remove the link, or "
                    "give another --tracking-uri"
                )

    def _log_to_parent(self, params: Sequence[Any], tags: Sequence[Any]) -> None:
        for start in range(0, max(len(params), len(tags)), _BATCH_PARAMS):
            part = slice(start, start + _BATCH_PARAMS)
            self._client.log_batch(self._parent, params=params[part], tags=tags[part], synchronous=True)

    def _find_experiment(self, name: str) -> str:
        from mlflow.exceptions import MlflowException

        if (experiment := self._client.get_experiment_by_name(name)) is None:
            try:
                location = f"{self._artifacts}/{name}" if self._artifacts else None
                return str(self._client.create_experiment(name, location, tags=KIND))
            except MlflowException:  # another study of this name may have been quicker
                if (experiment := self._client.get_experiment_by_name(name)) is None:
                    raise
        if experiment.lifecycle_stage == "deleted":
            raise Deleted(name, str(experiment.experiment_id))
        return str(experiment.experiment_id)

    def _find_runs(self, run_name: str) -> None:
        """Find or make the study's run; find those of its arms and trials."""
        found = self._client.search_runs(
            [self._experiment], f"tags.`adalayers.study` = '{self._key}'", max_results=_MOST_RUNS
        )
        parents = []
        for run in sorted(found, key=lambda run: run.info.start_time):
            tags = run.data.tags
            if tags.get("adalayers.kind") == "study":
                parents.append(run)
            elif tags.get("adalayers.kind") == "arm":
                self._arms[tags.get("arm", "")] = run.info.run_id
            elif trial_id := tags.get("adalayers.trial_id"):
                whole = run.info.status in RUN_STATUS.values()  # else it is only half written
                self._written[trial_id] = run.info.run_id, tags.get("status", "") if whole else ""
        if not parents:
            self._parent = self._create("study", run_name)
            return
        self._parent = parents[0].info.run_id
        if parents[0].info.status != "RUNNING":
            self._client.update_run(self._parent, status="RUNNING")


class Deleted(Exception):
    """The study's experiment was deleted, so that MLflow writes no run of it."""

    def __init__(self, name: str, identity: str):
        super().__init__(f"its experiment {name!r} was deleted")
        self.identity = identity


_REFUSALS = {
    "UNAUTHENTICATED": "set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN",
    "PERMISSION_DENIED": "take an account that may write there",
    "ENDPOINT_NOT_FOUND": "name the address of an MLflow server",
    "INVALID_PARAMETER_VALUE": "mend what it names",
}


def refusal(error: Exception, uri: str) -> str:
    """Return what helps where a server or database refuses, and will do so again; "" where it may answer later."""
    import mlflow
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    shown, said = shlex.quote(redacted(uri)), str(error)
    if isinstance(error, Deleted):
        restore = f"mlflow experiments restore --experiment-id {error.identity}"
        return f"`MLFLOW_TRACKING_URI={shown} {restore}` brings it back"
    if isinstance(error, ImportError):
        return "install the driver of that database"
    if found := re.search(r"out-of-date database schema \(found version (\w+)", said):
        versions = Path(mlflow.__file__).parent / "store" / "db_migrations" / "versions"
        if any(versions.glob(f"{found[1]}_*.py")):
            return f"make a copy of the database, then `mlflow db upgrade {shown}`"
        return f"install the MLflow that wrote it: {mlflow.__version__} does not know its version"
    if isinstance(error, MlflowException) and error.error_code in _REFUSALS:
        return _REFUSALS[error.error_code]
    if SQLITE.match(uri) and isinstance(error, SQLAlchemyError | MlflowException) and "is locked" not in said:
        return "see that it is a database of MLflow's which can be written"
    return ""


def is_outage(error: Exception) -> bool:
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


def _source(study: StudyFile) -> dict[str, str]:
    """Return MLflow's own tags that say by what a study was run: its script, and the commit."""
    script = next((word for word in study.request.command.split() if word.endswith(".py")), "")
    commit = study.environment.git.commit or ""
    tags = {"mlflow.source.name": clean(script), "mlflow.source.git.commit": commit}
    return {name: text for name, text in tags.items() if text} | (
        {"mlflow.source.type": "LOCAL"} if script else {}
    )


def _artifacts(folder: Folder) -> list[str]:
    inside = [f"{name}/{file}" for name in _ARTIFACT_FOLDERS for file in folder.names(name)]
    return [name for name in (*_ARTIFACTS, *inside) if not name.endswith(".partial") and folder.exists(name)]


def _study_status(study: StudyFile, trials: pd.DataFrame) -> str:
    """Return the parent's status, by `runs.state` and how the trials ended."""
    state = study.runs.state
    if len(trials) and trials["status"].isin(["failed", "diverged"]).all():
        return "FAILED"
    if state in _CUT_SHORT or (state != "finished" and (trials["status"] == "unfinished").any()):
        return "KILLED"
    return "FINISHED"


def _history(folder: Folder) -> pd.DataFrame:
    """Return the rows of `history.parquet`; none, and it is said, where the file is damaged."""
    if folder.exists(HISTORY):
        try:
            return read_rows(folder, HISTORY)
        except BadInput as error:
            logger.warning(
                f"{HISTORY} in {redacted(folder.uri)} cannot be read ({error}); runs go without their curves"
            )
    return pd.DataFrame({"trial_id": []})
