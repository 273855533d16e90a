"""What studies have left, as pandas frames: `adalayers.results(folder)`. Files are read when they are asked for."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from adalayers.errors import BadInput
from adalayers.installed import own_module
from adalayers.results import files
from adalayers.results.study_file import StudyFile, read_study
from adalayers.results.trial_row import read_trial_rows, require_scores
from adalayers.storage.folder import Folder, damaged

logger = logging.getLogger(__name__)

_OF_TRIAL = ["trial_id", "stage", "arm", "seed"]
_DEPTH = 3
"""Folders between a results root and a study's own."""
_NUMBERS = {
    "n": int,
    **dict.fromkeys(("difference", "low", "high", "level", "at_most", "p_value", "p_adjusted"), float),
}
"""What of `claims.json` is a number, and of which kind."""


class StudyResults:
    """The results of one study. Columns that files have are described in docs/files.md.

    Attributes:
        folder: Its folder.
        study: `study.json` as typed records: the request, the environment, the runs.
        report: The path (or URI) of its page.
        arms: A row per arm, as the page has them: `arm`, `role`, `fusion`, `config/<factor>`, `metric` (the selection
            metric), `split`, and of that score `mean`, `low`, `high` (95% interval over seeds) and `n` (seeds); on
            validation `val_mean`, ...
        trials: `trials.csv`, a row per trial.
        claims: A row per planned comparison with its interval and verdict, made of the rows as `claims.json` is.
        curves: A row per evaluation while a trial trained: `trial_id`, `stage`, `arm`, `seed`, and of `history.parquet`
            `epoch`, `step`, `lr`, `train/loss`, `val/*`.
        weights: A row per hidden state wherever mix weights were noted: `trial_id`, `stage`, `arm`, `seed`, `epoch`,
            `step`, `state` ("01" is the first layer, "00" the embeddings), `weight`.
        predictions: A row per confirmed trial, split and example: `trial_id`, `stage`, `arm`, `seed`, and of
            `predictions.parquet` `split`, `index`, `label`, `prediction`, `score`.
    """

    def __init__(self, folder: Folder | str | Path):
        self.folder = files.study_folder(folder)

    @cached_property
    def study(self) -> StudyFile:
        return read_study(self.folder)

    @property
    def report(self) -> str:
        return f"{self.folder.uri}/{files.REPORT}"

    @cached_property
    def arms(self) -> pd.DataFrame:
        table: pd.DataFrame = self._evidence.arms.copy()
        for name in table.filter(regex="^config/").columns.intersection(self.trials.columns):
            table[name] = _as_type(table[name], self.trials[name].dtype)
        table.insert(table.columns.tolist().index("split"), "metric", self.study.request.metric)
        return table.drop(columns=["aliases", "mix"])

    @cached_property
    def trials(self) -> pd.DataFrame:
        require_scores(self.folder, read_trial_rows(self.folder).values())
        return files.read_trials(self.folder)

    @cached_property
    def claims(self) -> pd.DataFrame:
        return _claims([*self._evidence.claims, *self._evidence.omnibus])

    @cached_property
    def _evidence(self) -> Any:
        """What its pages are made of: `reports.evidence.evidence.Evidence`."""
        _ = self.trials  # a score that is no number is not left out of a mean without a word
        evidence, reading = own_module("reports.evidence.evidence"), own_module("reports.reading.load")
        return evidence.Evidence(reading.load(self.folder))

    @cached_property
    def curves(self) -> pd.DataFrame:
        columns = [name for name in map(str, self._history) if "/weight_" not in name]
        scores = [name for name in columns if name == "train/loss" or name.startswith("val/")]
        return self._history[columns].dropna(subset=scores, how="all").reset_index(drop=True)

    @cached_property
    def weights(self) -> pd.DataFrame:
        weights = [name for name in map(str, self._history) if "/weight_" in name]
        rows = self._history.melt([*_OF_TRIAL, "epoch", "step"], weights, "state", "weight")
        rows["state"] = rows["state"].str.replace(".*/weight_", "", regex=True)
        return rows.dropna(subset=["weight"]).reset_index(drop=True)

    @cached_property
    def predictions(self) -> pd.DataFrame:
        return self._rows(files.PREDICTIONS, ["split", "index", "label", "prediction", "score"])

    @cached_property
    def _history(self) -> pd.DataFrame:
        return self._rows(files.HISTORY, ["epoch", "step"])

    def _rows(self, name: str, columns: list[str]) -> pd.DataFrame:
        """Return a file of rows by trial, each with whose it is; without the file, these columns and no row."""
        if not self.folder.exists(name):
            return pd.DataFrame(columns=[*_OF_TRIAL, *columns])
        rows, why = files.rows_or_why(self.folder, name)
        if why:
            raise damaged(
                self.folder, name, why, lost="its rows cannot be shown", advice="restore it from a copy"
            )
        whose = rows[["trial_id"]].merge(self.trials[_OF_TRIAL], on="trial_id", how="left")
        return pd.concat([whose, rows.drop(columns=["trial_id"])], axis=1)

    def __repr__(self) -> str:
        judged = [*self._evidence.over_seeds, *self._evidence.omnibus]
        verdicts = Counter(claim.verdict for claim in judged if claim.verdict)
        summary = ", ".join(f"{n} {verdict}" for verdict, n in verdicts.most_common()) or "none"
        counted = f"{len(self.arms)} arms, {len(self.trials)} trials; comparisons: {summary}"
        return f"<{self.study.study}/{self.folder.name}: {counted}>"


def _of_all(name: str) -> cached_property[pd.DataFrame]:
    """Return a frame of all studies, made when it is asked for."""

    def frame(results: AllResults) -> pd.DataFrame:
        studies = results.studies.values()
        frames = [((study.study.study, study.folder.name), getattr(study, name)) for study in studies]
        return _joined(frames, ["study", "case"])

    return cached_property(frame)


class AllResults:
    """The results of all studies below a folder: the frames of `StudyResults`, each with whose rows they are in front.

    Attributes:
        studies: `StudyResults` by name, "alpha_lambda/minilm-cola".
        arms, trials, claims, curves, weights, predictions: Those of all studies, with the columns `study` and
            `case` (the name of its folder).
        across: A row per comparison between the cases of a study that has a cover, with the column `study`.
    """

    def __init__(self, folders: list[Folder]):
        self.studies: dict[str, StudyResults] = {}
        for study in map(StudyResults, folders):
            name = f"{study.study.study}/{study.folder.name}"
            if name in self.studies:
                raise BadInput(
                    f"wanted each study once, {name} is in {self.studies[name].folder.uri} and in {study.folder.uri}; "
                    "name one of the folders above them"
                )
            self.studies[name] = study

    @cached_property
    def across(self) -> pd.DataFrame:
        module, found = own_module("reports.evidence.across"), []
        covers: dict[str, list[StudyResults]] = {}
        for study in self.studies.values():
            covers.setdefault(study.folder.parent().address, []).append(study)
        for address, cases in covers.items():
            if Folder(address).exists(files.CLAIMS):
                result = module.across([module.Case(case.folder.name, case._evidence) for case in cases])
                found.append((cases[0].study.study, _claims(result.claims)))
        return _joined(found, ["study"])

    arms, trials, claims = (_of_all(name) for name in ("arms", "trials", "claims"))
    curves, weights, predictions = (_of_all(name) for name in ("curves", "weights", "predictions"))

    def __repr__(self) -> str:
        return "\n".join(map(repr, self.studies.values()))


def results(folder: Folder | str | Path) -> StudyResults | AllResults:
    """Return what a study has left, or all studies below a folder, as frames.

    Args:
        folder: `<output>/<study>/<backbone>-<dataset>`, or one above several, of which those that `--fresh` has set
            aside are left out unless there are no others; a path or a URI.

    Raises:
        BadInput: There is no study, two have one name, or `study.json` or `trials.csv` of one cannot be read.
    """
    root = folder if isinstance(folder, Folder) else Folder(folder)
    folders = find_studies(root)
    if root.exists(files.STUDY):
        return StudyResults(root)
    return AllResults([folder for folder in folders if not files.ASIDE.search(folder.name)] or folders)


def find_studies(root: Folder) -> list[Folder]:
    """Return the results folders at or below `root`, in the order of their paths. Raises `BadInput` without one."""
    folders = [*{study.uri: study for study in _below(root, _DEPTH)}.values()]  # of two links to one, one
    if not folders:
        raise BadInput(
            f"wanted a results folder, found no {files.STUDY} in or below {root.uri}; name a folder that a study "
            "wrote, <output>/<study>/<backbone>-<dataset>, or one above it"
        )
    return folders


def _below(directory: Folder, depth: int) -> list[Folder]:
    try:
        if directory.exists(files.STUDY):
            return [directory]
        names = directory.names() if depth else []
    except PermissionError:  # of another user
        logger.warning(f"passed over, as it may not be read: {directory.uri}")
        return []
    # Each a root of its own: a root may be a collection of links to studies.
    below = [Folder(directory.child(name).address) for name in names]
    return [study for folder in below for study in _below(folder, depth - 1)]


def _claims(claims: Sequence[Any]) -> pd.DataFrame:
    rows = [claim.as_json() for claim in claims]
    table = pd.DataFrame(rows, columns=None if rows else ["arm", "control", "verdict", *_NUMBERS])
    return table.astype(_NUMBERS)  # also where all are null


def _as_type(levels: pd.Series, dtype: Any) -> pd.Series:
    """Return levels of a factor, of which pages know texts and numbers alone, as rows of trials have them."""
    typed = levels.map({"true": True, "false": False}) if dtype.kind == "b" else levels
    return typed.astype(dtype) if typed.notna().all() else typed


def _joined(frames: Sequence[tuple[Any, pd.DataFrame]], names: list[str]) -> pd.DataFrame:
    """Return frames below each other, the values of `names` in front of each."""
    whole = [(key, frame) for key, frame in frames if len(frame)]
    if not whole:
        return pd.DataFrame(columns=[*names, *(frames[0][1] if frames else ())])
    keys, tables = zip(*whole, strict=True)
    joined: pd.DataFrame = pd.concat(tables, keys=keys, names=names).droplevel(-1).reset_index()
    return joined
