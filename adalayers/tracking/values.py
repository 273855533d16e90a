"""Values as MLflow takes them: short texts, finite numbers, thinned series, names of few characters."""

from __future__ import annotations

import json
import math
import numbers
import posixpath
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from adalayers.results.study_file import StudyFile
from adalayers.storage.redaction import HIDDEN, SECRET_NAME, clean
from adalayers.storage.to_json import JsonObject, to_json

SERIES_POINTS = 200
"""At most so many points of a series are mirrored; history.parquet has them all."""

_PARAMS = ("seed", "stage", "arm", "fusion", "train_examples", "draw")
_BOOKKEEPING = ("parameters", "seconds", "epochs", "best_epoch")
"""Numbers of a row that are no score: as params they can be read and filtered by, and are drawn as no charts."""

_SERIES = re.compile(r"lr$|train/loss$|val/|mix/weight_")

# What every MLflow server accepts; newer ones accept more.
_NAME_LENGTH, _PARAM_LENGTH, TAG_LENGTH = 250, 500, 5000


def params_of(row: Mapping[str, Any]) -> dict[str, str]:
    """Return the params of a trial's row: its hyperparameters by their own names, and what is no score.

    `epochs` is the hyperparameter, `epochs_trained` what it came to.
    """
    other = {"epochs": "epochs_trained"}
    named = {other.get(name, name.removeprefix("config/")): row[name] for name in filter(_is_param, row)}
    return as_params(named)


def as_params(named: Mapping[str, Any]) -> dict[str, str]:
    """Return values as MLflow's params; secrets are hidden, and what is missing is left out."""
    texts = ((name, HIDDEN if SECRET_NAME.search(name) else text(value)) for name, value in named.items())
    return {mlflow_name(name): value[:_PARAM_LENGTH] for name, value in texts if value}


def finals_of(row: Mapping[str, Any]) -> dict[str, float]:
    """Return the scores of a trial's row, and what its mix came to."""
    found = {_sectioned(name): number(value) for name, value in row.items() if not _is_param(name)}
    return {name: value for name, value in found.items() if value is not None}


def _is_param(name: str) -> bool:
    return name.startswith(("config/", "cost/")) or name in (*_PARAMS, *_BOOKKEEPING)


def series_of(history: pd.DataFrame) -> dict[str, list[tuple[int, float]]]:
    """Return name -> (step, value)... of a trial's series: rising steps, finite values, thinned."""
    series = {}
    for name in filter(_SERIES.match, map(str, history)) if "step" in history else ():
        points = history[["step", name]].apply(pd.to_numeric, errors="coerce").astype(float)
        points = points[np.isfinite(points).all(axis="columns")].sort_values("step", kind="stable")
        if len(points) > SERIES_POINTS:
            points = points.iloc[np.linspace(0, len(points) - 1, SERIES_POINTS).round().astype(int)]
        if len(points):
            title = _sectioned("train/lr" if name == "lr" else name)
            series[f"training/{title}"] = [(int(step), value) for step, value in points.to_numpy().tolist()]
    return series


def _sectioned(name: str) -> str:
    """Return the name of a metric. MLflow draws charts in the order of names: test scores first, the mix last."""
    return mlflow_name(f"weights/{name.removeprefix('mix/')}" if name.startswith("mix/") else name)


def data_params(study: StudyFile) -> dict[str, str]:
    """Return on what a study's trials are trained, by parameter: the names of backbone and dataset, and examples."""
    backbone, dataset = study.environment.backbone, study.environment.dataset
    examples = dataset.examples.get("train")
    return as_params({"backbone": backbone.name, "dataset": dataset.name, "examples": examples})


def runs_view(study_key: str, metric: str) -> str:
    """Return what MLflow's page of runs is to show of a study: its arms, with their mean scores and intervals."""
    name = "attributes.`Run Name`"
    scores = [
        f"metrics.`{mlflow_name(f'{split}/{metric}{end}')}`"
        for split in ("test", "val")
        for end in ("", " low", " high")
    ]
    view = {
        "searchFilter": f"tags.`adalayers.study` = '{study_key}' and tags.`adalayers.kind` = 'arm'",
        "orderByKey": scores[0],  # by time, runs would be folded into the study's
        "orderByAsc": False,
        "selectedColumns": [*scores, "metrics.`n`"],
        "columnOrder": [name],
        "columnWidths": {name: 330},
        "runsHiddenMode": "SHOW_ALL",  # else charts are of the first ten
    }
    return json.dumps(view)


def flat(nested: JsonObject) -> JsonObject:
    """Return name/of/the/leaf -> leaf of nested mappings."""
    leaves = pd.json_normalize(nested, sep="/").to_dict("records")[0]
    return {str(name): value for name, value in leaves.items()}


def number(value: Any) -> float | None:
    """Return a finite number as a float, else None (also for None, NaN, pandas' NA, text and booleans)."""
    if isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    return None


def text(value: Any) -> str:
    """Return a value as text, "" for what is missing. 8.0 is "8": a column with gaps comes back as floats."""
    value = to_json(value)
    if value is None or value is pd.NA or value in ({}, []):
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    return clean(value if isinstance(value, str) else json.dumps(value, default=str))


def mlflow_name(name: str) -> str:
    """Return `name` as MLflow accepts it for a param or metric: few characters, a tidy relative path."""
    tidy = posixpath.normpath(re.sub(r"[^\w\-. :/]", "_", name)).lstrip("/")
    return tidy.replace("..", "_")[:_NAME_LENGTH]
