"""What is written to MLflow: a run per study, in it one per arm and per trial of the search, in an arm's its trials.

    params    a trial: the `config/*` columns under the hyperparameter's own name, `seed`, `stage`, `arm`
              a study: `request/...` and `environment/...` of study.json. MLflow's params cannot change: what a later
              run of the same study asks differently (--trials, --seeds) becomes a tag of the same name
    series    `training/val/*`, `training/train/loss` and `lr`, `training/weights/weight_01`..., by step, as in
              history.parquet (`mix/*` there)
    finals    `test/*`, `val/*` at the best epoch, `weights/entropy`, `weights/live_layers`. Bookkeeping
              (`seconds`, `parameters`, `epochs`, `best_epoch`, `cost/*`) is among the params: MLflow draws a chart of
              every metric
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
import os
import re
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from adalayers import environ
from adalayers.errors import BadInput
from adalayers.results import files
from adalayers.results.frames import StudyResults
from adalayers.results.palette import COLOURS
from adalayers.results.study_file import StudyFile, read_study
from adalayers.storage.folder import Folder
from adalayers.storage.lock import own_lock
from adalayers.storage.redaction import clean
from adalayers.tracking import values

RUN_STATUS = {"completed": "FINISHED", "stopped": "KILLED", "failed": "FAILED", "diverged": "FAILED"}
_ARTIFACTS = (files.REPORT, "details.md", files.CLAIMS, "contrasts.json", files.TRIALS, files.STUDY)
_ARTIFACT_FOLDERS = ("figures", files.BEST)
_READABLE = (".md", ".json", ".csv")
_NOTE, _MOST_RUNS = 4000, 50_000
_TIMEOUT = "MLFLOW_HTTP_REQUEST_TIMEOUT"

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
        from mlflow.utils.logging_utils import suppress_logs_in_thread

        self._quiet = suppress_logs_in_thread
        self._artifacts: Path | None = None
        alone: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
        if (sqlite := SQLITE.match(uri)) is not None:
            database = Path(sqlite["path"]).absolute()
            database.parent.mkdir(parents=True, exist_ok=True)
            # Two studies that begin at once would both make its tables.
            alone = own_lock(database.with_name(f".{database.name}.lock"), timeout=120)
            # MLflow's own default is a folder in the working directory.
            self._artifacts = database.with_name("mlartifacts")
        self._arms: dict[str, str] = {}  # arm -> run
        self._written: dict[str, tuple[str, str]] = {}  # trial -> run, and its status in trials.csv
        self._study = StudyFile()
        with alone, self._quiet():
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
        self._study = read_study(folder)
        with self._quiet():
            self._describe()
            if not folder.exists(files.TRIALS):
                return 0
            trials = files.read_trials(folder)
            missing = [
                {str(name): value for name, value in row.items()}
                for row in trials[trials["status"].isin(list(RUN_STATUS))].to_dict("records")
                if self._written.get(row["trial_id"], ("", ""))[1] != row["status"]
            ]
            # Where it cannot be read, which its study says, runs go without their curves.
            history, why = files.rows_or_why(folder, files.HISTORY) if missing else (pd.DataFrame(), "")
            if missing and not (last or why):  # curves are written less often than rows: whole at the end
                drawn = history.groupby("trial_id")["epoch"].max() if "epoch" in history else pd.Series()
                ran = {row["trial_id"]: values.number(row["epochs"]) or 0.0 for row in missing}
                missing = [row for row in missing if drawn.get(row["trial_id"], -1) >= ran[row["trial_id"]]]
            for row in missing:
                self._write(row, history[history["trial_id"] == row["trial_id"]])
            if last:
                self._end(folder, trials)
        return len(missing)

    def _describe(self) -> None:
        """Write what was asked, and on what, as params of the parent; what changed since as tags."""
        from mlflow.entities import Param, RunTag

        document = self._study.as_json()
        texts = values.as_params(values.flat({name: document[name] for name in ("request", "environment")}))
        there = self._client.get_run(self._parent).data
        params = [Param(name, text) for name, text in texts.items() if name not in there.params]
        told = {**texts, **there.params, **there.tags}
        changed = {name: text for name, text in texts.items() if told[name] != text}
        tags = [RunTag(*tag) for tag in {**changed, **_source(self._study)}.items()]
        self._client.log_batch(self._parent, params=params, tags=tags)
        view = values.runs_view(self._key, self._study.request.metric)
        self._client.set_experiment_tag(self._experiment, VIEW + self._key, view)

    def _create(
        self, kind: str, name: str, tags: Mapping[str, str], *, parent: str = "", begin: int | None = None
    ) -> str:
        tags = {**tags, **_source(self._study), "adalayers.kind": kind, "adalayers.study": self._key}
        arms = [each.name for each in self._study.request.arms]
        if (arm := tags.get("arm")) in arms:
            tags["mlflow.runColor"] = COLOURS[arms.index(arm) % len(COLOURS)]
        tags |= {"mlflow.parentRunId": parent} if parent else {}
        run = self._client.create_run(self._experiment, start_time=begin, tags=tags, run_name=name)
        return str(run.info.run_id)

    def _write(self, row: Mapping[str, Any], history: pd.DataFrame) -> None:
        """Write the run of a trial."""
        from mlflow.entities import Metric, Param

        trial_id, status = str(row["trial_id"]), str(row["status"])
        end = int(time.time() * 1000)
        begin = end - int(1000 * (values.number(row.get("seconds")) or 0.0))
        if run_id := self._written.get(trial_id, ("", ""))[0]:
            # Half written by a process that died, or of a trial that was tried again: params cannot be changed and
            # points would be doubled, so it is written from the start.
            self._client.delete_run(run_id)
        parent, name, data = self._parent, f"search {trial_id}", values.data_params(self._study)
        params = {name: Param(name, text) for name, text in {**data, **values.params_of(row)}.items()}
        said = {name: values.text(row.get(name)) for name in ("stage", "arm", "status", "error")}
        tags = {name: text[: values.TAG_LENGTH] for name, text in said.items() if text}
        tags["adalayers.trial_id"] = trial_id
        if said["stage"] == "confirm" and (arm := said["arm"]):
            name = f"{arm} seed {values.text(row.get('seed')):0>3}"  # runs stand by arm and seed
            if arm not in self._arms:
                self._arms[arm] = self._create("arm", arm, {"arm": arm}, parent=parent, begin=begin)
                own = (key.removeprefix("config/") for key in row if key.startswith("config/"))
                shared = {*data, "arm", "fusion", *map(values.mlflow_name, own)} & params.keys()
                self._client.log_batch(self._arms[arm], params=[params[key] for key in sorted(shared)])
            parent = self._arms[arm]
        run_id = self._create("trial", name, tags, parent=parent, begin=begin)
        metrics = [Metric(name, value, end, 0) for name, value in values.finals_of(row).items()]
        for name, points in values.series_of(history).items():
            metrics += [Metric(name, value, end, step) for step, value in points]  # history keeps no clock
        self._client.log_batch(run_id, metrics, list(params.values()))
        self._client.set_terminated(run_id, RUN_STATUS[status], end_time=end)
        self._written[trial_id] = (run_id, status)

    def _end(self, folder: Folder, trials: pd.DataFrame) -> None:
        """Write the folder's files and what the arms scored, and end the parent run."""
        from mlflow.entities import Metric

        with tempfile.TemporaryDirectory(prefix="adalayers-") as staged:
            for name in _artifacts(folder):
                target, content = Path(staged, name), folder.read_bytes(name)
                target.parent.mkdir(parents=True, exist_ok=True)
                if name.endswith(_READABLE):
                    content = clean(content.decode(errors="replace")).encode()
                target.write_bytes(content)
            ours = os.environ.get(_TIMEOUT) == environ.DEFAULTS[_TIMEOUT]
            patience = {_TIMEOUT: "120"} if ours else {}  # a server answers once it holds a file
            with environ.inherited(patience):
                self._client.log_artifacts(self._parent, staged)
            report = Path(staged, files.REPORT)
            note = report.read_text(encoding="utf-8")[:_NOTE] if report.exists() else ""
        self._client.set_tag(self._parent, "mlflow.note.content", note)
        results, now = StudyResults(folder), int(time.time() * 1000)
        for row in results.arms.to_dict("records"):
            if run_id := self._arms.get(str(row["arm"])):
                score = f"{row['split']}/{results.study.request.metric}"
                told = {score: "mean", f"{score} low": "low", f"{score} high": "high", "n": "n"}
                found = {values.mlflow_name(name): values.number(row[key]) for name, key in told.items()}
                metrics = [Metric(name, x, now, int(row["n"])) for name, x in found.items() if x is not None]
                self._client.log_batch(run_id, metrics)
                self._client.set_terminated(run_id)
        lost = len(trials) and trials["status"].isin(["failed", "diverged"]).all()
        ended = "FINISHED" if self._study.runs.state == "finished" else "KILLED"
        self._client.set_terminated(self._parent, "FAILED" if lost else ended)

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
            restore = f"mlflow experiments restore --experiment-id {experiment.experiment_id}"
            raise BadInput(f"its experiment {name!r} was deleted; `{restore}` brings it back")
        return str(experiment.experiment_id)

    def _find_runs(self, run_name: str) -> None:
        """Find or make the study's run; find those of its arms and trials."""
        own = f"tags.`adalayers.study` = '{self._key}'"
        found = self._client.search_runs([self._experiment], own, max_results=_MOST_RUNS)
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
            self._parent = self._create("study", run_name, {})
            return
        self._parent = parents[0].info.run_id
        if parents[0].info.status != "RUNNING":
            self._client.update_run(self._parent, status="RUNNING")


_REFUSALS = ("UNAUTHENTICATED", "PERMISSION_DENIED", "ENDPOINT_NOT_FOUND", "INVALID_PARAMETER_VALUE")


def is_refusal(error: Exception, uri: str) -> bool:
    """Say whether a server or database refuses, and will do so again; else it may answer later."""
    if isinstance(error, OSError):
        return False
    said = str(error)
    mended = isinstance(error, BadInput | ImportError) or getattr(error, "error_code", "") in _REFUSALS
    own_file = SQLITE.match(uri) is not None and "is locked" not in said
    return mended or own_file or "database schema" in said


def _source(study: StudyFile) -> dict[str, str]:
    """Return MLflow's own tags that say by what a study was run: its script, and the commit."""
    script = next((word for word in study.request.command.split() if word.endswith(".py")), "")
    commit = study.environment.git.commit or ""
    tags = {"source.type": "LOCAL", "source.name": clean(script), "source.git.commit": commit}
    return {f"mlflow.{name}": text for name, text in tags.items() if text}


def _artifacts(folder: Folder) -> list[str]:
    inside = [f"{name}/{file}" for name in _ARTIFACT_FOLDERS for file in folder.names(name)]
    return [name for name in (*_ARTIFACTS, *inside) if not name.endswith(".partial") and folder.exists(name)]
