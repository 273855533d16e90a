"""The memory that loading a base model takes at most, over that of its weights:

python -m tests.benchmarks.loading float32|bfloat16 FOLDER
"""

from __future__ import annotations

import sys

import torch

from adalayers.backbones import backbone as backbones
from adalayers.backbones import sources
from tests.benchmarks.made import minilm
from tests.benchmarks.memory import anonymous_mb, most_anonymous_mb


def main(dtype: str, folder: str) -> None:
    """Print the most private memory in a load, over the size of the weights in `dtype`."""
    backbones.load(minilm())  # what loading imports is no part of it
    before = anonymous_mb()
    with most_anonymous_mb() as most:
        loaded = backbones.load(sources.resolve(folder), dtype=getattr(torch, dtype))
    size = sum(weights.numel() * weights.element_size() for weights in loaded.parameters()) / 1e6
    print((most[0] - before) / size)


if __name__ == "__main__":
    main(*sys.argv[1:])
