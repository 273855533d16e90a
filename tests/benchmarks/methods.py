"""What a training step of each fusion costs next to the layer mix's, and the memory of a trial of it.

python -m tests.benchmarks.methods <fusion> own|matched <backbone folder> <cache folder> <sequences> prints the most
private anonymous memory (MB) that a process has while it trains an epoch.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from adalayers.backbones import sources
from adalayers.backbones.sources import BackboneSource
from adalayers.config import DEFAULT_FUSION, FUSIONS, TrialConfig, config_class, hyperparameters, trial_config
from adalayers.features.features import StoredFeatures, store_folder
from tests.benchmarks import made
from tests.benchmarks.lengths import cola_lengths
from tests.benchmarks.measure import interleaved
from tests.benchmarks.memory import most_anonymous_mb
from tests.benchmarks.training import CPU, epoch_of, store

MATCHED, OWN = "matched", "own"


def configs() -> dict[tuple[str, str], TrialConfig]:
    """Return (fusion, matched or own) -> its configuration: projected to k with the layer mix's head, or neither."""
    assert hyperparameters()  # all methods are known
    found: dict[tuple[str, str], TrialConfig] = {}
    for fusion in FUSIONS:
        fields = config_class(fusion).__dataclass_fields__
        found[fusion, MATCHED] = trial_config(fusion=fusion, batch_size=32)
        if "own_width" in fields:
            found[fusion, OWN] = trial_config(fusion=fusion, batch_size=32, own_width=True, read_out="linear")
    return found


def epochs(
    root: Path, source: BackboneSource, lengths: np.ndarray, repeats: int, device: torch.device = CPU
) -> dict[str, float]:
    """Return the seconds of an epoch over stored features: "<fusion> <matched or own>" -> seconds."""
    features = store(root, source, made.encoded(lengths), device)
    data = made.trial_data(source, features)
    return interleaved(
        {f"{fusion} {how}": epoch_of(data, config, device) for (fusion, how), config in configs().items()},
        repeats,
    )


CONTROL = f"{DEFAULT_FUSION} {MATCHED}"


def rivals(seconds: Mapping[str, float]) -> list[str]:
    """Return the names in `epochs`' answer, without the one that all are compared with."""
    return [name for name in seconds if name != CONTROL]


def key(name: str) -> str:
    """Return what a method's ratio is called in the JSON object."""
    return f"step_{name.replace('-', '_').replace(' ', '_')}"


def main(fusion: str, how: str, backbone: str, cache: str, n: str) -> None:
    torch.set_num_threads(2)
    source, encoded = sources.resolve(backbone), made.encoded(cola_lengths(int(n)))
    features = StoredFeatures(store_folder(Path(cache), source, encoded))
    epoch = epoch_of(made.trial_data(source, features), configs()[fusion, how])
    with most_anonymous_mb() as most:
        epoch()
    print(most[0])


if __name__ == "__main__":
    main(*sys.argv[1:])
