"""Memory of token trials, one after another in a worker that Ray Tune uses again, as a study's are."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ray
from ray import tune

from adalayers.config import trial_config
from adalayers.data.prepare import prepare
from adalayers.request import DataRequest
from adalayers.tuning.session import ray_session
from adalayers.tuning.trainable import trainable
from tests.benchmarks.memory import most_anonymous_mb

TRIALS, EPOCHS = 20, 2
READINGS = "readings"
GROWN_FROM = 5
"""Growth is counted from this trial: by then a worker has seen batches of all shapes."""


def resident_tokens(root: Path, trials: int = TRIALS) -> list[float]:
    """Return the most private anonymous memory (MB) of each trial: MiniLM, 2000 sentences, the default head."""
    data = prepare(DataRequest("minilm", "entities-demo")).data("disk", cache=root)
    of_study = {"case": 0, "trial": trial_config(epochs=EPOCHS), "stage": "search", "threads": 1}
    with ray_session(None):
        tune.Tuner(
            tune.with_resources(
                tune.with_parameters(_measured, data=[ray.put(data)], root=str(root)), {"cpu": 1.0}
            ),
            param_space={**of_study, "seed": tune.grid_search(list(range(trials)))},
            tune_config=tune.TuneConfig(reuse_actors=True, max_concurrent_trials=1),
            run_config=tune.RunConfig(storage_path=str(root / "ray"), verbose=0),
        ).fit()
    rows = [line.split() for line in (root / READINGS).read_text().splitlines()]
    assert len(rows) == trials, f"{len(rows)} of {trials} trials ended"
    assert len({process for process, _ in rows}) == 1, "the worker was not used again"
    return [float(most) for _, most in rows]


def _measured(config: dict[str, Any], data: Sequence[ray.ObjectRef], root: str) -> None:
    trial = f"trial-{config['seed']}"
    with most_anonymous_mb() as most:
        trainable({**config, "trial_id": trial, "work": f"{root}/{trial}"}, data)
    with (Path(root) / READINGS).open("a") as file:
        file.write(f"{os.getpid()} {most[0]}\n")
