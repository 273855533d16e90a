"""Groups: what all arms of a seed cost over one pass of the base model, beside one of them alone."""

from collections.abc import Callable, Sequence

import numpy as np
import torch

from adalayers.backbones.sources import BackboneSource
from adalayers.features.features import LiveFeatures
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.training.steps import SharedClock, Steps, in_turn
from adalayers.training.together import Together
from adalayers.training.trainer import Trainer
from tests.benchmarks import made
from tests.benchmarks.measure import interleaved
from tests.benchmarks.sizes import BATCH
from tests.benchmarks.training import CPU

ARMS = 15
EXAMPLES = 128
"""Few: a pass of a large base model takes seconds on a CPU."""


def arms(source: BackboneSource) -> list[LayerMixConfig]:
    """Return 15 arms as a study of alpha and lambda has them, with a uniform mix and single layers."""
    common = {"k": 64, "batch_size": BATCH}
    learned = [
        LayerMixConfig(**common, alpha=alpha, entropy_weight=weight)
        for alpha in (1.0, 8.0, 64.0, 512.0)
        for weight in (0.0, 1e-3, 1e-2)
    ]
    single = [LayerMixConfig(**common, mix="single", layer=layer) for layer in (1, source.layers // 2)]
    return [*learned, LayerMixConfig(**common, mix="uniform"), *single][:ARMS]


def live(source: BackboneSource, lengths: np.ndarray, repeats: int) -> dict[str, float]:
    """Return the seconds of an epoch of one arm over live features, and of 15 arms in turn."""
    features = LiveFeatures(source, made.encoded(lengths))
    features.shared = True
    data = made.trial_data(source, features)
    # One more, for an epoch of its own: those of a group are in the same epoch, and so read the same batches.
    one, *trainers = (
        Trainer(config, data, seed=0, device=CPU) for config in [*arms(source)[:1], *arms(source)]
    )
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as a trial has
    try:
        return interleaved({"one": epoch_of([one]), "group": epoch_of(trainers)}, repeats)
    finally:
        torch.set_num_threads(threads)


def epoch_of(trainers: Sequence[Trainer]) -> Callable[[], object]:
    """Return a function that trains one more epoch of all trials."""
    together = Together()

    def trial(trainer: Trainer) -> Steps[float]:
        trainer.progress.epoch += 1
        return (yield from trainer.train_epoch())

    return lambda: in_turn([trial(trainer) for trainer in trainers], SharedClock(), together)
