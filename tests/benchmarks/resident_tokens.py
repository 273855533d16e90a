"""Memory of token trials, one after another in a worker that Ray Tune uses again, as a study's are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ray import tune

from adalayers.data.prepare import prepare
from adalayers.data.request import DataRequest
from adalayers.data.trial_data import TrialData
from adalayers.tuning.session import ray_session
from adalayers.tuning.trainable import trainable
from tests.benchmarks.memory import most_anonymous_mb

TRIALS, EPOCHS = 20, 2
GROWN_FROM = 5
"""Growth is counted from this trial: by then a worker has seen batches of all shapes."""


def resident_tokens(root: Path, trials: int = TRIALS) -> list[float]:
    """Return the most private anonymous memory (MB) of each trial: MiniLM, 2000 sentences, the default head."""
    data = prepare(DataRequest("minilm", "entities-demo")).data("disk", cache=root)
    readings = root / "readings"
    with ray_session(None):
        tune.Tuner(
            tune.with_resources(
                tune.with_parameters(_measured, data=data, readings=str(readings)), {"cpu": 1.0}
            ),
            param_space={"epochs": EPOCHS, "threads": 1, "seed": tune.grid_search(list(range(trials)))},
            tune_config=tune.TuneConfig(reuse_actors=True, max_concurrent_trials=1),
            run_config=tune.RunConfig(storage_path=str(root / "ray"), verbose=0),
        ).fit()
    rows = [line.split() for line in readings.read_text().splitlines()]
    assert len(rows) == trials, f"{len(rows)} of {trials} trials ended"
    assert len({process for process, _ in rows}) == 1, "the worker was not used again"
    return [float(most) for _, most in rows]


def _measured(config: dict[str, Any], data: TrialData, readings: str) -> None:
    with most_anonymous_mb() as most:
        trainable(config, data)
    with Path(readings).open("a") as file:
        file.write(f"{os.getpid()} {most[0]}\n")
