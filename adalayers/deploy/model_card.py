"""The model card of a trained task: what it is, what it costs, and what its study found, which is kept with it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
from huggingface_hub import ModelCard, ModelCardData

from adalayers.deploy.predictions import label_names, task_kind
from adalayers.errors import BadInput
from adalayers.escaping import code, escape
from adalayers.models.model import FusionModel
from adalayers.results.files import BEST, STUDY, TRIALS
from adalayers.results.frames import StudyResults
from adalayers.results.intervals import LEVEL, MIN_N
from adalayers.results.study_file import DatasetRecord, from_json, splits_in_words
from adalayers.storage import hub
from adalayers.storage.to_json import to_json
from adalayers.training.cost import USE

_TEMPLATE = str(Path(__file__).with_name("model_card.md.j2"))


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
        use:              operations per token that the task adds, in millions; None where nobody counted
        max_length:       most tokens of a text in training and scoring; None where nothing says
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
    use: float | None = None
    max_length: int | None = None


def study_of(about: Mapping[str, Any]) -> StudySummary | None:
    """Return what a study said of a model, as it was saved with it; None where nothing was.

    Raises:
        BadInput: It cannot be read.
    """
    if "study" not in about:
        return None
    try:
        return from_json(StudySummary, about["study"], "study")
    except ValueError as error:
        raise BadInput(
            f"wanted what a study said of trained parts, in their config.json {error}; take another copy"
        ) from error


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
    results = StudyResults(path.parent)
    study, trials = results.study, results.trials
    rows = trials[trials["trial_id"] == str(about.get("trial_id"))]
    if rows.empty:
        raise BadInput(
            f"wanted the trial {about.get('trial_id')!r} in {path.parent}/{TRIALS}, it has none: best/ is of another"
        )
    row, environment = rows.iloc[0], study.environment
    local = Path(environment.dataset.path)
    return StudySummary(
        study=study.study,
        name=study.name,
        smoke=study.runs.smoke,
        arm=str(row["arm"]),
        metric=study.request.metric,
        layer_parameters=environment.backbone.layer_parameters,
        dataset=replace(environment.dataset, path=local.name if local.is_absolute() else ""),
        scores=_scores(results, row),
        commit=environment.git.commit,
        use=to_json(float(row.get(USE, math.nan))),
        max_length=study.request.data.max_length,
    )


def _scores(results: StudyResults, row: pd.Series) -> tuple[ScoreSummary, ...]:
    """Return the scores that selected a trial next to those of its arm, as its page has them; test first."""
    metric, arms = results.study.request.metric, results.arms
    of_arm = arms[(arms["arm"] == row["arm"]) & (row["stage"] == "confirm")].to_dict("records")
    summaries = []
    for split, prefix in (("test", "test"), ("validation", "val")):
        value = float(row.get(f"{prefix}/{metric}", math.nan))
        if not math.isnan(value):
            arm: dict[Any, Any] = of_arm[0] if of_arm else {"split": prefix, "mean": value, "n": 1}
            of = "" if arm["split"] == prefix else f"{prefix}_"
            low, high = (to_json(arm.get(f"{of}{end}")) for end in ("low", "high"))
            mean, n = float(arm[f"{of}mean"]), int(arm[f"{of}n"])
            summaries.append(ScoreSummary(split, metric, value, mean, n, low, high))
    return tuple(summaries)


def model_card(model: FusionModel) -> ModelCard:
    """Return the card: what a task is, its scores with intervals, mix weights, cost, training and use."""
    study, dataset, about = study_of(model.about), model.about.get("dataset"), model.about.get("backbone", {})
    base, revision = str(about.get("id", model.shape.family)), about.get("revision")
    header = ModelCardData(
        library_name="adalayers",
        tags=["adalayers", "layer-fusion"],
        pipeline_tag=f"{'token' if model.shape.per_token else 'text'}-classification",
        base_model=base if base.count("/") == 1 else None,  # a hub id, not a folder
    )
    diagnostics = model.fusion.diagnostics().items()
    weights = {key.partition("/weight_")[2]: value for key, value in diagnostics if "/weight_" in key}
    return ModelCard.from_template(
        header,
        _TEMPLATE,
        model=model,
        study=study,
        data=study.dataset.name if study else dataset.get("source") if isinstance(dataset, dict) else None,
        base=base,
        backbone=f"{base}@{revision}" if revision else base,
        named=json.dumps(base) + (f", revision={json.dumps(revision)}" if revision else ""),
        title=task_kind(model).title,
        labels=[code(label) for label in label_names(model)],
        weights=weights,
        most=max(map(abs, weights.values()), default=0.0) or 1.0,
        level=f"{LEVEL:.0%}",
        min_n=MIN_N,
        escape=escape,
        code=code,
        last_part=hub.last_part,
        splits_in_words=splits_in_words,
    )
