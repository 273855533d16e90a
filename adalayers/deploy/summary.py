"""What the study around trained parts found: kept with them, and told by their card."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from adalayers.errors import BadInput
from adalayers.installed import own_module
from adalayers.results.files import BEST, STUDY, TRIALS, read_trials
from adalayers.results.intervals import mean_interval
from adalayers.results.study_file import StudyFile, from_json, read_study, splits_in_words
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
class DatasetSummary:
    """The data of a study; examples: by split; splits: what each is of the source; folder: name of a local copy."""

    name: str
    source: str
    examples: dict[str, int]
    revision: str | None = None
    splits: str = ""
    folder: str = ""


@dataclass(frozen=True)
class StudySummary:
    """What a study says of its best model.

    Attributes:
        arm:              the configuration that it is one seed of; empty for one of the search
        metric:           the score that selected it
        layer_parameters: of a layer of the base model; 0 where nobody counted
        commit:           of the code
    """

    study: str
    name: str
    smoke: bool
    arm: str
    metric: str
    layer_parameters: int
    dataset: DatasetSummary
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
    study, _ = read_study(study_folder)
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
    dataset = study.environment.dataset
    return StudySummary(
        study=study.study,
        name=study.name,
        smoke=study.runs.smoke,
        arm=str(row["arm"]),
        metric=study.request.metric,
        layer_parameters=study.environment.backbone.layer_parameters or 0,
        dataset=DatasetSummary(
            dataset.name,
            dataset.source,
            dataset.examples,
            dataset.revision,
            splits_in_words(dataset.roles, dataset.unused),
            Path(dataset.path).name if Path(dataset.path).is_absolute() else "",
        ),
        scores=_scores(study, row, rows),
        commit=study.environment.git.commit,
    )


def _scores(study: StudyFile, row: pd.Series, seeds: pd.DataFrame) -> tuple[ScoreSummary, ...]:
    """Return the scores of a trial next to those of its arm, the study's metric first."""
    kind = KINDS.get(study.environment.dataset.kind)
    metrics = dict.fromkeys((study.request.metric, *(kind.metrics_of(()) if kind else ())))
    completed = seeds["status"] == "completed"
    return tuple(
        _score(
            split,
            metric,
            float(row[column]),
            seeds[column].where(completed | (metric == study.request.metric)),
        )
        for prefix, split in (("test", "test"), ("val", "validation"))
        for metric in metrics
        if (column := f"{prefix}/{metric}") in seeds and not pd.isna(row[column])
    )


def _score(split: str, metric: str, value: float, seeds: pd.Series) -> ScoreSummary:
    """Return a score with mean, interval and number over seeds, as pages have them."""
    over = mean_interval(seeds.astype(float), limits=bounds(metric))
    mean = value if over.mean is None else over.mean
    return ScoreSummary(split, metric, value, mean, over.n, over.low, over.high)
