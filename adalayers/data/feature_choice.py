"""How a study has its hidden states: held in memory, read from disk, or computed again at every read."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import numpy as np
import psutil
import torch

from adalayers.backbones.tokens import Encoded
from adalayers.console.progress import size
from adalayers.data.prepare import Prepared
from adalayers.features.features import Mode, extraction_batches, stored_bytes, usable_folder
from adalayers.features.store import is_complete
from adalayers.request import Resources

MEMORY_SHARE = 0.6
"""Most of the free memory, or GPU memory, that hidden states may take: the rest is for trials and for others."""
SAMPLE = 96
"""Training sequences that the backbone is timed on."""


def feature_choice(
    prepared: Prepared, wanted: Mode | Literal["auto"], cache: Path, resources: Resources
) -> tuple[Mode, str]:
    """Return how a study has its hidden states: as wanted, or for "auto" in memory or on disk where there is room.

    Args:
        prepared: Backbone and data.
        wanted: memory, disk, live or auto.
        cache: Folder of the store.
        resources: What a trial takes; one GPU where they do not say.
    """
    states = f"{size(prepared.store_bytes)} of hidden states"
    if wanted != "auto":
        return wanted, f"as asked; {states}"
    memory, disk, gpu = free_bytes(cache)
    if missing_bytes(prepared, cache) > disk:
        return "live", f"{states} do not fit the {size(disk)} that are free for the cache"
    room, of_room = float(memory), "memory that are free"
    if gpu is not None:
        trials = max(1.0, 1.0 / (resources.gpus_per_trial or 1.0))  # on one GPU
        room, of_room = gpu / trials, "GPU memory that a trial can have"
    if prepared.store_bytes <= MEMORY_SHARE * room:
        return "memory", f"{states} fit the {size(room)} of {of_room}"
    why = f"{states} do not fit the {size(room)} of {of_room}; --features live computes them again instead"
    return "disk", why


def not_stored(prepared: Prepared, cache: Path) -> list[Encoded]:
    """Return the splits whose hidden states are not stored whole."""
    return [
        encoded
        for encoded in prepared.encoded.values()
        if not is_complete(usable_folder(cache, prepared.source, encoded, prepared.request.precision))
    ]


def missing_bytes(prepared: Prepared, cache: Path) -> int:
    """Return the bytes of the hidden states that are not stored yet."""
    return sum(
        stored_bytes(prepared.source, encoded, prepared.request.precision)
        for encoded in not_stored(prepared, cache)
    )


def free_bytes(cache: Path) -> tuple[int, int, float | None]:
    """Return the free bytes of this machine's memory, of the cache's disk, and of a GPU (None without one)."""
    existing = next(folder for folder in (cache, *cache.parents) if folder.exists())
    gpu = torch.cuda.mem_get_info()[0] if torch.cuda.is_available() else None
    return psutil.virtual_memory().available, shutil.disk_usage(existing).free, gpu


def time_backbone(prepared: Prepared, device: torch.device) -> float:
    """Return the seconds that the backbone takes for a token, padding counted, in a batch as extraction makes it."""
    features, states = prepared.data("live").splits["train"].features, prepared.source.states
    sample = np.random.default_rng(0).permutation(len(features.lengths))[:SAMPLE]
    batches = extraction_batches(features.lengths[sample])
    batch = sample[batches[len(batches) // 2]]
    features.read(batch[:1], states, device)  # which loads the backbone
    began = time.monotonic()
    features.read(batch, states, device)[states[-1]].sum().item()  # the sum waits for a GPU
    return (time.monotonic() - began) / (len(batch) * int(features.lengths[batch].max()))


def padded_tokens(splits: Iterable[Encoded]) -> int:
    """Return the tokens of all passes of the backbone over these splits, padding counted."""
    lengths = [np.diff(encoded.offsets) for encoded in splits]
    return sum(
        len(batch) * int(of_split[batch[0]]) for of_split in lengths for batch in extraction_batches(of_split)
    )
