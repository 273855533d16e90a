"""Where trained parts come from: what their study says of them, kept with them when they are saved elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
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


def origin_of(folder: str | Path, about: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the study around a `best/` folder says of its model, in JSON's own types; {} where there is none.

    study, name, question, smoke: the study's; commit: of the code
    arm, metric:  the configuration it is one seed of, and the score that selected it
    dataset, backbone: name, id and size of each
    max_length:   most tokens of a text
    scores:       by split and metric: `value`, its own; `mean`, `low`, `high`, `n`: of its arm over seeds, a Student
                  interval at `LEVEL`; without an interval where there is one seed
    """
    place = Path(folder).expanduser().resolve()
    if place.name != BEST or not all((place.parent / name).is_file() for name in (STUDY, TRIALS)):
        return dict(about.get("study", {}))
    of_study = Folder(place.parent)
    study, _ = read_study(of_study)
    trials = read_trials(of_study)
    rows = trials[trials["trial_id"] == about.get("trial_id")]
    if rows.empty:
        raise BadInput(
            f"wanted the trial {about.get('trial_id')!r} in {of_study.uri}/{TRIALS}, it has none; "
            "best/ belongs to another study"
        )
    row = rows.iloc[0]
    alike = trials[
        (trials["arm"] == row["arm"]) & (trials["stage"] == "confirm") & (trials["status"] == "completed")
    ]
    seeds = alike if row["stage"] == "confirm" else rows
    return {
        "study": study.study,
        "name": study.name,
        "question": study.request.question,
        "smoke": study.runs.smoke,
        "commit": study.environment.git.commit,
        "arm": str(row["arm"]),
        "metric": study.request.metric,
        "max_length": study.request.flags.get("max_length"),
        "dataset": {
            "name": study.environment.dataset.name,
            "source": study.environment.dataset.source,
            "revision": study.environment.dataset.revision,
            "kind": study.environment.dataset.kind,
            "examples": dict(study.environment.dataset.examples),
        },
        "backbone": {
            "name": study.environment.backbone.name,
            "layers": study.environment.backbone.layers,
            "parameters": study.environment.backbone.parameters,
            "layer_parameters": study.environment.backbone.layer_parameters,
        },
        "scores": _scores(study, row, seeds),
    }


def _scores(study: StudyFile, row: pd.Series, seeds: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the scores of a trial next to those of its arm, the study's metric first."""
    kind = KINDS.get(study.environment.dataset.kind)
    others = () if kind is None else kind.metrics
    found = []
    for prefix, split in (("test", "test"), ("val", "validation")):
        for metric in dict.fromkeys((study.request.metric, *others)):
            column = f"{prefix}/{metric}"
            if column not in seeds or pd.isna(row[column]):
                continue
            found.append(
                {"split": split, "metric": metric, "value": float(row[column]), **_interval(seeds[column])}
            )
    return found


def _interval(values: pd.Series) -> dict[str, Any]:
    """Return mean, Student interval and number of a score over seeds."""
    values = values.dropna().astype(float)
    n, mean = len(values), float(values.mean())
    if n < 2:
        return {"mean": mean, "low": None, "high": None, "n": n}
    half = float(stats.t.ppf((1 + LEVEL) / 2, n - 1) * values.std(ddof=1) / n**0.5)
    return {"mean": mean, "low": mean - half, "high": mean + half, "n": n}
