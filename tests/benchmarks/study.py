"""A whole study from its command line to its results, without the page: what Ray and the record cost, and memory."""

import dataclasses
import os
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest import mock

import pandas as pd
import torch

from adalayers.command.main import main
from adalayers.data.prepare import prepare
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.request import DataRequest
from adalayers.training.trainer import train
from adalayers.tuning.trainable import trainable
from studies.alpha_lambda import STUDY
from tests.benchmarks.made import Sizes
from tests.benchmarks.measure import logger
from tests.benchmarks.memory import most_anonymous_mb
from tests.helpers.studying import without_pages

GROWN_FROM = 5
"""Growth is counted from this trial: by then a worker has seen batches of all shapes."""
ARMS = 15


def study_over_training(root: Path, sizes: Sizes) -> dict[str, float]:
    """Return wall seconds of a study, and the summed seconds of its trials over how many run at a time."""
    few = {"eval_examples": 64, "test_examples": 64}
    request = DataRequest("minilm", "acceptability-demo", train_examples=sizes.sample, **few)
    data = prepare(request).data("disk", cache=root)  # stored once, as in most studies
    torch.set_num_threads(1)  # as a trial
    ends: list[float] = []
    probe = LayerMixConfig(epochs=4, batch_size=64)
    train(probe, data, seed=0, on_evaluation=lambda evaluation: ends.append(time.perf_counter()))
    torch.set_num_threads(2)
    epochs = max(1, round(sizes.seconds / ((ends[-1] - ends[0]) / 3)))
    began = time.perf_counter()
    fixed = ("--set", "batch_size=64", f"patience={epochs}")
    trials = _study(root, request, sizes.trials, epochs, sizes.concurrent, *fixed)
    training = float(trials["seconds"].sum()) / sizes.concurrent
    return {"wall": time.perf_counter() - began, "training": training}


def resident_tokens(root: Path, sizes: Sizes) -> dict[str, float]:
    """Return the most private memory (MB) of 20 token trials, one after another in a worker that is used again.

    MiniLM, 2000 sentences, the default head, two epochs.
    """
    readings = root / "readings"

    def measured(config: dict[str, Any], **parameters: Any) -> None:
        with most_anonymous_mb() as most:
            trainable(config, **parameters)
        with readings.open("a") as file:
            file.write(f"{os.getpid()} {most[0]}\n")

    few = dict.fromkeys(("eval_examples", "test_examples"), min(400, sizes.sentences))
    request = DataRequest("minilm", "entities-demo", train_examples=sizes.sentences, **few)
    with mock.patch("adalayers.tuning.run.trainable", measured):
        _study(root, request, min(20, sizes.trials), 2, 1)
    rows = [line.split() for line in readings.read_text().splitlines()]
    assert len({process for process, _ in rows}) == 1, "the worker was not used again"
    every = [float(most) for _, most in rows]
    logger.info(f"memory of {len(every)} token trials in one worker: {every} MB")
    grown = every[-1] - every[min(GROWN_FROM, len(every)) - 1]
    return {"resident_mb_tokens": max(every), "resident_mb_tokens_growth": grown}


def grouped_over_ungrouped(root: Path, sizes: Sizes) -> dict[str, float]:
    """Return wall seconds of a study of 15 arms over stored features, two at a time: trial by trial, and in groups."""
    few = {"eval_examples": 64, "test_examples": sizes.examples}
    request = DataRequest("minilm", "acceptability-demo", train_examples=sizes.examples, **few)
    prepare(request).data("disk", cache=root)
    seeds, seconds, arms = min(4, sizes.trials), {}, ARMS if sizes.levels is None else 3
    for name, size in (("ungrouped", 1), ("grouped", ARMS)):
        began = time.perf_counter()
        grouping = ("--features", "disk", "--group", str(size))
        _study(root, request, seeds, 4, sizes.concurrent, *grouping, arms=arms)
        seconds[name] = time.perf_counter() - began
    return seconds


def _study(
    root: Path, request: DataRequest, seeds: int, epochs: int, concurrent: int, *more: str, arms: int = 1
) -> pd.DataFrame:
    """Return the rows of `trials.csv` of a study of its first arms."""
    design = dataclasses.replace(
        STUDY.design, arms=lambda setting: (STUDY.design.arms(setting)[0][:arms], [])
    )
    study = dataclasses.replace(STUDY, design=design)
    output = tempfile.mkdtemp(dir=root)
    sizes = ("backbone", "dataset", "train_examples", "eval_examples", "test_examples")
    flags = {name: getattr(request, name) for name in sizes} | {"trials": 0, "seeds": seeds, "epochs": epochs}
    flags |= {"max_concurrent": concurrent, "tracking_uri": "none", "cache_dir": root, "output": output}
    given = (f"--{name.replace('_', '-')}={value}" for name, value in flags.items() if value is not None)
    with without_pages():
        main(study, [*given, *more])
    (table,) = Path(output).rglob("trials.csv")
    rows = pd.read_csv(table)
    assert set(rows["status"]) == {"completed"}
    return rows
