"""Random streams by name: whatever draws has a stream of its own, so that what one part draws moves no other."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Iterator

import numpy as np
import torch


def stream(seed: int, *names: str | int) -> int:
    """Return the seed of one stream of `seed`; streams of other names or seeds are unrelated to it."""
    words = [zlib.crc32(name.encode()) if isinstance(name, str) else name for name in names]
    return int(np.random.SeedSequence([seed, *words]).generate_state(1, np.uint64)[0] >> np.uint64(1))


@contextlib.contextmanager
def drawing(seed: int, *names: str | int) -> Iterator[None]:
    """Let torch's global stream on the CPU be that of `stream(seed, *names)`, and put it back afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(stream(seed, *names))  # torch.manual_seed reseeds the GPUs too
        yield
