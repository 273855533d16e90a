"""The private memory of this process, from /proc, and of processes that do nothing else."""

import multiprocessing
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path


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
    context.set_forkserver_preload(["tests.benchmarks.resident"])
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(function, *arguments).result()
