"""Memory of one trial, and of loading a base model: each in a process of its own, by `memory.in_new_process`.

What a process maps of a store or of weights is shared and not counted.
"""

import dataclasses

import torch

import adalayers.tuning.trainable  # noqa: F401  (a worker has it loaded)
from adalayers.backbones import loading
from adalayers.backbones.sources import BackboneSource
from adalayers.config import TrialConfig
from adalayers.features.features import Features
from adalayers.states import ComputeType
from tests.benchmarks import made
from tests.benchmarks.memory import anonymous_mb, most_anonymous_mb
from tests.benchmarks.training import CONFIG, epoch_of


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
