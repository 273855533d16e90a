"""Memory of one trial: python -m tests.benchmarks.resident stored|live <backbone folder> <cache folder> <sequences>.

Prints the most private anonymous memory (MB) that the process had while it trained; what it maps of the store is
shared and not counted. It imports what a study's worker does, Ray included.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

import adalayers.tuning.trainable  # noqa: F401  (a worker has it loaded)
from adalayers.backbones import sources
from adalayers.features.features import LiveFeatures, StoredFeatures, store_folder
from tests.benchmarks import made
from tests.benchmarks.lengths import cola_lengths
from tests.benchmarks.memory import most_anonymous_mb
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
    epoch = epoch_of(made.trial_data(source, features))
    with most_anonymous_mb() as most:
        epoch()
    print(most[0])


if __name__ == "__main__":
    main(*sys.argv[1:])
