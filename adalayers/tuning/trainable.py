"""What a Ray worker runs: a trial, or a group of them, reported to Tune as it goes on."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import gc
import logging
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import ray
import torch
from ray import tune

from adalayers.config import trial_config
from adalayers.data.trial_data import TrialData
from adalayers.errors import BadInput, CannotWrite
from adalayers.features.features import LiveFeatures, drop_resident_but_of
from adalayers.models.saved import save
from adalayers.request import DataRequest, Resources
from adalayers.results.files import BEST, EVALUATIONS, PREDICTIONS
from adalayers.results.provenance import other_software
from adalayers.results.record import PROGRESS
from adalayers.states import StreamChoice
from adalayers.storage.folder import Folder
from adalayers.training.members import is_out_of_memory
from adalayers.training.together import Pace, Steps, Together
from adalayers.training.trainer import CHECKPOINT_SHARE, Diverged, Evaluation, Outcome, restored, train
from adalayers.tuning.heartbeat import Heartbeat
from adalayers.tuning.job import TrialJob

logger = logging.getLogger(__name__)

SCHEDULED = ("epoch", "best", "round")
"""What a study's scheduler ranks trials by; all else goes home through the trial's folder."""

OTHER_SOFTWARE = "nothing was trained, the worker has other software than its driver"
REPORT_SECONDS, REPORT_SHARE = 2.0, 0.05
"""Trials that nothing stops early say how they stand at most this often, all of a program at once, and take at most
this share of its time for it: an epoch of a small one takes less."""

DATA_KEYS = tuple(field.name for field in dataclasses.fields(DataRequest) if field.name != "seed")


def trainable(
    config: dict[str, Any],
    data: Sequence[ray.ObjectRef] | None = None,
    software: Mapping[str, str] | None = None,
    resources: Resources = Resources(),  # noqa: B008  # frozen
) -> None:
    """Train one trial under Ray Tune, reporting `epoch`, `val/*`, `mix/*`, `best` and `last` per evaluation.

    Args:
        config: `fusion` (default layer-mix) and its hyperparameters by name, with `seed` (default 0), `backbone`,
            `dataset` and the other fields of `DataRequest`: this is how the trainable serves `ray.tune.Tuner`
            outside a study. `train_examples` is then the pool that is drawn and stored.
        data: Of a study, by case. `config` then holds a list of `TrialJob`s alone, as `jobs`; what a trial does is left
            in the folder that its job names, exceptions included, and Tune hears of what its scheduler decides by.
        software: Of a study's driver: a worker that imports other code or packages trains nothing.
        resources: Of a study.

    Raises:
        BadInput: For an unknown key or an impossible value.
    """
    if data is not None:
        jobs: list[TrialJob] = config["jobs"]
        if other := other_software(software or {}):
            for job in jobs:
                _write_progress(Folder(job.work), "failed", error=f"{OTHER_SOFTWARE}: {other}")
            return
        _leave_out_imports()  # before its data come: those must be collected
        torch.set_num_threads(max(1, int(resources.cpus_per_trial)))
        heartbeat = Heartbeat(Folder(jobs[0].work), resources.hang_minutes)
        heartbeat()  # hidden states may be far away
        run_in_study(jobs, ray.get(data[jobs[0].case]), resources, heartbeat)
        return
    values = {key: value for key, value in config.items() if key not in (*DATA_KEYS, "seed")}
    trial = trial_config(**values)
    given = {key: config[key] for key in DATA_KEYS if key in config}
    listed = ((key, tuple(value) if isinstance(value, list) else value) for key, value in given.items())
    pool = _prepared(tuple(listed), trial.stream)

    def on_evaluation(evaluation: Evaluation) -> None:
        tune.report({**evaluation.metrics, "last": evaluation.last})

    train(trial, pool, seed=config.get("seed", 0), device=_device(resources), on_evaluation=on_evaluation)


def run_in_study(
    jobs: Sequence[TrialJob], data: TrialData, resources: Resources, heartbeat: Heartbeat
) -> None:
    """Train trials of a study in turn, as `trainable` says; what each did is left in its folder, failures included.

    Args:
        jobs: What to train, with the folder of each.
        data: Of their case.
        resources: Of the study.
        heartbeat: Of the first job, for all.

    Raises:
        MemoryError: Or another error of memory, where there are several jobs: fewer may fit.
    """
    # Next to 0 a CPU takes up to a hundred times as long: gradients of a batch that is known by heart.
    torch.set_flush_denormal(True)
    for split in data.splits.values():
        if isinstance(split.features, LiveFeatures):
            split.features.shared = len(jobs) > 1
    drop_resident_but_of([split.features for split in data.splits.values()])
    shared = _Shared(heartbeat, alone=len(jobs) == 1)
    trials = [_trial(job, data, resources, shared) for job in jobs]
    try:
        Together(on_batch=shared.heartbeat).run(trials)
    finally:
        _give_back_memory()


class _Shared:
    """What trials of one program share: when they are saved and reported, at one epoch for all."""

    def __init__(self, heartbeat: Heartbeat, *, alone: bool):
        self.heartbeat, self.alone = heartbeat, alone
        self.saving, self.reporting = Pace(CHECKPOINT_SHARE), Pace(REPORT_SHARE, REPORT_SECONDS)
        self.reported = 0.0


def _trial(job: TrialJob, data: TrialData, resources: Resources, shared: _Shared) -> Steps[None]:
    """Train one trial, in steps."""
    work, confirms, alone = Folder(job.work), job.stage == "confirm", shared.alone
    if _progress(work).get("status") == "completed":  # before the worker died that had its group
        return

    history: list[dict[str, float]] | None = None

    def on_evaluation(evaluation: Evaluation) -> None:
        nonlocal history
        history, metrics = evaluation.history, evaluation.metrics
        epoch = metrics["epoch"]
        always = alone and (evaluation.last or not confirms)
        if not (shared.reporting.due(epoch) or always):
            return
        with shared.reporting.doing():
            _write_progress(work, "unfinished", row=evaluation.row, history=evaluation.history)
            if always or shared.reported != epoch:  # one speaks for all
                shared.reported = epoch
                scheduled = {name: metrics[name] for name in SCHEDULED if name in metrics}
                tune.report({**scheduled, "last": evaluation.last})

    for retries_left in reversed(range(1 + resources.retries)):
        try:
            device = torch.device(_device(resources))
            trainer = restored(job.config, data, seed=job.seed, device=device, checkpoint=work)
            trainer.on_batch, trainer.saving = shared.heartbeat, shared.saving
            outcome = yield from trainer.steps(on_evaluation, work, test=confirms, variants=job.variants)
        except CannotWrite:  # nor could its row be: the study's own writes say so
            raise
        except Diverged as error:
            _write_progress(work, "diverged", error=str(error), history=history)
        except Exception as error:  # a trial that fails is a row, not the end of its study, nor of its worker
            if is_out_of_memory(error) and not alone:
                raise
            why = f"{type(error).__name__}: {error}".splitlines()[0]
            if retries_left and not isinstance(error, BadInput):  # which would be the same again
                logger.info(f"trial {job.trial_id} failed ({why}): it is tried again from its checkpoint")
                _give_back_memory()
                continue
            _write_progress(work, "failed", error=why, history=history)
        else:
            _write_outcome(work, outcome, data, job.trial_id)
        break


def _progress(work: Folder) -> dict[str, Any]:
    """Return what a trial has left of itself, nothing where that is damaged: it is written again."""
    try:
        return work.read_sealed(PROGRESS)
    except (OSError, ValueError, TypeError):
        return {}


@functools.cache
def _leave_out_imports() -> None:
    """Leave what is imported out of the collections of garbage to come: of a small trial they would take half."""
    gc.collect()
    gc.freeze()


def _give_back_memory() -> None:
    """Give the memory that the trial has freed back to the system, so that a reused worker does not grow (glibc)."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform.startswith("linux") else None
    if trim is not None:
        trim(0)


def _write_outcome(work: Folder, outcome: Outcome, data: TrialData, trial_id: str) -> None:
    about = {
        "trial_id": trial_id,
        "kind": data.kind.name,
        "labels": list(data.label_names),
        **outcome.kind.about(),
        "hidden_states": [state.name for state in outcome.model.fusion.states],
        "backbone": dataclasses.asdict(data.provenance.backbone),
        "dataset": dataclasses.asdict(data.provenance.dataset),
        **({"pairs": True} if data.pairs else {}),
        **({"max_length": data.max_length} if data.max_length else {}),
    }
    save(outcome.model, work.child(BEST), about=about)
    if len(outcome.predictions):
        work.write_parquet(PREDICTIONS, outcome.predictions)
    if len(outcome.evaluations):
        work.write_parquet(EVALUATIONS, outcome.evaluations)
    _write_progress(work, "completed", row=outcome.row, history=outcome.history)


def _write_progress(
    work: Folder, status: str, *, error: str = "", row: Any = None, history: Any = None
) -> None:
    """Write the trial's progress; last of all it writes, so that a status never promises files that are not there."""
    if history is None:
        history = _progress(work).get("history", [])
    work.write_sealed(PROGRESS, {"status": status, "error": error, "row": row or {}, "history": history})


def _device(resources: Resources) -> str:
    """Return where to train; a trial that takes no GPU leaves alone those that Ray lets it see."""
    return "cuda" if resources.gpus_per_trial != 0 and torch.cuda.is_available() else "cpu"


@functools.lru_cache(maxsize=2)
def _prepared(request: tuple[tuple[str, Any], ...], stream: StreamChoice) -> TrialData:
    from adalayers.data.prepare import prepare  # needs transformers and datasets; a study's workers do not

    return prepare(DataRequest(**dict(request))).reading([trial_config(stream=stream)]).data("disk")
