"""Memory of one trial, and of loading a base model: each in a process of its own, by `in_new_process`.

What a process maps of a store or of weights is shared and not counted.
"""

import dataclasses
import multiprocessing
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import torch

import adalayers.tuning.trainable  # noqa: F401  (a worker has it loaded)
from adalayers.backbones import loading
from adalayers.backbones.sources import BackboneSource
from adalayers.config import TrialConfig
from adalayers.features.features import Features
from adalayers.states import ComputeType
from tests.benchmarks import made
from tests.benchmarks.training import CONFIG, epoch_of


@contextmanager
def most_anonymous_mb() -> Iterator[list[float]]:
    """Yield a list whose one number is the most of `anonymous_mb` so far, watched until the block is left."""
    most, done = [anonymous_mb()], threading.Event()

    def watch() -> None:
        while not done.wait(0.005):
            most[0] = max(most[0], anonymous_mb())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield most
    finally:
        done.set()
        watcher.join()


def anonymous_mb() -> float:
    """Return this process's private anonymous memory in MB (10^6 bytes)."""
    line = next(
        line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("RssAnon")
    )
    return int(line.split()[1]) * 1024 / 1e6


def in_new_process(function: Callable[..., float], *arguments: object) -> float:
    """Return what `function` returns in a process that has run nothing before.

    It is forked from a server that has imported what a study's worker imports, and nothing else.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.benchmarks.memory"])
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(function, *arguments).result()


def training_mb(source: BackboneSource, features: Features, config: TrialConfig = CONFIG) -> float:
    """Return the most private memory (MB) that the process has while it trains an epoch over `features`."""
    torch.set_num_threads(2)
    epoch = epoch_of(made.trial_data(source, features), config)
    with most_anonymous_mb() as most:
        epoch()
    return most[0]


def loading_over_weights(source: BackboneSource, dtype: ComputeType) -> float:
    """Return the most private memory while a base model is loaded, over the size of its weights in `dtype`."""
    loading.load(made.minilm())  # what loading imports is no part of it
    before = anonymous_mb()
    with most_anonymous_mb() as most:
        loaded = loading.load(dataclasses.replace(source, dtype=dtype))
    size = sum(weights.numel() * weights.element_size() for weights in loaded.parameters()) / 1e6
    return (most[0] - before) / size
