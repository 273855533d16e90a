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

import hashlib
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from adalayers.errors import BadInput
from adalayers.storage.folder import Folder, damaged, require_files
from adalayers.storage.to_json import to_json

STUDY = "study.json"
TRIALS = "trials.csv"
HISTORY = "history.parquet"
PREDICTIONS = "predictions.parquet"
EVALUATIONS = "evaluations.parquet"
CLAIMS = "claims.json"
REPORT = "report.md"
EXAMPLES = "examples.md"
BEST = "best"
WORK = "work"
RATES = "rates"
"""The `search` of trials that `--rates` made: no search, for each arm keeps the best of its own."""

ASIDE = re.compile(r"\.\d{8}-\d{6}$")
"""How the name of a study ends that `--fresh` has set aside: with the time."""

PREFIXES = {"validation": "val", "test": "test"}
"""The splits that are scored, and how the names of their scores begin."""

RESTORE = "restore the file from a copy"
"""What helps where a file cannot be read, unless a reader knows more."""

STATUSES = ("completed", "stopped", "failed", "diverged", "unfinished")
FINISHED = ("completed", "stopped", "diverged")
"""Statuses of a row that never changes again. A failed trial is tried again by the next run."""

_FIRST = ("trial_id", "stage", "arm", "search", "status", "error")
_MIDDLE = ("seed", "fusion", "train_examples", "draw", "epochs", "best_epoch")
_LAST = ("parameters", "seconds", "group", "predictions")
_TEXT = dict.fromkeys(("trial_id", "stage", "arm", "search", "status", "error", "fusion", "predictions"), str)


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


def read_rows(folder: Folder, name: str) -> pd.DataFrame:
    """Return a file of rows by trial, such as `history.parquet`; lists in it, of a label per word, as tuples.

    Raises `BadInput` where it cannot be read.
    """
    try:
        frame = folder.read_parquet(name)
        frame["trial_id"].str.len()
        once: dict[Any, Any] = {}  # equal ones are one in memory
        for column in [key for key in ("label", "prediction") if key in frame]:
            if len(frame) and isinstance(frame[column].iloc[0], np.ndarray):
                frame[column] = [once.setdefault(answer, answer) for answer in map(tuple, frame[column])]
    except Exception as error:  # there is no end to what a damaged file makes its readers raise
        raise BadInput(f"{type(error).__name__}: {' '.join(str(error).split())[:200]}") from error
    return frame


def rows_or_why(folder: Folder, name: str) -> tuple[pd.DataFrame, str]:
    """Return a file of rows by trial, and ""; no row of one that is missing, or damaged, with why it cannot be read."""
    none = pd.DataFrame({"trial_id": pd.Series(dtype=str)})
    try:
        return (read_rows(folder, name) if folder.exists(name) else none), ""
    except BadInput as error:
        return none, str(error)


def answers(column: pd.Series) -> pd.Series:
    """Return labels or predictions as they are compared: as texts, but for tuples of a text per word."""
    return column if all(isinstance(answer, tuple) for answer in column) else column.astype(str)


def read_trials(folder: Folder, *, advice: str = RESTORE) -> pd.DataFrame:
    """Read `trials.csv`; text columns stay text (an empty `arm` is "").

    Raises `BadInput`, which ends in the advice, for a file that is damaged or cut off, or a trial twice or of no stage.
    """
    lost = "the rows of the trials, on which all else rests, are lost or in doubt"
    try:
        text = folder.read_bytes(TRIALS)
        frame = pd.read_csv(io.BytesIO(text), dtype=_TEXT)
        if missing := [name for name in (*_TEXT, "seed") if name not in frame]:
            other = next((mark for mark in (";", "\t") if mark in str(frame.columns[0])), "")
            why = f": columns are separated by {other!r} where a study writes commas" if other else ""
            raise ValueError(f"it has no column {missing[0]!r}{why}")
        texts = [*_TEXT]  # as they stand: an arm may be called None
        frame[texts] = pd.read_csv(io.BytesIO(text), dtype=str, keep_default_na=False, usecols=texts)[texts]
        if again := frame.loc[frame["trial_id"].duplicated(), "trial_id"].tolist():
            raise ValueError(f"it has trial {again[0]} more than once")
        if unsaid := frame.loc[frame["stage"] == "", "trial_id"].tolist():
            raise ValueError(f"trial {unsaid[0]} has no stage")
        if not text.endswith(b"\n"):
            raise ValueError("it ends within a row")
    except (ValueError, OSError) as error:
        raise damaged(folder, TRIALS, error, lost=lost, advice=advice) from error
    seeds = pd.to_numeric(frame["seed"], errors="coerce")
    frame["seed"] = seeds.where(np.isfinite(seeds))  # what is no number pairs with nothing
    return frame.fillna(dict.fromkeys(_TEXT, ""))


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
