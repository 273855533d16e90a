"""Trials that another study next to this one has trained: the same trial is not trained twice.

The id of a trial is a hash of all that its numbers follow from but code, packages and machine. A row of another study
with the same id is taken where that study had the same of these, where its predictions are of the very examples and
labels that are read here and give its scores, and with all that the study keeps of a trial. What is passed over is
named.
"""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

import pandas as pd

from adalayers.errors import BadInput
from adalayers.results import files
from adalayers.results.record import PROGRESS
from adalayers.results.rescoring import contradicted
from adalayers.results.study_file import EnvironmentRecord, StudyFile, read_study
from adalayers.results.trial_row import TAKEN_COMMIT, TAKEN_FROM, TrialRow, read_trial_rows, require_scores
from adalayers.storage.folder import Folder
from adalayers.storage.redaction import reason

logger = logging.getLogger(__name__)

CONFIG, WEIGHTS = "config.json", "model.safetensors"
UNCOMMITTED = "with uncommitted changes"

Gold = Mapping[str, pd.DataFrame]
"""Split, `val` or `test` -> the `index` and `label` of its examples, as `predictions.parquet` has them."""


@dataclass(frozen=True)
class _Trained:
    """A trial of another study: its row there, that study's folder, its commit, and whether `best/` is its model."""

    folder: Folder
    row: TrialRow
    commit: str
    has_model: bool

    @property
    def scored(self) -> dict[str, object]:
        """What two studies must have alike of one trial."""
        return {**self.row.scores, "predictions": self.row.found["predictions"]}


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What a study wants of others.

    Attributes:
        ids: Of the trials that it may confirm.
        environment: On what it runs.
        metric: The selection metric without prefix.
        variants: Names of the variants that a model must have been scored as.
        gold: Returns the examples that trials are scored on.
    """

    ids: Collection[str]
    environment: EnvironmentRecord
    metric: str
    variants: Collection[str]
    gold: Callable[[], Gold]


class OtherStudies:
    """The confirmed trials of other studies of the same backbone and dataset below the same results root.

    Args:
        folder: The study's own results folder, `<root>/<study>/<name>`.
        case: What names of folders of the same backbone and dataset begin with.
        wanted: What is looked for.
    """

    def __init__(self, folder: Folder, *, case: str, wanted: Wanted):
        self._trained: dict[str, _Trained] = {}
        self._wanted, self._gold = wanted, functools.cache(wanted.gold)
        self._read = functools.cache(files.rows_or_why)
        found: dict[str, list[_Trained]] = {}
        for study in _beside(folder, case) if wanted.environment.software and wanted.ids else ():
            for trained in self._of_study(study, folder.parent().name):
                found.setdefault(trained.row.trial_id, []).append(trained)
        for trial_id, (first, *others) in found.items():
            if other := next((trained for trained in others if trained.scored != first.scored), None):
                _pass_over(other.folder, f"{_source(first.folder)} has other scores of trial {trial_id}")
            else:
                self._trained[trial_id] = next((own for own in (first, *others) if own.has_model), first)

    def _of_study(self, folder: Folder, own_study: str) -> Iterator[_Trained]:
        """Yield the trials of a study that can be taken."""
        wanted = self._wanted
        try:
            if not (folder.exists(files.STUDY) and folder.exists(files.TRIALS)):
                return
            document = read_study(folder)
            rows = read_trial_rows(folder)
            require_scores(folder, rows.values())
            model = _model_of(folder)
        except Exception as error:  # there is no end to what damaged files make their readers raise
            _pass_over(folder, reason(error, folder.address))
            return
        if document.study == own_study:  # a copy of one, under another name
            return
        there = [row for row in rows.values() if row.confirmed and row.trial_id in wanted.ids]
        known = {run.software for run in document.runs.history if run.confirmed}
        if there and not known == {document.environment.software} == {wanted.environment.software}:
            _pass_over(folder, "its code, packages or machine are not the same")
        elif there and document.environment.dataset.fingerprint != wanted.environment.dataset.fingerprint:
            _pass_over(folder, "its examples, their splits or groups are not the same")
        elif there and document.request.metric != wanted.metric:
            _pass_over(folder, f"its trials were stopped and chosen by {document.request.metric}")
        elif there and not {*wanted.variants} <= document.request.variants.keys():
            _pass_over(folder, "its models were not scored as all variants of this study")
        else:
            for row in there:
                if why := next(self._doubts(folder, row), ""):
                    _pass_over(folder, f"trial {row.trial_id}: {why}")
                else:
                    yield _Trained(folder, row, _commit(document, row), row.trial_id == model)

    def _doubts(self, folder: Folder, row: TrialRow) -> Iterator[str]:
        """Yield why a trial of another study is not taken; nothing where it is."""
        wanted, gold = self._wanted, self._gold()
        for name in ("predictions", *(f"{split}/{wanted.metric}" for split in gold)):
            if name not in row.found:
                yield f"it has no {name}"
        for name in (files.HISTORY, *([files.EVALUATIONS] if wanted.variants else [])):
            if self._rows(folder, row.trial_id, name).empty:
                yield f"it has no rows in {name}"
        predictions = self._rows(folder, row.trial_id, files.PREDICTIONS)
        if not {"split", "index", "label", "prediction"} <= {*predictions}:
            yield f"it has no predictions in {files.PREDICTIONS}"
        for split, examples in gold.items():
            rows = predictions[predictions["split"] == split].sort_values("index", kind="stable")
            for name in ("index", "label"):
                if files.answers(rows[name]).tolist() != files.answers(examples[name]).tolist():
                    yield f"its predictions on {split} are of other examples or labels"
            yield from contradicted(row.found, rows, split, wanted.environment.dataset, strict=True)

    @property
    def ids(self) -> Collection[str]:
        """Ids of the trials that can be taken."""
        return self._trained.keys()

    def take(self, trial_id: str, work: Folder, best: float | None = None) -> bool:
        """Leave in `work` what the trial left where it was trained, as its worker would; return whether it is there.

        Args:
            trial_id: The trial.
            work: The folder where the study's own trial would leave it.
            best: The study's best score so far: `best/` holds that trial's model, so that one which is not below it
                is taken with its model alone.
        """
        trained = self._trained.pop(trial_id, None)
        # That study may be running, and have another best by now.
        if trained is None or (trained.has_model and _model_of(trained.folder) != trial_id):
            return False
        score = trained.row.score(self._wanted.metric)
        if not trained.has_model and (best is None or score is None or score >= best):
            return False
        left = functools.partial(self._rows, trained.folder, trial_id)
        work.write_parquet(files.PREDICTIONS, left(files.PREDICTIONS).drop(columns="trial_id"))
        if self._wanted.variants:
            scored = left(files.EVALUATIONS)
            scored = scored[scored["variant"].isin(list(self._wanted.variants))]
            work.write_parquet(files.EVALUATIONS, scored.drop(columns="trial_id"))
        if trained.has_model:
            for name in (CONFIG, WEIGHTS):
                work.write_bytes(f"{files.BEST}/{name}", trained.folder.read_bytes(f"{files.BEST}/{name}"))
        # It stays where it first came from.
        row = {TAKEN_FROM: _source(trained.folder), TAKEN_COMMIT: trained.commit, **trained.row.found}
        rows = [
            {str(key): value for key, value in evaluation.items() if key != "trial_id" and not pd.isna(value)}
            for evaluation in left(files.HISTORY).to_dict("records")
        ]
        work.write_sealed(PROGRESS, {"status": "completed", "error": "", "row": row, "history": rows})
        return True

    def _rows(self, folder: Folder, trial_id: str, name: str) -> pd.DataFrame:
        """Return the rows of one trial in a file of another study, none where the file cannot be read."""
        frame, _ = self._read(folder, name)
        return frame[frame["trial_id"] == trial_id]


def _beside(folder: Folder, case: str) -> Iterator[Folder]:
    """Yield the folders of studies of other kinds, of the same backbone and dataset, below the same results root."""
    root = folder.parent().parent()
    for study in root.names():
        if study == folder.parent().name:  # one of the same kind is there to be run by itself
            continue
        with contextlib.suppress(OSError, BadInput):  # a folder that is not ours to read
            for name in root.names(study):
                if name == case or name.startswith(f"{case}-"):
                    yield root.child(study).child(name)


def _source(folder: Folder) -> str:
    return f"{folder.parent().name}/{folder.name}"


def _pass_over(folder: Folder, why: str) -> None:
    logger.warning(f"not taken over from {_source(folder)}: {why}")


def _commit(document: StudyFile, row: TrialRow) -> str:
    """Return the commit of the run that trained a row, as `TAKEN_COMMIT` has it."""
    runs = (run for run in document.runs.history if row.seed in run.seeds.get(row.arm, ()))
    code = next(runs, document.environment.git)
    return f"{code.commit or 'unknown'}{f' {UNCOMMITTED}' if code.dirty else ''}"


def _model_of(folder: Folder) -> str | None:
    """Return the trial whose model a study has in `best/`, None where it has none."""
    if not all(folder.exists(f"{files.BEST}/{name}") for name in (CONFIG, WEIGHTS)):
        return None
    trial_id: str | None = folder.read_json(f"{files.BEST}/{CONFIG}").get("trial_id")
    return trial_id
