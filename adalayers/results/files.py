"""The results folder of a study: the only state that matters, written and read here alone.

    study.json           the request, the environment, the runs
    trials.csv           a row per trial (its own columns, then `config/*`, `val/*`, `test/*`)
    history.parquet      a row per trial and evaluation, and mix weights in between
    predictions.parquet  a row per confirmed trial, split and example, without its text
    best/                the best model on validation, trained parts only
    work/<trial_id>/     a trial under way: its progress and its checkpoint; gone once it is merged

A folder is local or a URI that pyarrow, and therefore Ray, can write. Nothing here imports torch, ray,
transformers or mlflow: `adalayers report` reads a folder with this module alone.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from adalayers.errors import BadInput
from adalayers.storage.folder import Folder, damaged, require_files
from adalayers.storage.to_json import to_json
from adalayers.tasks.kinds import KINDS

STUDY = "study.json"
TRIALS = "trials.csv"
HISTORY = "history.parquet"
PREDICTIONS = "predictions.parquet"
EVALUATIONS = "evaluations.parquet"
CLAIMS = "claims.json"
REPORT = "report.md"
BEST = "best"
WORK = "work"
RATES = "rates"
"""The `search` of trials that `--rates` made: no search, for each arm keeps the best of its own."""

RESTORE = "restore the file from a copy"
"""What helps where a file cannot be read, unless a reader knows more."""

STATUSES = ("completed", "stopped", "failed", "diverged", "unfinished")
FINISHED = ("completed", "stopped", "diverged")
"""Statuses of a row that never changes again. A failed trial is tried again by the next run."""

_FIRST = ("trial_id", "stage", "arm", "search", "status", "error")
_MIDDLE = ("seed", "fusion", "train_examples", "draw", "epochs", "best_epoch")
_LAST = ("parameters", "seconds", "group", "predictions")
_TEXT = dict.fromkeys(("trial_id", "stage", "arm", "search", "status", "error", "fusion", "predictions"), str)


@dataclass(frozen=True)
class Results:
    """A study's results as read from its folder.

    Attributes:
        trials: a row per trial, the columns of `trials.csv`.
        history: a row per trial and evaluation; empty, with `trial_id`, where the file is missing.
        predictions: a row per confirmed trial, split and example; empty where the file is missing.
        evaluations: a row per trial, split, variant of its trained model and metric; empty where it is missing.
        problems: sentences that say what is missing or disagrees; the report shows them.
    """

    folder: Folder
    study: dict[str, Any]
    trials: pd.DataFrame
    history: pd.DataFrame
    predictions: pd.DataFrame
    evaluations: pd.DataFrame
    problems: list[str] = field(default_factory=list)


def prediction_hash(predictions: pd.DataFrame) -> str:
    """Return what stands for a trial's predictions on one split, equal where those of all examples are.

    The letter in front keeps it from being read as a number.
    """
    rows = predictions.sort_values("index", kind="stable")[["index", "prediction"]]
    text = rows.assign(prediction=rows["prediction"].map(_hashed)).to_csv(index=False)
    return f"p{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _hashed(prediction: Any) -> Any:
    """Return what is hashed of a prediction: that of words joined by spaces, which a name with some would confuse."""
    if not isinstance(prediction, (tuple, list, np.ndarray)):
        return prediction
    if all(map(len, prediction)) and len((text := " ".join(prediction)).split()) == len(prediction):
        return text  # no name holds a blank
    return " ".join(name if name.split() == [name] else json.dumps(name) for name in prediction)


def study_folder(folder: Folder | str | Path, *, wanted: str = "a study's results folder") -> Folder:
    """Return the folder of a study. Raises `BadInput` where it lacks what all else rests on."""
    advice = "a folder that a study wrote, <output>/<study>/<backbone>-<dataset>"
    return require_files(folder, (STUDY, TRIALS), wanted=wanted, advice=advice)


def load(folder: Folder | str | Path) -> Results:
    """Read a results folder; what is missing or disagrees is named in `problems`, not raised.

    A file of rows that is damaged is as one that is missing. Raises `BadInput` where `study.json` or `trials.csv`, on
    which all else rests, is missing or cannot be read.
    """
    opened = study_folder(folder)
    study = read_document(opened)
    trials = read_trials(opened)
    problems = []
    frames = {}
    request, runs = study.get("request"), study.get("runs")
    has_variants = isinstance(request, Mapping) and request.get("variants")
    for name in (HISTORY, PREDICTIONS, EVALUATIONS):
        frames[name] = pd.DataFrame({"trial_id": pd.Series(dtype=str)})
        if opened.exists(name):
            try:
                frames[name] = read_rows(opened, name)
            except BadInput as error:
                problems.append(f"`{name}` is damaged; what depends on it is left out ({error}).")
        elif name != EVALUATIONS or has_variants:
            problems.append(f"`{name}` is missing; what depends on it is left out.")
    published = isinstance(runs, Mapping) and runs.get("published")
    completed = (trials["status"] == "completed").any()
    if completed and not published and not opened.exists(f"{BEST}/model.safetensors"):
        problems.append(f"`{BEST}/`, the best model, is missing.")
    evaluated = trials.loc[trials["status"].isin(["completed", "stopped"]), "trial_id"]
    without_history = sorted(set(evaluated) - set(frames[HISTORY]["trial_id"]))
    if without_history and len(frames[HISTORY]):
        problems.append(
            f"{len(without_history)} trials have no rows in `{HISTORY}`: {', '.join(without_history[:5])}"
            + ("…" if len(without_history) > 5 else ".")
        )
    counted = runs.get("counts") if isinstance(runs, Mapping) else None
    if counted is not None and counted != counts(trials):
        problems.append(
            f"`{STUDY}` counts {counted}, `{TRIALS}` holds {counts(trials)}; the rows are what is reported."
        )
    return Results(opened, study, trials, frames[HISTORY], frames[PREDICTIONS], frames[EVALUATIONS], problems)


def read_document(folder: Folder, *, advice: str = RESTORE) -> dict[str, Any]:
    """Return `study.json` as it stands. Raises `BadInput`, which ends in the advice, where it cannot be read."""
    lost = "what the study was asked for, and its analyses, are lost"
    try:
        study = folder.read_json(STUDY)
        if not isinstance(study, Mapping):
            raise ValueError(f"wanted an object, got {type(study).__name__}")
    except (ValueError, OSError) as error:
        raise damaged(folder, STUDY, error, lost=lost, advice=advice) from error
    return dict(study)


def read_rows(folder: Folder, name: str) -> pd.DataFrame:
    """Return a file of rows by trial, such as `history.parquet`; lists in it, of a label per word, as tuples.

    Raises `BadInput` where it cannot be read.
    """
    try:
        frame = folder.read_parquet(name)
        frame["trial_id"].str.len()
        if name == PREDICTIONS and len(frame):
            _read_words(frame, folder)
    except Exception as error:  # there is no end to what a damaged file makes its readers raise
        raise BadInput(f"{type(error).__name__}: {' '.join(str(error).split())[:200]}") from error
    return frame


def answers(column: pd.Series) -> pd.Series:
    """Return labels or predictions as they are compared: as texts, but for tuples of a text per word."""
    return column if all(isinstance(answer, tuple) for answer in column) else column.astype(str)


def _read_words(frame: pd.DataFrame, folder: Folder) -> None:
    """Turn labels and predictions per word into tuples, of which equal ones are one in memory."""
    kind = None
    with contextlib.suppress(
        OSError, ValueError, LookupError, TypeError
    ):  # damage there is none of this file's
        kind = KINDS.get(folder.read_json(STUDY)["environment"]["dataset"]["kind"])
    once: dict[Any, Any] = {}
    for column in [name for name in ("label", "prediction") if name in frame]:
        if (kind and kind.per_word) or isinstance(frame[column].iloc[0], np.ndarray):
            frame[column] = [once.setdefault(answer, answer) for answer in map(_words, frame[column])]


def _words(answer: Any) -> Any:
    """Return a list as a tuple, and so the joined text of files that were written before there were lists."""
    if isinstance(answer, str):
        return tuple(answer.split())
    return tuple(answer) if isinstance(answer, np.ndarray) else answer


def read_trials(folder: Folder, *, advice: str = RESTORE) -> pd.DataFrame:
    """Read `trials.csv`; text columns stay text (an empty `arm` is "").

    Raises `BadInput`, which ends in the advice, for a file that is damaged, cut off, or holds a trial twice.
    """
    lost = "the rows of the trials, on which all else rests, are lost or in doubt"
    try:
        text = folder.read_bytes(TRIALS)
        frame = pd.read_csv(io.BytesIO(text), dtype=_TEXT)
        if "predictions" not in frame:  # written before there were hashes: ties cannot be told
            frame = frame.assign(predictions="")
        if missing := [name for name in _TEXT if name not in frame]:
            other = next((mark for mark in (";", "\t") if mark in str(frame.columns[0])), "")
            why = f": columns are separated by {other!r} where a study writes commas" if other else ""
            raise ValueError(f"it has no column {missing[0]!r}{why}")
        if again := frame.loc[frame["trial_id"].duplicated(), "trial_id"].tolist():
            raise ValueError(f"it has trial {again[0]} more than once")
        if not text.endswith(b"\n"):
            raise ValueError("it ends within a row")
    except (ValueError, OSError) as error:
        raise damaged(folder, TRIALS, error, lost=lost, advice=advice) from error
    return _with_numbers(frame.fillna(dict.fromkeys(_TEXT, "")))


def _with_numbers(trials: pd.DataFrame) -> pd.DataFrame:
    """Return rows with numbers as such also in a column of which a cell holds another text."""
    changed = {}
    for name in trials.columns:
        texts = trials[name]
        if name in _TEXT or str(name).startswith("config/") or pd.api.types.is_numeric_dtype(texts):
            continue
        numeric = pd.to_numeric(texts, errors="coerce")
        if numeric.notna().any():
            changed[name] = numeric.astype(object).where(numeric.notna(), texts)
    return trials.assign(**changed)


def write_trials(folder: Folder, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write `trials.csv` whole: what identifies a trial, its settings, its scores, and what its fusion notes."""
    rows = [to_json(row) for row in rows]
    keys = dict.fromkeys(key for row in rows for key in row)
    first = [
        *_FIRST,
        *sorted(key for key in keys if key.startswith("config/")),
        *_MIDDLE,
        *[key for key in keys if key.startswith("val/")],
        *[key for key in keys if key.startswith("test/")],
    ]
    columns = [*first, *(key for key in keys if key not in (*first, *_LAST)), *_LAST]
    frame = pd.DataFrame(rows, columns=columns, dtype=object)  # whole numbers stay so beside missing ones
    folder.write_bytes(TRIALS, frame.to_csv(index=False).encode())


def counts(trials: pd.DataFrame | Mapping[str, Sequence[str]]) -> dict[str, dict[str, int]]:
    """Return stage -> status -> number of trials, statuses without trials left out."""
    counted = Counter(zip(trials["stage"], trials["status"], strict=True))
    stages = sorted({stage for stage, _ in counted})
    return {stage: {status: n for status in STATUSES if (n := counted[stage, status])} for stage in stages}
