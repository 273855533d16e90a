"""How a study has its hidden states: held in memory, read from disk, or computed again at every read."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import torch

from adalayers.backbones.tokens import Encoded
from adalayers.data.prepare import Prepared
from adalayers.errors import BadInput
from adalayers.features.features import Mode, serving_folder, stored_bytes
from adalayers.features.store import is_whole

MEMORY_SHARE = 0.6
"""Most of the free memory, or GPU memory, that hidden states may take: the rest is for trials and for others."""
SAMPLE, BATCH = 96, 16
"""Training sequences, and sequences of a forward pass, that the backbone is timed on."""
PROBE_BYTES = 64 << 20


@dataclass(frozen=True)
class Sizes:
    """Bytes that hidden states need, and that there are.

    store, missing: of all splits, and of those that are not stored yet
    memory, disk:   free on this machine and in the cache folder
    gpu:            free on a GPU, divided by the trials that share it; None without a GPU
    """

    store: int
    missing: int
    memory: int
    disk: int
    gpu: int | None = None


@dataclass(frozen=True)
class FeaturePlan:
    """mode: memory, disk or live; why: the reason, in words."""

    mode: Mode
    why: str


def plan_features(
    asked: str,
    sizes: Sizes,
    *,
    forward_seconds: Callable[[], float],
    read_rate: Callable[[], float] | None,
) -> FeaturePlan:
    """Return how hidden states are had: as asked, or for "auto" the quickest way that there is room for.

    forward_seconds: measures how long the backbone takes over all splits; read_rate: bytes per second that the
    cache's disk gives, None where nothing may be written. Both are called only where sizes do not decide.
    """
    size = f"{sizes.store / 1e9:.2f} GB of hidden states"
    gpu, memory = sizes.gpu, MEMORY_SHARE * sizes.memory
    if asked in ("memory", "disk", "live"):
        return FeaturePlan(asked, f"as asked; {size}")  # type: ignore[arg-type]
    if asked != "auto":
        raise BadInput(f"wanted --features auto, memory, disk or live, got {asked!r}")
    if sizes.missing > sizes.disk:
        free = f"{sizes.disk / 1e9:.2f} GB that are free for the cache"
        return FeaturePlan("live", f"{size} do not fit the {free}")
    if gpu is not None and sizes.store <= MEMORY_SHARE * gpu:
        return FeaturePlan("memory", f"{size} fit the {gpu / 1e9:.1f} GB of GPU memory that a trial can have")
    if sizes.store <= memory:
        fits = f"{size} fit the {sizes.memory / 1e9:.1f} GB of memory that are free"
        return FeaturePlan("memory", fits) if gpu is None else FeaturePlan("disk", f"{fits}, not the GPU's")
    if read_rate is None:
        return FeaturePlan("disk", f"{size} exceed memory; live if the disk proves slower than the backbone")
    read, forward = sizes.store / read_rate(), forward_seconds()
    why = f"{size} exceed memory; reading them takes {read:.0f} s, computing them {forward:.0f} s"
    return FeaturePlan("disk" if read <= forward else "live", why)


def feature_plan(
    prepared: Prepared, asked: str, cache: Path, *, gpus_per_trial: float | None, dry_run: bool
) -> FeaturePlan:
    """Return how a study has its hidden states; a dry run writes nothing, not even to time the disk.

    asked: auto, memory, disk or live; cache: the folder of the store
    gpus_per_trial: GPUs of a trial, or the share of one that it has; None: one
    """
    return plan_features(
        asked,
        sizes(prepared, cache, trials_per_gpu=max(1.0, 1.0 / (gpus_per_trial or 1.0))),
        forward_seconds=lambda: forward_seconds(prepared),
        read_rate=None if dry_run or _read_only(cache) else lambda: read_rate(cache),
    )


def _read_only(cache: Path) -> bool:
    return cache.exists() and not os.access(cache, os.W_OK)


def not_stored(prepared: Prepared, cache: Path) -> list[Encoded]:
    """Return the splits whose hidden states are not stored whole."""
    return [
        encoded
        for encoded in prepared.encoded.values()
        if not is_whole(serving_folder(cache, prepared.source, encoded, prepared.request.precision))
    ]


def sizes(prepared: Prepared, cache: Path, *, trials_per_gpu: float = 1.0) -> Sizes:
    """Return what a study's hidden states need, and what this machine has free now."""
    source, precision = prepared.source, prepared.request.precision
    existing = next(folder for folder in (cache, *cache.parents) if folder.exists())
    return Sizes(
        store=prepared.store_bytes,
        missing=sum(
            stored_bytes(source, len(encoded.input_ids), precision) for encoded in not_stored(prepared, cache)
        ),
        memory=psutil.virtual_memory().available,
        disk=shutil.disk_usage(existing).free,
        gpu=int(torch.cuda.mem_get_info()[0] / trials_per_gpu) if torch.cuda.is_available() else None,
    )


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
