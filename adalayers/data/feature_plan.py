"""How a study has its hidden states: held in memory, read from disk, or computed again at every read."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import psutil
import torch

from adalayers.backbones.tokens import Encoded
from adalayers.console.progress import size
from adalayers.data.prepare import Prepared
from adalayers.features.extract import extraction_batches
from adalayers.features.features import Mode, stored_bytes, usable_folder
from adalayers.features.store import is_complete

MEMORY_SHARE = 0.6
"""Most of the free memory, or GPU memory, that hidden states may take: the rest is for trials and for others."""
SAMPLE = 96
"""Training sequences that the backbone is timed on."""
PROBE_BYTES = 64 << 20


@dataclass(frozen=True)
class FeaturePlan:
    """mode: memory, disk or live; why: the reason, in words."""

    mode: Mode
    why: str


def feature_plan(
    prepared: Prepared,
    asked: Mode | Literal["auto"],
    cache: Path,
    *,
    gpus_per_trial: float | None,
    dry_run: bool,
) -> FeaturePlan:
    """Return how a study has its hidden states: as asked, or for "auto" the quickest way that there is room for.

    Args:
        prepared: Backbone and data.
        asked: memory, disk, live or auto.
        cache: Folder of the store.
        gpus_per_trial: GPUs of a trial, or the share of one that it has; None: one.
        dry_run: Write nothing, not even to time the disk.
    """
    states = f"{size(prepared.store_bytes)} of hidden states"
    if asked != "auto":
        return FeaturePlan(asked, f"as asked; {states}")
    memory, disk, gpu = free_bytes(cache)
    if missing_bytes(prepared, cache) > disk:
        return FeaturePlan("live", f"{states} do not fit the {size(disk)} that are free for the cache")
    gpu = None if gpu is None else gpu / max(1.0, 1.0 / (gpus_per_trial or 1.0))
    if gpu is not None and prepared.store_bytes <= MEMORY_SHARE * gpu:
        return FeaturePlan("memory", f"{states} fit the {size(gpu)} of GPU memory that a trial can have")
    if prepared.store_bytes <= MEMORY_SHARE * memory:
        fits = f"{states} fit the {size(memory)} of memory that are free"
        return FeaturePlan("memory", fits) if gpu is None else FeaturePlan("disk", f"{fits}, not the GPU's")
    if dry_run or (cache.exists() and not os.access(cache, os.W_OK)):
        return FeaturePlan(
            "disk", f"{states} exceed memory; live if the disk proves slower than the backbone"
        )
    read, forward = prepared.store_bytes / read_rate(cache), forward_seconds(prepared)
    why = f"{states} exceed memory; reading them takes {read:.0f} s, computing them {forward:.0f} s"
    return FeaturePlan("disk" if read <= forward else "live", why)


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


@dataclass(frozen=True)
class Seconds:
    """How long the same work takes: on all cores; and on one, in time of that core, which no other process adds to."""

    all_cores: float
    one_core: float

    @property
    def quiet(self) -> float:
        """About the time on all cores of a quiet machine.

        Next to other work the threads of an operation wait for each other, and all take longer than one would alone.
        """
        return min(self.all_cores, self.one_core)


def time_work(work: Callable[[], object]) -> Seconds:
    """Do work twice, on all of torch's threads and on one, and return how long it took."""
    threads, began = torch.get_num_threads(), time.monotonic()
    work()
    all_cores = time.monotonic() - began
    torch.set_num_threads(1)
    try:
        began = time.process_time()
        work()
        return Seconds(all_cores, time.process_time() - began)
    finally:
        torch.set_num_threads(threads)


def time_backbone(prepared: Prepared, device: torch.device) -> Seconds:
    """Return about how long the backbone takes for a token, padding counted, in a batch as extraction makes it."""
    features, states = prepared.data("live").splits["train"].features, prepared.source.states
    sample = np.random.default_rng(0).permutation(len(features.lengths))[:SAMPLE]
    batches = extraction_batches(features.lengths[sample])
    batch = sample[batches[len(batches) // 2]]
    features.read(batch[:1], states, device)  # which loads the backbone
    # The sum waits for a GPU.
    taken = time_work(lambda: features.read(batch, states, device)[states[-1]].sum().item())
    tokens = len(batch) * int(features.lengths[batch].max())
    return Seconds(taken.all_cores / tokens, taken.one_core / tokens)


def forward_seconds(prepared: Prepared) -> float:
    """Return about how long the backbone takes over all splits, from a few training sequences."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    taken = time_backbone(prepared, device)
    seconds = taken.quiet if device.type == "cpu" else taken.all_cores
    return seconds * padded_tokens(prepared.encoded.values())


def padded_tokens(splits: Iterable[Encoded]) -> int:
    """Return the tokens of all passes of the backbone over these splits, padding counted."""
    lengths = [np.diff(encoded.offsets) for encoded in splits]
    return sum(
        len(batch) * int(of_split[batch[0]]) for of_split in lengths for batch in extraction_batches(of_split)
    )


def read_rate(folder: Path) -> float:
    """Return the bytes per second that reading from `folder` gives, past the page cache; leaves nothing behind."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(os.urandom(PROBE_BYTES))
        file.flush()
        os.fsync(file.fileno())
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        file.seek(0)
        began = time.perf_counter()
        while file.read(1 << 22):
            pass
        return PROBE_BYTES / (time.perf_counter() - began)
