"""The record of a running study: its results folder, kept up to date as trials end.

Trials leave what they did in `work/<trial_id>/`; `StudyRecord` alone merges it into the study's files. After a
kill at any moment the folder holds all that is needed to go on: ended trials whose files were not merged yet
are merged when the record is opened again, others continue from their checkpoints.
"""

from __future__ import annotations

import time
from typing import Any

import pandas as pd

from adalayers.results import files as results
from adalayers.results.files import BEST, EVALUATIONS, FINISHED, HISTORY, PREDICTIONS, STUDY, TRIALS, WORK
from adalayers.results.folder import Folder

PROGRESS = "progress.json"
WRITE_SHARE = 0.05
"""Most of the time that may go into rewriting history and predictions as trials end; at the end they are whole."""


class StudyRecord:
    """Rows, history, predictions and evaluations of a study, in memory and in its folder.

    metric: the selection metric without prefix; higher is better
    rows:   trial_id -> row of `trials.csv`, in the order in which trials began
    """

    def __init__(self, folder: Folder, metric: str):
        self.folder, self.metric = folder, metric
        self.rows: dict[str, dict[str, Any]] = {}
        self._frames: dict[str, dict[str, pd.DataFrame]] = {
            name: {} for name in (HISTORY, PREDICTIONS, EVALUATIONS)
        }
        self._merged: list[str] = []
        self._written = self._took = 0.0
        self._read()

    def _read(self) -> None:
        if self.folder.exists(TRIALS):
            for row in results.read_trials(self.folder).to_dict("records"):
                self.rows[row["trial_id"]] = {
                    str(key): value for key, value in row.items() if not pd.isna(value)
                }
        for name, held in self._frames.items():
            if self.folder.exists(name):
                frame = self.folder.read_parquet(name)
                held.update({str(key): rows for key, rows in frame.groupby("trial_id", sort=False)})
        for trial_id in self.folder.names(WORK):
            self._recover(trial_id)

    def _recover(self, trial_id: str) -> None:
        """Merge a trial that ended but was not merged before the last run was killed."""
        work = self.work(trial_id)
        if trial_id not in self.rows or not work.exists(PROGRESS):
            return
        status = self.rows[trial_id]["status"]
        ended = status if status in FINISHED else work.read_json(PROGRESS)["status"]
        if ended in FINISHED:
            self.end(trial_id, ended)

    def work(self, trial_id: str) -> Folder:
        """Return the folder where a trial leaves its progress and its checkpoint."""
        return self.folder.child(f"{WORK}/{trial_id}")

    def finished(self, trial_id: str) -> bool:
        return trial_id in self.rows and self.rows[trial_id]["status"] in FINISHED

    def score(self, trial_id: str) -> float | None:
        """Return the trial's best validation score, None where it has none."""
        value = self.rows[trial_id].get(f"val/{self.metric}")
        return None if value is None else float(value)

    def begin(self, trial_id: str, row: dict[str, Any]) -> None:
        """Note in `trials.csv` a trial that is about to run: what determines it, as its columns."""
        self.rows[trial_id] = {"trial_id": trial_id, **row, "status": "unfinished", "error": ""}
        results.write_trials(self.folder, self.rows.values())

    def end(self, trial_id: str, status: str | None = None, error: str = "") -> dict[str, Any]:
        """Merge a trial that ended and return its row.

        status: as the scheduler or Ray saw it; None: as the trial itself says
        """
        work = self.work(trial_id)
        progress = work.read_json(PROGRESS) if work.exists(PROGRESS) else {}
        status = status or progress.get("status", "unfinished")
        kept = {
            key: self.rows[trial_id][key] for key in self.rows[trial_id] if key not in ("status", "error")
        }
        row = {
            **kept,
            **progress.get("row", {}),
            "status": status,
            "error": error or progress.get("error", ""),
        }
        self.rows[trial_id] = row
        if progress.get("history"):
            self._frames[HISTORY][trial_id] = pd.DataFrame(progress["history"]).assign(trial_id=trial_id)
        for name in (PREDICTIONS, EVALUATIONS):
            if work.exists(name):
                self._frames[name][trial_id] = work.read_parquet(name).assign(trial_id=trial_id)
        if status == "completed" and self.best() == trial_id and work.exists(BEST):
            for name in work.names(BEST):
                self.folder.write_bytes(f"{BEST}/{name}", work.read_bytes(f"{BEST}/{name}"))
        if status in FINISHED:
            self._merged.append(trial_id)
        self.write(everything=False)
        return row

    def history(self, trial_id: str) -> pd.DataFrame:
        """Return a trial's rows of `history.parquet`, empty where it has none."""
        return self._frames[HISTORY].get(trial_id, pd.DataFrame({"trial_id": []}))

    def best(self, stage: str | None = None, search: str | None = None) -> str | None:
        """Return the completed trial with the best validation score, ties to the smallest id; None without any.

        stage, search: of those alone; None: of all
        """
        scored = [
            (-score, trial_id)
            for trial_id, row in self.rows.items()
            if row["status"] == "completed"
            and stage in (None, row["stage"])
            and search in (None, row.get("search", ""))
            and (score := self.score(trial_id)) is not None
        ]
        return min(scored)[1] if scored else None

    def write(self, *, everything: bool = True) -> None:
        """Write `trials.csv` now; history and predictions now, or when their time share allows."""
        results.write_trials(self.folder, self.rows.values())
        now = time.monotonic()
        if not everything and self._took > WRITE_SHARE * (now - self._written):
            return
        for name, held in self._frames.items():
            frames = [held[trial_id] for trial_id in self.rows if trial_id in held]
            if frames:
                self.folder.write_parquet(name, _first_columns(pd.concat(frames, ignore_index=True)))
        for trial_id in self._merged:
            self.folder.delete(f"{WORK}/{trial_id}")
        self._merged.clear()
        if not self.folder.names(WORK):
            self.folder.delete(WORK)
        self._written = time.monotonic()
        self._took = self._written - now

    def write_study(self, study: dict[str, Any]) -> None:
        self.folder.write_json(STUDY, study)


def _first_columns(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[["trial_id", *(column for column in frame.columns if column != "trial_id")]]
