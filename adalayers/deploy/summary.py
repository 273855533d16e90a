"""What is known of trained parts without their base model: mix weights, size, cost, and what their study found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from scipy import stats

from adalayers.deploy.predictions import label_names, task_kind
from adalayers.errors import BadInput
from adalayers.models.model import FusionModel
from adalayers.results.files import BEST, STUDY, TRIALS, read_trials
from adalayers.results.study_file import StudyFile, read_study
from adalayers.storage import hub
from adalayers.storage.folder import Folder
from adalayers.tasks.kinds import KINDS

LEVEL = 0.95
"""Of the intervals over seeds."""


@dataclass(frozen=True, kw_only=True)
class TaskSummary:
    """What is known of a trained task.

    Attributes:
        weights:    hidden state -> its mix weight, in order; empty for a method without such weights
        live:       names of the hidden states that are read
        layers:     how many the base model has
        parameters: trained numbers
        kept:       numbers per token kept until a pass of the base model is over
        frozen:     whether the base model is as it was, so that other tasks can share its passes
        summed:     whether the fusion is added up while the base model runs
        operations: per token next to the base model
        base_operations: of its layers; None where that is not known
        study:      as `study_summary` returns it, as far as it is kept with the parts
    """

    title: str
    fusion: str
    kind: str
    labels: tuple[str, ...]
    backbone: str
    weights: dict[str, float]
    live: tuple[str, ...]
    layers: int
    parameters: int
    kept: int
    frozen: bool
    summed: bool
    operations: int
    base_operations: int | None
    study: dict[str, Any]


def summarize(model: FusionModel) -> TaskSummary:
    """Return what is known of a trained task, of its study as far as that is kept with it."""
    about = model.about
    study, backbone = about.get("study", {}), about.get("backbone", {})
    full_id = backbone.get("id", model.shape.family)
    if backbone.get("revision"):
        full_id = f"{full_id}@{backbone['revision']}"
    data = study.get("dataset", {}).get("name") or about.get("dataset", {}).get("source") or "unknown data"
    diagnostics = model.fusion.diagnostics().items()
    layers = model.shape.streams[0].layers
    layer_parameters = study.get("backbone", {}).get("layer_parameters") or 0
    return TaskSummary(
        title=f"{data} on {hub.last_part(full_id.partition('@')[0])}",
        fusion=model.config.fusion,
        kind=task_kind(model).title,
        labels=label_names(model),
        backbone=full_id,
        weights={key.partition("/weight_")[2]: value for key, value in diagnostics if "/weight_" in key},
        live=tuple(state.name for state in model.fusion.live()),
        layers=layers,
        parameters=model.n_parameters(),
        kept=model.kept_at_use(),
        frozen=model.config.base_model == "frozen",
        summed=model.fusion.terms() is not None,
        operations=2 * model.weights_at_use(),
        base_operations=2 * layer_parameters * layers or None,
        study=study,
    )


def study_summary(folder: str | Path, about: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the study around a `best/` folder says of its model, in values that JSON has.

    Args:
        folder: Of trained parts.
        about:  What is saved with them.

    Returns:
        What an earlier call left in `about`, or {}, where there is no study around; else
        study, name, question, smoke: the study's; commit: of the code
        arm, metric:  the configuration it is one seed of, and the score that selected it
        dataset, backbone: name, id and size of each
        max_length:   most tokens of a text
        scores:       by split and metric: `value`, its own; `mean`, `low`, `high`, `n`: of its arm over seeds, a
                      Student interval at `LEVEL`; without an interval where there is one seed

    Raises:
        BadInput: The study has no such trial.
    """
    path = Path(folder).expanduser().resolve()
    if path.name != BEST or not all((path.parent / name).is_file() for name in (STUDY, TRIALS)):
        return dict(about.get("study", {}))
    study_folder = Folder(path.parent)
    study, _ = read_study(study_folder)
    trials = read_trials(study_folder)
    rows = trials[trials["trial_id"] == about.get("trial_id")]
    if rows.empty:
        raise BadInput(
            f"wanted the trial {about.get('trial_id')!r} in {study_folder.uri}/{TRIALS}, it has none; "
            "best/ belongs to another study"
        )
    row = rows.iloc[0]
    if row["stage"] == "confirm":
        of_arm = (trials["arm"] == row["arm"]) & (trials["stage"] == "confirm")
        rows = trials[of_arm & (trials["status"] == "completed")]
    environment = study.environment
    dataset, backbone = asdict(environment.dataset), asdict(environment.backbone)
    return {
        "study": study.study,
        "name": study.name,
        "question": study.request.question,
        "smoke": study.runs.smoke,
        "commit": environment.git.commit,
        "arm": str(row["arm"]),
        "metric": study.request.metric,
        "max_length": study.request.flags.get("max_length"),
        "dataset": {key: dataset[key] for key in ("name", "source", "revision", "kind", "examples")},
        "backbone": {key: backbone[key] for key in ("name", "layers", "parameters", "layer_parameters")},
        "scores": _scores(study, row, rows),
    }


def _scores(study: StudyFile, row: pd.Series, seeds: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the scores of a trial next to those of its arm, the study's metric first."""
    kind = KINDS.get(study.environment.dataset.kind)
    metrics = dict.fromkeys((study.request.metric, *(kind.metrics if kind else ())))
    columns = {
        f"{prefix}/{metric}": {"split": split, "metric": metric}
        for prefix, split in (("test", "test"), ("val", "validation"))
        for metric in metrics
    }
    return [
        {**names, "value": float(row[column]), **_interval(seeds[column])}
        for column, names in columns.items()
        if column in seeds and not pd.isna(row[column])
    ]


def _interval(values: pd.Series) -> dict[str, Any]:
    """Return mean, Student interval and number of a score over seeds."""
    values = values.dropna().astype(float)
    n, mean = len(values), float(values.mean())
    if n < 2:
        return {"mean": mean, "low": None, "high": None, "n": n}
    half = float(stats.t.ppf((1 + LEVEL) / 2, n - 1) * values.std(ddof=1) / n**0.5)
    return {"mean": mean, "low": mean - half, "high": mean + half, "n": n}
