"""A whole study, measured from the call of `run_study` to its return: what Ray and the record cost."""

from __future__ import annotations

import time
from pathlib import Path

import torch
from ray import tune

from adalayers.data.trial_data import TrialData
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.request import Resources, StudyRequest
from adalayers.results.files import read_trials
from adalayers.storage.folder import Folder
from adalayers.study import ConfirmedArm, Plan, Space, Study
from adalayers.tracking.mirror import Mirror
from adalayers.training.trainer import train
from adalayers.tuning.run import CaseToRun, run_study
from tests.helpers.made_data import made_data

SECONDS = 5.0


def study_over_training(output: Path, trials: int = 32, concurrent: int = 2) -> dict[str, float]:
    """Return wall seconds of a study of `trials` trials, and the summed seconds of its trials over `concurrent`."""
    data = made_data(layers=6, width=384, sizes=(512, 64, 64))  # MiniLM's shape
    base = LayerMixConfig(epochs=_epochs(data), patience=10_000, batch_size=64)
    space = Space({"alpha": tune.loguniform(0.5, 1024)}, {"lr": tune.loguniform(1e-4, 1e-2)}, {})
    study = Study("benchmark", "What does a study cost?", lambda: space, lambda setting: ([], []))
    plan = Plan(base, space, [ConfirmedArm("alpha-1", "core", base)])
    folder = Folder(output / "study")
    ask = StudyRequest(
        search="random",
        scheduler="fifo",
        trials=trials,
        seeds=0,
        command="python -m tests.benchmarks",
    )
    mirror = Mirror("none", experiment="b", run_name="b", study_key="b", artifact_root=None)
    began = time.perf_counter()
    resources = Resources(max_concurrent=concurrent)
    case = CaseToRun(
        plan=plan,
        data=data,
        folder=folder,
        mirror=mirror,
        smallest_effect=0.01,
        identity={},
        about={},
        before={"id": "b"},
    )
    run_study(study, [case], ask=ask, resources=resources, undecided=lambda _: ())
    wall = time.perf_counter() - began
    rows = read_trials(folder)
    assert list(rows["status"]) == ["completed"] * trials
    return {
        "wall": wall,
        "training": float(rows["seconds"].sum()) / concurrent,
        "trial": float(rows["seconds"].mean()),
    }


def _epochs(data: TrialData) -> int:
    """Return how many epochs take a trial's time on one thread."""
    torch.set_num_threads(1)
    ends: list[float] = []
    config = LayerMixConfig(epochs=4, batch_size=64)
    train(config, data, seed=0, on_evaluation=lambda evaluation: ends.append(time.perf_counter()))
    torch.set_num_threads(2)
    return max(1, round(SECONDS / ((ends[-1] - ends[0]) / 3)))
