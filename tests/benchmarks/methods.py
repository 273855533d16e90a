"""What a training step of each fusion costs next to the layer mix's, and the memory of a trial of it."""

from pathlib import Path

import numpy as np

from adalayers.backbones.sources import BackboneSource
from adalayers.config import DEFAULT_FUSION, FUSIONS, TrialConfig, config_class, hyperparameters, trial_config
from tests.benchmarks import made
from tests.benchmarks.lengths import cola_lengths
from tests.benchmarks.measure import interleaved
from tests.benchmarks.memory import in_new_process, training_mb
from tests.benchmarks.sizes import BATCH, Sizes
from tests.benchmarks.training import epoch_of, store

CONTROL = f"{DEFAULT_FUSION}_matched".replace("-", "_")


def configs() -> dict[str, TrialConfig]:
    """Return each fusion projected to k with the layer mix's head (matched), and at its own width where it can."""
    assert hyperparameters()  # all methods are known
    found: dict[str, TrialConfig] = {}
    for fusion in FUSIONS:
        name = fusion.replace("-", "_")
        found[f"{name}_matched"] = trial_config(fusion=fusion, batch_size=32)
        if "own_width" in config_class(fusion).__dataclass_fields__:
            found[f"{name}_own"] = trial_config(
                fusion=fusion, batch_size=32, own_width=True, read_out="linear"
            )
    return found


def step_ratios(root: Path, source: BackboneSource, lengths: np.ndarray, repeats: int) -> dict[str, float]:
    """Return the seconds of an epoch over stored features, over those of the layer mix."""
    data = made.trial_data(source, store(root, source, made.encoded(lengths)))
    epochs = {name: epoch_of(data, config) for name, config in configs().items()}
    seconds = interleaved(epochs, repeats)
    return {f"step_{name}": seconds[name] / seconds[CONTROL] for name in seconds if name != CONTROL}


def memory_mb(root: Path, sizes: Sizes) -> dict[str, float]:
    """Return the memory of a trial of each fusion, on the large backbone."""
    source = made.large(root, sizes)
    features = store(root, source, made.encoded(cola_lengths(2 * BATCH)))
    return {
        f"memory_mb_{name}": in_new_process(training_mb, source, features, config)
        for name, config in list(configs().items())[: sizes.levels]
    }
