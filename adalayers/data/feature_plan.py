"""How a study has its hidden states: held in memory, read from disk, or computed again at every read."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import psutil
import torch

from adalayers.backbones.tokens import Encoded
from adalayers.console.progress import size
from adalayers.data.prepare import Prepared
from adalayers.features.features import Mode, stored_bytes, usable_folder
from adalayers.features.store import is_complete

MEMORY_SHARE = 0.6
"""Most of the free memory, or GPU memory, that hidden states may take: the rest is for trials and for others."""
SAMPLE, BATCH = 96, 16
"""Training sequences, and sequences of a forward pass, that the backbone is timed on."""
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
    if dry_run or _read_only(cache):
        return FeaturePlan(
            "disk", f"{states} exceed memory; live if the disk proves slower than the backbone"
        )
    read, forward = prepared.store_bytes / read_rate(cache), forward_seconds(prepared)
    why = f"{states} exceed memory; reading them takes {read:.0f} s, computing them {forward:.0f} s"
    return FeaturePlan("disk" if read <= forward else "live", why)


def _read_only(cache: Path) -> bool:
    return cache.exists() and not os.access(cache, os.W_OK)


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


def forward_seconds(prepared: Prepared) -> float:
    """Return about how long the backbone takes over all splits, from a few training sequences."""
    split = prepared.data("live").splits["train"]
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    chosen = np.random.default_rng(0).permutation(len(split))[:SAMPLE]
    began = time.monotonic()
    for start in range(0, len(chosen), BATCH):
        split.features.read(chosen[start : start + BATCH], prepared.source.states[-1:], device)
    tokens = int(split.features.lengths[chosen].sum())
    return (time.monotonic() - began) * prepared.n_tokens / tokens


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
