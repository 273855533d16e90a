"""What the study around trained parts found: kept with them, and told by their card."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from adalayers.errors import BadInput
from adalayers.installed import own_module
from adalayers.results.files import BEST, STUDY, TRIALS, read_trials
from adalayers.results.intervals import mean_interval
from adalayers.results.study_file import DatasetRecord, StudyFile, from_json, read_study
from adalayers.storage.folder import Folder
from adalayers.tasks.kinds import KINDS
from adalayers.tasks.metrics import bounds


@dataclass(frozen=True)
class ScoreSummary:
    """A score of a model next to those of its arm over seeds: their mean, and its interval.

    low and high are None where there is none (`mean_interval`).
    """

    split: str
    metric: str
    value: float
    mean: float
    n: int
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class StudySummary:
    """What a study says of its best model.

    Attributes:
        arm:              the configuration that it is one seed of; empty for one of the search
        metric:           the score that selected it
        layer_parameters: of a layer of the base model; 0 where nobody counted
        dataset:          its `path` the name of a local copy alone
        commit:           of the code
    """

    study: str
    name: str
    smoke: bool
    arm: str
    metric: str
    layer_parameters: int
    dataset: DatasetRecord
    scores: tuple[ScoreSummary, ...]
    commit: str | None = None


def study_of(about: Mapping[str, Any]) -> StudySummary | None:
    """Return what a study said of a model, as it was saved with it; None where nothing was.

    Raises:
        BadInput: It cannot be read.
    """
    if "study" not in about:
        return None
    try:
        summary: StudySummary = from_json(StudySummary, about["study"], "study")
    except ValueError as error:
        raise BadInput(
            f"wanted what a study said of trained parts, in their config.json {error}; take another copy"
        ) from error
    return summary


def study_summary(folder: str | Path, about: Mapping[str, Any]) -> StudySummary | None:
    """Return what the study around a `best/` folder says of its model.

    Args:
        folder: Of trained parts.
        about:  What is saved with them.

    Returns:
        What an earlier call left in `about`, or None, where there is no study around.

    Raises:
        BadInput: The study has no such trial, or cannot be read.
    """
    path = Path(folder).expanduser().resolve()
    if path.name != BEST or not all((path.parent / name).is_file() for name in (STUDY, TRIALS)):
        return study_of(about)
    study_folder = Folder(path.parent)
    study = read_study(study_folder)
    trials = read_trials(study_folder)
    rows = trials[trials["trial_id"] == str(about.get("trial_id"))]
    if rows.empty:
        raise BadInput(
            f"wanted the trial {about.get('trial_id')!r} in {study_folder.uri}/{TRIALS}, it has none; "
            "best/ belongs to another study"
        )
    row = rows.iloc[0]
    if row["stage"] == "confirm":
        # As on the page: a seed that diverged has the trivial model's score.
        baseline = study.environment.dataset.baseline
        floored = own_module("reports.reading.load").with_floor(trials, study.request.metric, baseline)
        rows = own_module("reports.tables.arms").confirmed(floored)
        rows = rows[rows["arm"] == row["arm"]]
    environment = study.environment
    local = Path(environment.dataset.path)
    return StudySummary(
        study=study.study,
        name=study.name,
        smoke=study.runs.smoke,
        arm=str(row["arm"]),
        metric=study.request.metric,
        layer_parameters=environment.backbone.layer_parameters,
        dataset=replace(environment.dataset, path=local.name if local.is_absolute() else ""),
        scores=_scores(study, row, rows),
        commit=environment.git.commit,
    )


def _scores(study: StudyFile, row: pd.Series, seeds: pd.DataFrame) -> tuple[ScoreSummary, ...]:
    """Return the scores of a trial next to those of its arm, as pages have them, the study's metric first."""
    kind = KINDS.get(study.environment.dataset.kind)
    completed = seeds["status"] == "completed"
    summaries: list[ScoreSummary] = []
    for prefix, split in (("test", "test"), ("val", "validation")):
        for metric in dict.fromkeys((study.request.metric, *(kind.metrics_of(()) if kind else ()))):
            column = f"{prefix}/{metric}"
            if column not in seeds or pd.isna(row[column]):
                continue
            value = float(row[column])
            # The selection metric has a score of seeds that diverged, too.
            of_seeds = seeds[column].where(completed | (metric == study.request.metric)).astype(float)
            over = mean_interval(of_seeds, limits=bounds(metric))
            mean = value if over.mean is None else over.mean
            summaries.append(ScoreSummary(split, metric, value, mean, over.n, over.low, over.high))
    return tuple(summaries)
