"""What a Ray worker runs: one trial, reported to Tune after every evaluation."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import torch
from ray import tune

from adalayers.config import FIELDS, TrialConfig, with_overrides
from adalayers.data.request import DataRequest
from adalayers.data.trial_data import TrialData
from adalayers.errors import BadInput, unknown
from adalayers.model.model import save
from adalayers.results.files import BEST, PREDICTIONS
from adalayers.results.folder import Folder
from adalayers.results.record import PROGRESS
from adalayers.training.train import Diverged, Evaluation, Outcome, train

DATA_KEYS = tuple(field.name for field in dataclasses.fields(DataRequest) if field.name != "seed")
STUDY_KEYS = ("trial_id", "stage", "arm", "work", "threads")


def trainable(config: dict[str, Any], data: TrialData | None = None) -> None:
    """Train one trial under Ray Tune, reporting `epoch`, `val/*`, `mix/*`, `best` and `last` per evaluation.

    config: hyperparameters of `TrialConfig` by name, with `seed` (default 0). Without `data` it also names
            `backbone` and `dataset` and may hold the other fields of `DataRequest`: this is how the trainable
            serves `ray.tune.Tuner` outside a study. A study adds `STUDY_KEYS`; its trials leave what they did
            in the folder `work` and turn an exception into a row instead of raising it.

    Raises `BadInput` for an unknown key or an impossible value.
    """
    for key in config:
        if key not in FIELDS and key not in (*DATA_KEYS, *STUDY_KEYS, "seed"):
            raise unknown("key of a trial's configuration", key, [*FIELDS, *DATA_KEYS, "seed"])
    if "threads" in config:
        torch.set_num_threads(config["threads"])
    trial = with_overrides(TrialConfig(), {key: value for key, value in config.items() if key in FIELDS})
    data = data or _prepared(tuple((key, config[key]) for key in DATA_KEYS if key in config))
    if "work" in config:
        _run_in_study(trial, data, config)
    else:
        train(trial, data, seed=config.get("seed", 0), device=_device(), on_evaluation=_report)


def _run_in_study(trial: TrialConfig, data: TrialData, config: dict[str, Any]) -> None:
    work = Folder(config["work"])

    def on_evaluation(evaluation: Evaluation) -> None:
        _note(work, "unfinished", row=evaluation.row, history=evaluation.history)
        _report(evaluation)

    try:
        outcome = train(
            trial,
            data,
            seed=config["seed"],
            test=config["stage"] == "confirm",
            device=_device(),
            on_evaluation=on_evaluation,
            checkpoint=work,
        )
    except Diverged as error:
        _note(work, "diverged", error=str(error))
    except Exception as error:  # a trial that fails is a row, not the end of its study, nor of its worker
        _note(work, "failed", error=f"{type(error).__name__}: {error}".splitlines()[0])
    else:
        _leave(work, outcome, data, config)


def _leave(work: Folder, outcome: Outcome, data: TrialData, config: dict[str, Any]) -> None:
    about = {
        "trial_id": config["trial_id"],
        "labels": list(data.label_names),
        "hidden_states": outcome.model.states,
        "backbone": data.about["backbone"],
        "dataset": data.about["dataset"],
    }
    save(outcome.model, work.child(BEST), about=about)
    if len(outcome.predictions):
        work.write_parquet(PREDICTIONS, outcome.predictions)
    _note(work, "completed", row=outcome.row, history=outcome.history)


def _note(work: Folder, status: str, *, error: str = "", row: Any = None, history: Any = None) -> None:
    """Leave the trial's progress; written last, so that a status never promises files that are not there."""
    held = work.read_json(PROGRESS) if row is None and work.exists(PROGRESS) else {}
    row, history = row or {}, history or held.get("history", [])
    work.write_json(PROGRESS, {"status": status, "error": error, "row": row, "history": history})


def _report(evaluation: Evaluation) -> None:
    tune.report({**evaluation.metrics, "last": evaluation.last})


def _device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


@functools.lru_cache(maxsize=2)
def _prepared(request: tuple[tuple[str, Any], ...]) -> TrialData:
    from adalayers.data.prepare import prepare  # needs transformers and datasets; a study's workers do not

    values = dict(request)
    for name in ("backbone", "dataset"):
        if name not in values:
            raise BadInput(
                f"wanted {name!r} in the trial's configuration, got {sorted(values)}; name it in param_space"
            )
    return prepare(DataRequest(**values)).data("disk")
