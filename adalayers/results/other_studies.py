"""Trials that another study next to this one has trained: the same trial is not trained twice.

The id of a trial is a hash of all that its numbers follow from, so a row of another study with the same id is its row.
It is taken where the other study ran on the same kind of machine, and with all that the study keeps of a trial.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import pandas as pd

from adalayers.errors import BadInput
from adalayers.results.files import (
    BEST,
    EVALUATIONS,
    HISTORY,
    PREDICTIONS,
    STUDY,
    TRIALS,
    read_rows,
    read_trials,
)
from adalayers.results.record import PROGRESS
from adalayers.results.study_file import read_study
from adalayers.storage.folder import Folder

CONFIG, WEIGHTS = "config.json", "model.safetensors"
TAKEN_FROM = "taken_from"
"""Column of `trials.csv`: the study that trained the trial, as <study>/<name>; empty for those of the study itself."""

_OWN = ("trial_id", "stage", "arm", "search", "status", "error", "seed", "fusion", "train_examples", "draw")


@dataclass(frozen=True)
class _Trained:
    """A trial of another study: its row there, that study's folder, and the variants that its models were scored as."""

    folder: Folder
    row: dict[str, Any]
    variants: Collection[str]
    has_model: bool


class OtherStudies:
    """The confirmed trials of other studies of the same backbone and dataset below the same results root.

    Args:
        folder: The study's own results folder, `<root>/<study>/<name>`.
        case: What names of folders of the same backbone and dataset begin with.
        machine: As `EnvironmentRecord.machine` says it.
        metric: The selection metric without prefix.
        wanted: Ids of the trials that the study may confirm.
    """

    def __init__(self, folder: Folder, *, case: str, machine: str, metric: str, wanted: Collection[str]):
        self._trained: dict[str, _Trained] = {}
        self._frames: dict[tuple[str, str], pd.DataFrame] = {}
        root = folder.parent().parent()
        for study in root.names():
            if study == folder.parent().name:  # one of the same kind is there to be run by itself
                continue
            with contextlib.suppress(OSError, BadInput):  # a folder that is not ours to read
                for name in root.names(study):
                    if name == case or name.startswith(f"{case}-"):
                        self._look(root.child(study).child(name), machine, wanted)
        # `best/` holds the best model: where it would be that of a trial whose model is gone, that one is trained.
        scores = {key: trial.row.get(f"val/{metric}", float("-inf")) for key, trial in self._trained.items()}
        best = min(scores, key=lambda key: (-scores[key], key), default=None)
        if best is not None and not self._trained[best].has_model:
            del self._trained[best]

    def _look(self, folder: Folder, machine: str, wanted: Collection[str]) -> None:
        try:
            if not (folder.exists(STUDY) and folder.exists(TRIALS)):
                return
            document, _ = read_study(folder)
            if document.environment.machine != machine:
                return
            trials = read_trials(folder)
            model = _model_of(folder)
        except (BadInput, OSError, ValueError, AttributeError):  # its own command says so
            return
        there = trials[
            (trials["stage"] == "confirm")
            & (trials["status"] == "completed")
            & trials["trial_id"].isin(list(wanted))
        ]
        for row in there.to_dict("records"):
            trial_id = str(row["trial_id"])
            kept = {str(key): value for key, value in row.items() if not pd.isna(value)}
            trained = _Trained(folder, kept, document.request.variants.keys(), trial_id == model)
            self._trained.setdefault(trial_id, trained)

    @property
    def ids(self) -> Collection[str]:
        """Ids of the trials that can be taken."""
        return self._trained.keys()

    def take(self, trial_id: str, work: Folder, *, variants: Collection[str]) -> bool:
        """Leave in `work` what the trial left where it was trained, as its worker would; return whether it is there.

        Args:
            trial_id: The trial.
            work: The folder where the study's own trial would leave it.
            variants: Names of the variants that its model must have been scored as.
        """
        trained = self._trained.pop(trial_id, None)
        if trained is None or not set(variants) <= set(trained.variants):
            return False
        history, predictions, evaluations = (
            self._rows(trained.folder, name, trial_id) for name in (HISTORY, PREDICTIONS, EVALUATIONS)
        )
        if history.empty or predictions.empty or (variants and evaluations.empty):
            return False
        # That study may be running, and have another best by now.
        model = _model_of(trained.folder) if trained.has_model else None
        if trained.has_model and model != trial_id:
            return False
        work.write_parquet(PREDICTIONS, predictions.drop(columns="trial_id"))
        if variants:
            scored = evaluations[evaluations["variant"].isin(list(variants))]
            work.write_parquet(EVALUATIONS, scored.drop(columns="trial_id"))
        if trained.has_model:
            for name in (CONFIG, WEIGHTS):
                work.write_bytes(f"{BEST}/{name}", trained.folder.read_bytes(f"{BEST}/{name}"))
        row = {
            key: value
            for key, value in trained.row.items()
            if key not in (*_OWN, TAKEN_FROM) and not key.startswith("config/")
        }
        source = trained.row.get(TAKEN_FROM) or f"{trained.folder.parent().name}/{trained.folder.name}"
        rows = [
            {str(key): value for key, value in evaluation.items() if key != "trial_id" and not pd.isna(value)}
            for evaluation in history.to_dict("records")
        ]
        progress = {"status": "completed", "error": "", "row": row | {TAKEN_FROM: source}}
        work.write_json(PROGRESS, progress | {"history": rows})
        return True

    def _rows(self, folder: Folder, name: str, trial_id: str) -> pd.DataFrame:
        """Return the rows of one trial in a file of another study, none where the file cannot be read."""
        key = (folder.address, name)
        if key not in self._frames:
            try:
                self._frames[key] = read_rows(folder, name)
            except (BadInput, OSError):  # missing or damaged: the trial is trained instead
                self._frames[key] = pd.DataFrame({"trial_id": []})
        frame = self._frames[key]
        return frame[frame["trial_id"] == trial_id]


def _model_of(folder: Folder) -> str | None:
    """Return the trial whose model a study has in `best/`, None where it has none."""
    if not all(folder.exists(f"{BEST}/{name}") for name in (CONFIG, WEIGHTS)):
        return None
    trial_id: str | None = folder.read_json(f"{BEST}/{CONFIG}").get("trial_id")
    return trial_id
