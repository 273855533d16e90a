"""adalayers repeat: one trial of a study is trained again, alone, and its scores are compared."""

from __future__ import annotations

import dataclasses
import math

import torch

from adalayers.backbones.sources import RANDOM
from adalayers.backbones.states_folder import STATES
from adalayers.console.progress import show
from adalayers.data.prepare import prepare
from adalayers.environ import default_cache
from adalayers.errors import BadInput, unknown
from adalayers.features.features import Mode
from adalayers.request import DataRequest
from adalayers.results.files import TRIALS, study_folder
from adalayers.results.study_file import StudyFile, read_study
from adalayers.results.trial_row import read_trial_rows
from adalayers.storage.hub import local_copy
from adalayers.tasks.catalog import known_as
from adalayers.training.trainer import train

SAME, OTHER = 0, 1


def repeat(
    folder: str,
    trial_id: str,
    *,
    backbone: str | None = None,
    dataset: str | None = None,
    data_dir: str | None = None,
) -> int:
    """Train a trial again, and print its scores next to those of the study.

    Args:
        folder:   Of the study's results; nothing in it is changed.
        trial_id: Of a completed trial.
        backbone: Where its base model is; None: as the study has it, a folder by its path.
        dataset:  Where its data are, likewise.
        data_dir: A folder of local copies of both.

    Returns:
        `SAME` where all scores are, else `OTHER`.

    Raises:
        BadInput: There is no such trial, or what it was trained on is not what is here.
    """
    results = study_folder(folder)
    study = read_study(results)
    rows = read_trial_rows(results)
    if trial_id not in rows:
        raise unknown("trial", trial_id, rows)
    row = rows[trial_id]
    if row.status != "completed":
        raise BadInput(f"wanted a completed trial, {trial_id} is {row.status}; name another")
    config = row.config
    pool = bool(study.environment.features.pooling)
    prepared = prepare(data_request(study, backbone, dataset, data_dir)).reading([config], pool=pool)
    mode: Mode = "live" if study.environment.features.mode == "live" else "disk"
    data = prepared.data(mode, cache=default_cache())
    if (here := row.identity(data.shape, data.provenance)) != trial_id:
        raise BadInput(
            f"wanted what {trial_id} was trained on, {prepared.source.id} and {prepared.task.name} as they are here "
            f"make its row {here}; name the same ones with --backbone, --dataset, --data-dir, or restore {TRIALS}"
        )
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)  # as a study's workers
    on_cpu = study.environment.device.startswith("cpu") or not torch.cuda.is_available()
    device = "cpu" if on_cpu else "cuda"
    again = train(config, data, seed=row.seed, test=row.stage == "confirm", device=device).row
    same = row.found.get("predictions") in (None, again.get("predictions"))
    for name, score in again.items():
        if name.startswith(("val/", "test/")):
            cell = row.found.get(name)
            before = cell if isinstance(cell, int | float) else math.nan
            show(f"{name:<24} {before:.6f}  again {float(score):.6f}")
            same = same and before == score
    there = study.environment.machine
    other = (
        f"not the same: the study ran on {there}; other machines, groups and --cpus-per-trial round otherwise"
    )
    show("the same" if same else other)
    return SAME if same else OTHER


def data_request(
    study: StudyFile, backbone: str | None, dataset: str | None, data_dir: str | None
) -> DataRequest:
    """Return the data of a study, as its request has it."""
    base, data = study.environment.backbone, study.environment.dataset
    named = known_as(data.name, data.source)
    if dataset is None and data.source.startswith("local:"):
        dataset = data.path or data.name
    if backbone is None and base.id.startswith(STATES):
        backbone = f"{STATES}{base.path}"
    name = base.id.removeprefix(RANDOM)
    if backbone is None and base.path and "/" not in name and local_copy([name], data_dir) is None:
        backbone = f"{base.id.removesuffix(name)}{base.path}"
    return dataclasses.replace(
        study.request.data,
        backbone=backbone or (f"{base.id}@{base.revision}" if base.revision else base.id),
        dataset=dataset or (f"{named}@{data.revision}" if data.revision else named),
        data_dir=data_dir,
        metric=study.request.metric,
        backbone_dtype=base.dtype,
    )
