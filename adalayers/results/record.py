"""The record of a running study: its results folder, kept up to date as trials end.

Trials leave what they did in `work/<trial_id>/`; `StudyRecord` alone merges it into the study's files. After a
kill at any moment the folder holds all that is needed to go on: ended trials whose files were not merged yet
are merged when the record is opened again, others continue from their checkpoints. Damage is taken the same way:
what a trial under way has left and cannot be read is made again, and what is lost for good is said.
"""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Collection
from dataclasses import dataclass, field

import pandas as pd

from adalayers.errors import BadInput
from adalayers.results import files as results
from adalayers.results.files import BEST, EVALUATIONS, FINISHED, HISTORY, PREDICTIONS, TRIALS, WORK
from adalayers.results.trial_row import Cell, TrialRow, read_trial_rows, require_scores
from adalayers.storage.folder import Folder
from adalayers.study import TRIAL_ID

logger = logging.getLogger(__name__)

PROGRESS = "progress.json"
DAMAGED = ".damaged"
"""What a file is called, behind its name, that could not be read and was replaced."""
ADVICE = "restore it from a copy, begin another study with --label NAME, or set this one aside with --fresh"
WRITE_SHARE = 0.05
"""Most of the time that may go into rewriting files of many rows a trial as trials end; at the end they are whole."""


class StudyRecord:
    """Rows, history, predictions and evaluations of a study, in memory and in its folder.

    Args:
        folder: the study's results folder.
        metric: the selection metric without prefix; higher is better.

    Attributes:
        written: whether all that it knows is in the study's files; else rows by trial are in the trials' folders.
        rows: trial_id -> row of `trials.csv`, in the order in which trials began.

    Raises:
        BadInput: `trials.csv` cannot be read, or names trials as no study does.
    """

    def __init__(self, folder: Folder, metric: str):
        self.folder, self.metric = folder, metric
        self.rows: dict[str, TrialRow] = {}
        self._frames: dict[str, dict[str, pd.DataFrame]] = {}
        self._merged: list[str] = []
        self._wrote_at = self._took = 0.0
        self.written = True
        self._read()

    def _read(self) -> None:
        if self.folder.exists(TRIALS):
            for trial_id, row in read_trial_rows(self.folder, advice=ADVICE).items():
                self.rows[_checked(trial_id, self.folder)] = row
            require_scores(self.folder, self.rows.values(), advice=ADVICE)
        for name in (HISTORY, PREDICTIONS, EVALUATIONS):
            frame, why = results.rows_or_why(self.folder, name)
            if why:
                self.folder.move(name, self.folder.child(f"{name}{DAMAGED}"))
                logger.warning(
                    f"{name} in {self.folder.uri} could not be read ({why}) and is now {name}{DAMAGED}: what it held "
                    f"of the trials that have ended is lost, {TRIALS} is not; put a copy back to have it again"
                )
            self._frames[name] = {str(key): rows for key, rows in frame.groupby("trial_id", sort=False)}
        for name in (BEST, WORK):
            self.folder.child(name).check()
        left = [trial_id for trial_id in self.folder.names(WORK) if TRIAL_ID.fullmatch(trial_id)]
        for trial_id in left:
            self.work(trial_id).check()
        self._to_retry = {key for key, row in self.rows.items() if row.status == "failed"}
        for trial_id in left:
            if trial_id in self.rows:
                self._recover(trial_id)

    def _recover(self, trial_id: str) -> None:
        """Merge a trial that ended but was not merged before the last run was killed.

        One that left something which cannot be read goes on from its checkpoint, unless its row is written.
        """
        row, work = self.rows[trial_id], self.work(trial_id)
        left = _left(work)
        if left.damaged:
            lost = "what its row lacks is lost" if row.finished else "it goes on from its checkpoint"
            logger.warning(f"trial {trial_id} left {left.damaged}, which cannot be read: {lost}")
            work.delete(PROGRESS)
        epochs = {row.found.get("epochs"), left.row.get("epochs")} - {None}
        if row.finished and (not left.status or len(epochs) > 1):
            # Merged and half deleted, or left by a worker that outlived its driver.
            self._merged.append(trial_id)
        elif row.finished or left.status in FINISHED:
            self.end(trial_id, left.status)

    def work(self, trial_id: str) -> Folder:
        """Return the folder where a trial leaves its progress and its checkpoint."""
        _checked(trial_id, self.folder)
        return self.folder.child(f"{WORK}/{trial_id}")

    def finished(self, trial_id: str) -> bool:
        return trial_id in self.rows and self.rows[trial_id].finished

    def ended(self, trial_id: str) -> bool:
        """Return whether a trial has ended; one that failed in an earlier run has to be tried again."""
        ended = trial_id in self.rows and self.rows[trial_id].status != "unfinished"
        return ended and trial_id not in self._to_retry

    def score(self, trial_id: str) -> float | None:
        """Return the trial's best validation score, None where it has none."""
        return self.rows[trial_id].score(self.metric)

    def begin(self, *rows: TrialRow) -> None:
        """Note trials that are about to run."""
        self.rows.update({row.trial_id: row for row in rows})
        self._write_trials()

    def end(self, trial_id: str, status: str | None = None, error: str = "") -> TrialRow:
        """Merge a trial that ended and return its row.

        status: as the scheduler or Ray saw it; None: as the trial itself says
        """
        work = self.work(trial_id)
        self._to_retry.discard(trial_id)
        left = _left(work)
        if left.damaged:
            status, error = "failed", f"it left {left.damaged}, which cannot be read"
        row = self.rows[trial_id]
        if not row.finished:  # it never changes
            self.rows[trial_id] = row = dataclasses.replace(
                row,
                status=status or left.status or "unfinished",
                error=error or left.error,
                found={**row.found, **left.row},
            )
        for name, frame in left.frames.items():
            self._frames[name][trial_id] = frame.assign(trial_id=trial_id)
        if self.best() == trial_id and work.exists(BEST):
            for name in work.names(BEST):
                self.folder.write_bytes(f"{BEST}/{name}", work.read_bytes(f"{BEST}/{name}"))
        if row.finished:
            self._merged.append(trial_id)
        self.write(everything=False)
        return row

    def history(self, trial_id: str) -> pd.DataFrame:
        """Return a trial's rows of `history.parquet`, of one under way what it has left; empty where it has none."""
        known = self._frames[HISTORY].get(trial_id)
        if known is None and not self.ended(trial_id):
            known = _left(self.work(trial_id)).frames.get(HISTORY)
        return (pd.DataFrame({"trial_id": []}) if known is None else known).assign(trial_id=trial_id)

    def best(self, among: Collection[str] | None = None, *, stage: str | None = None) -> str | None:
        """Return the completed trial with the best validation score, ties to the smallest id; None without any.

        Args:
            among: Of these ids; None: of all.
            stage: Of one; None: of all.
        """
        scored = [
            (-score, trial_id)
            for trial_id, row in self.rows.items()
            if row.status == "completed"
            and stage in (None, row.stage)
            and (among is None or trial_id in among)
            and (score := self.score(trial_id)) is not None
        ]
        return min(scored)[1] if scored else None

    def best_score(self) -> float | None:
        """Return the best validation score of all completed trials, None without any."""
        return None if (best := self.best()) is None else self.score(best)

    def write(self, *, everything: bool = True) -> None:
        """Write the study's files: `trials.csv` at once, the others now or when their time share allows."""
        self._write_trials()
        now = time.monotonic()
        if not everything and self._took > WRITE_SHARE * (now - self._wrote_at):
            self.written = False
            return
        for name, by_trial in self._frames.items():
            frames = [by_trial[trial_id] for trial_id in self.rows if trial_id in by_trial]
            if frames:
                frame = pd.concat(frames, ignore_index=True)
                frame.insert(0, "trial_id", frame.pop("trial_id"))
                self.folder.write_parquet(name, frame)
        for trial_id in self._merged:
            self.folder.delete(f"{WORK}/{trial_id}")
        self._merged.clear()
        if self.folder.exists(WORK) and not self.folder.names(WORK):
            self.folder.delete(WORK)
        self._wrote_at, self.written = time.monotonic(), True
        self._took = self._wrote_at - now

    def _write_trials(self) -> None:
        results.write_trials(self.folder, [row.cells() for row in self.rows.values()])


@dataclass(frozen=True)
class _Left:
    """What a trial has left: how it stands ("": nothing), its columns, and its rows by file.

    damaged: the file that cannot be read, of a trial that has left one; then there is nothing else
    """

    status: str = ""
    error: str = ""
    row: dict[str, Cell] = field(default_factory=dict)
    frames: dict[str, pd.DataFrame] = field(default_factory=dict)
    damaged: str = ""


def _left(work: Folder) -> _Left:
    name, left = PROGRESS, _Left()
    try:
        if work.exists(PROGRESS):
            progress = work.read_sealed(PROGRESS)
            history = pd.DataFrame(progress["history"])
            frames = {HISTORY: history} if len(history) else {}
            left = _Left(str(progress["status"]), str(progress["error"]), dict(progress["row"]), frames)
        for name in (PREDICTIONS, EVALUATIONS):
            if work.exists(name):
                left.frames[name] = work.read_parquet(name)
    except Exception:  # there is no end to what a damaged file makes its readers raise
        return _Left(damaged=name)
    return left


def _checked(trial_id: str, folder: Folder) -> str:
    """Return an id that a folder may be named by. Raises `BadInput` for any other."""
    if not TRIAL_ID.fullmatch(trial_id):
        raise BadInput(
            f"wanted trial ids as studies write them in {folder.uri}/{TRIALS} (t and 12 hexadecimal digits), got "
            f"{trial_id!r}; remove that row, or set the folder aside with --fresh"
        )
    return trial_id
