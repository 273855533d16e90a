"""Memory of one trial, each in a process of its own, by `in_new_process`.

What a process maps of a store or of weights is shared and not counted.
"""

import multiprocessing
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import torch

import adalayers.tuning.trainable  # noqa: F401  (a worker has it loaded)
from adalayers.backbones.sources import BackboneSource
from adalayers.config import TrialConfig
from adalayers.features.features import Features, LiveFeatures
from tests.benchmarks.made import BATCH, Sizes, base, cola_lengths, encoded, trial_data
from tests.benchmarks.training import CONFIG, epoch_of, store
from tests.benchmarks.training import methods as all_methods


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
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("RssAnon")).split()[1]) * 1024 / 1e6


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
    epoch = epoch_of(trial_data(source, features), config)
    with most_anonymous_mb() as most:
        epoch()
    return most[0]


def resident(root: Path, sizes: Sizes) -> dict[str, float]:
    """Return the memory of a trial over stored and over live features, on the large backbone."""
    source, lengths = base("roberta_large", root, sizes), cola_lengths(sizes.sample)
    # A live epoch is long, its memory is soon known.
    live = LiveFeatures(source, encoded(lengths[: 2 * BATCH]))
    features = {"stored": store(root, source, encoded(lengths)), "live": live}
    return {f"resident_mb_{how}": in_new_process(training_mb, source, each) for how, each in features.items()}


def methods(root: Path, sizes: Sizes) -> dict[str, float]:
    """Return the memory of a trial of each fusion, on the large backbone."""
    source = base("roberta_large", root, sizes)
    features = store(root, source, encoded(cola_lengths(2 * BATCH)))
    return {
        f"memory_mb_{name}": in_new_process(training_mb, source, features, config)
        for name, config in list(all_methods().items())[: sizes.levels]
    }
