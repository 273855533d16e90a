"""Memory of one trial: python -m tests.benchmarks.resident stored|live <backbone folder> <cache folder> <sequences>.

Prints the most private anonymous memory (MB) that the process had while it trained; what it maps of the store is
shared and not counted. It imports what a study's worker does, Ray included.
"""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import torch

import adalayers.tuning.trainable  # noqa: F401  (a worker has it loaded)
from adalayers.backbones import sources
from adalayers.features.features import LiveFeatures, StoredFeatures, store_folder
from tests.benchmarks import made
from tests.benchmarks.lengths import cola_lengths
from tests.benchmarks.training import epoch_of

MODES = ("stored", "live")


def main(mode: str, backbone: str, cache: str, n: str) -> None:
    torch.set_num_threads(2)
    source, encoded = sources.resolve(backbone), made.encoded(cola_lengths(int(n)))
    features = (
        LiveFeatures(source, encoded)
        if mode == "live"
        else StoredFeatures(store_folder(Path(cache), source, encoded))
    )
    epoch, most, done = epoch_of(made.trial_data(source, features)), [0.0], threading.Event()

    def watch() -> None:
        while not done.is_set():
            most[0] = max(most[0], anonymous_mb())
            time.sleep(0.005)

    watcher = threading.Thread(target=watch)
    watcher.start()
    epoch()
    done.set()
    watcher.join()
    print(most[0])


def anonymous_mb() -> float:
    """Return this process's private anonymous memory in MB (10^6 bytes)."""
    line = next(
        line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("RssAnon")
    )
    return int(line.split()[1]) * 1024 / 1e6


if __name__ == "__main__":
    main(*sys.argv[1:])
