"""What the study around trained parts found: kept with them, and told by their card."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
from scipy import stats

from adalayers.errors import BadInput
from adalayers.results.files import BEST, STUDY, TRIALS, read_trials
from adalayers.results.study_file import StudyFile, read_study
from adalayers.storage.folder import Folder
from adalayers.tasks.kinds import KINDS

LEVEL = 0.95
"""Of the intervals over seeds."""


def study_summary(folder: str | Path, about: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the study around a `best/` folder says of its model, in values that JSON has.

    Args:
        folder: Of trained parts.
        about:  What is saved with them.

    Returns:
        What an earlier call left in `about`, or {}, where there is no study around; else
        study, name, smoke: the study's; commit: of the code
        arm, metric:  the configuration it is one seed of, and the score that selected it
        dataset, backbone: name, id and size of each
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
        "smoke": study.runs.smoke,
        "commit": environment.git.commit,
        "arm": str(row["arm"]),
        "metric": study.request.metric,
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
