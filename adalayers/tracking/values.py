"""Values as MLflow takes them: short texts, finite numbers, thinned series, names of few characters."""

from __future__ import annotations

import json
import math
import numbers
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from adalayers.results.palette import COLOURS
from adalayers.results.study_file import StudyFile
from adalayers.storage.redaction import HIDDEN, SECRET_NAME, clean
from adalayers.storage.to_json import to_json

SERIES_POINTS = 200
"""At most so many points of a series are mirrored; history.parquet has them all."""

_CURVE, _SECTIONED = "training/", {"lr": "train/lr"}
_MIX, _WEIGHTS = "mix/", "weights/"
"""MLflow draws charts in the order of their names: test scores come first, then curves, and the mix comes last."""

_PARAMS = ("seed", "stage", "arm", "fusion", "train_examples", "draw")
_BOOKKEEPING = ("parameters", "seconds", "epochs", "best_epoch")
"""Numbers of a row that are no score: as params they can be read and filtered by, and are drawn as no charts."""

# What every MLflow server accepts; newer ones accept more.
_NAME_LENGTH = 250
_PARAM_LENGTH = 500
_TAG_LENGTH = 5000


@dataclass(frozen=True)
class Trial:
    """A trial as MLflow takes it, small enough to wait for a server that is down.

    of_arm: names of the params that all trials of its arm share
    finals: name -> value of the trial's row
    series: name -> (steps, values), thinned
    """

    trial_id: str
    status: str
    seconds: float
    params: dict[str, str]
    tags: dict[str, str]
    of_arm: frozenset[str]
    finals: dict[str, float]
    series: dict[str, tuple[np.ndarray, np.ndarray]]

    @classmethod
    def from_row(cls, row: Mapping[str, Any], history: pd.DataFrame) -> Trial:
        texts = {name: _text(row.get(name)) for name in (*_PARAMS, "status", "error")}
        params: dict[str, str] = {}
        finals: dict[str, float] = {}
        for name, value in row.items():
            if name.startswith(("config/", "cost/")) or name in _BOOKKEEPING:
                params[name.removeprefix("config/")] = _text(value)
            elif name not in (*_PARAMS, "trial_id") and (number := _number(value)) is not None:
                finals[mlflow_name(_last(name))] = number
        params |= {name: texts[name] for name in _PARAMS}
        trial_id = str(row["trial_id"])
        tags = {
            "adalayers.trial_id": trial_id,
            **{name: texts[name] for name in ("stage", "arm", "status", "error")},
        }
        return cls(
            trial_id=trial_id,
            status=str(row["status"]),
            seconds=_number(row.get("seconds")) or 0.0,
            params={mlflow_name(name): text[:_PARAM_LENGTH] for name, text in params.items() if text},
            tags={name: text[:_TAG_LENGTH] for name, text in tags.items() if text},
            of_arm=frozenset(
                mlflow_name(name.removeprefix("config/")) for name in row if name.startswith("config/")
            )
            | {"arm", "fusion"},
            finals=finals,
            series=_series(history),
        )


def run_name(trial: Trial, symbols: Mapping[str, str]) -> str:
    """Return the name of a trial's run: sorted by it, runs stand by arm and seed, with those of the search apart.

    MLflow shows about 20 characters of it: factors stand by their symbols.
    """
    arm, seed = trial.params.get("arm"), trial.params.get("seed", "")
    if trial.params.get("stage") != "confirm" or not arm:
        return f"search {trial.trial_id}"
    return f"{in_symbols(arm, symbols)} seed {seed:0>3}"[:_NAME_LENGTH]


def in_symbols(arm: str, symbols: Mapping[str, str]) -> str:
    """Return an arm's name with factors by their symbols."""
    for name, symbol in symbols.items():
        arm = re.sub(rf"\b{re.escape(name)}=", f"{symbol}=", arm)
    return arm[:_NAME_LENGTH]


def symbols(study: StudyFile) -> dict[str, str]:
    """Return the factors of a study whose label is shorter than their name, by name: {"alpha": "α"}."""
    labels = {factor.name: factor.label for factor in study.request.factors}
    return {name: label for name, label in labels.items() if label and len(label) < len(name)}


def colours(study: StudyFile) -> dict[str, str]:
    """Return the colour of each arm of a study, in which its runs are drawn."""
    return {arm.name: COLOURS[place % len(COLOURS)] for place, arm in enumerate(study.request.arms)}


def data_params(study: StudyFile) -> dict[str, str]:
    """Return on what a study's trials are trained, by parameter: the names of backbone and dataset, and examples."""
    dataset = study.environment.dataset
    values = {
        "backbone": study.environment.backbone.name,
        "dataset": dataset.name,
        "examples": dataset.examples.get("train"),
    }
    return {name: text[:_PARAM_LENGTH] for name, value in values.items() if (text := _text(value))}


def runs_view(study_key: str, metric: str) -> str:
    """Return what MLflow's page of runs is to show of a study: its arms, with their mean scores and intervals."""
    name = "attributes.`Run Name`"
    scores = [
        f"metrics.`{split}/{metric}{end}`" for split in ("test", "val") for end in ("", " low", " high")
    ]
    view = {
        "searchFilter": f"tags.`adalayers.study` = '{study_key}' and tags.`adalayers.kind` = 'arm'",
        "selectedColumns": [*scores, "metrics.`n`"],
        "columnOrder": [name],
        "columnWidths": {name: 330},
        "runsHiddenMode": "SHOW_ALL",  # else charts are of the first ten
    }
    return json.dumps(view)


def flat(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield (name/of/the/leaf, text) of nested mappings.

    Args:
        value: A mapping or a leaf; empty ones are left out, secrets hidden.
        name: Of `value` itself.
    """
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from flat(item, f"{name}/{key}" if name else str(key))
    elif text := _text(value):
        yield mlflow_name(name), (HIDDEN if SECRET_NAME.search(name) else text)[:_PARAM_LENGTH]


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
            series[mlflow_name(_CURVE + _SECTIONED.get(str(name), _last(str(name))))] = (
                steps[order][kept].astype(np.int64),
                values[kept],
            )
    return series


def _last(name: str) -> str:
    return f"{_WEIGHTS}{name.removeprefix(_MIX)}" if name.startswith(_MIX) else name


def _number(value: Any) -> float | None:
    """Return a finite number as a float, else None (also for None, NaN, pandas' NA, text and booleans)."""
    if isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    return None


def _text(value: Any) -> str:
    """Return a value as text, "" for what is missing. 8.0 is "8": a column with gaps comes back as floats."""
    value = to_json(value)
    if value is None or value is pd.NA:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    return clean(value if isinstance(value, str) else json.dumps(value, default=str))


def mlflow_name(name: str) -> str:
    """Return `name` as MLflow accepts it for a param or metric: few characters, a tidy relative path."""
    tidy = posixpath.normpath(re.sub(r"[^\w\-. :/]", "_", name)).lstrip("/")
    return tidy.replace("..", "_")[:_NAME_LENGTH]
