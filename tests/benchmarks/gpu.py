"""The same ratios on a GPU: python -m tests.benchmarks gpu_minilm gpu_roberta_large gpu_methods.

Live, stored (read from the page cache and copied) and resident (in the GPU's memory) features, extraction in float32
and bfloat16, a step of every method, memory of a trial. Refused where there is no GPU.
"""

from __future__ import annotations

import dataclasses
import logging
import shutil
from pathlib import Path

import torch

from adalayers.backbones import backbone as backbones
from adalayers.backbones.sources import BackboneSource
from adalayers.backbones.tokens import Encoded
from adalayers.features.features import LiveFeatures, StoredFeatures, stored
from tests.benchmarks import made, methods
from tests.benchmarks.lengths import cola_lengths
from tests.benchmarks.measure import interleaved
from tests.benchmarks.training import CONFIG, batches_of, epoch_of

logger = logging.getLogger("adalayers.benchmarks")

GPU = torch.device("cuda")
HALF = "bfloat16"
REPEATS = 5


def of_shape(root: Path, name: str, source: BackboneSource) -> dict[str, float]:
    """Return the keys of a base model's shape. Raises `SystemExit` where there is no GPU."""
    _wanted()
    measured = _shape(root / name, source, made.encoded(cola_lengths()))
    return {f"gpu_{key}_{name}": value for key, value in measured.items()}


def of_methods(root: Path) -> dict[str, float]:
    """Return the keys of the methods' steps. Raises `SystemExit` where there is no GPU."""
    _wanted()
    seconds = methods.epochs(root / "methods", made.minilm(), cola_lengths(2048), REPEATS, GPU)
    return {
        f"gpu_{methods.key(name)}": seconds[name] / seconds[methods.CONTROL]
        for name in methods.rivals(seconds)
    }


def _wanted() -> None:
    if not torch.cuda.is_available():
        raise SystemExit("wanted a GPU, got none: python -m tests.benchmarks without `gpu_...` measures CPUs")
    logger.info(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")


def _shape(root: Path, source: BackboneSource, encoded: Encoded) -> dict[str, float]:
    half = dataclasses.replace(source, dtype=HALF)
    extraction = _extraction(root, source, half, encoded)
    copied = stored(root, source, encoded, lambda: backbones.load(source), device=GPU)
    data = {
        "stored": made.trial_data(source, copied),
        "resident": made.trial_data(source, StoredFeatures(copied.folder, resident=True)),
        "live": made.trial_data(source, LiveFeatures(source, encoded)),
        "live_bf16": made.trial_data(half, LiveFeatures(half, encoded)),
    }
    epochs = {name: epoch_of(each, CONFIG, GPU) for name, each in data.items()}
    most = {}
    for name, epoch in epochs.items():
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        epoch()
        most[f"mb_{name}"] = (torch.cuda.max_memory_allocated() - before) / 1e6
    seconds = interleaved(epochs, REPEATS)
    for name, each in seconds.items():
        logger.info(
            f"{root.name}: an epoch over {name} features takes {each:.3g} s, {most[f'mb_{name}']:.0f} MB more"
        )
    ratios = {
        f"epoch_{above}_over_{below}": seconds[above] / seconds[below]
        for above, below in (
            ("live", "stored"),
            ("live", "resident"),
            ("live_bf16", "stored"),
            ("live_bf16", "resident"),
        )
    }
    return extraction | ratios | most


def _extraction(
    root: Path, source: BackboneSource, half: BackboneSource, encoded: Encoded
) -> dict[str, float]:
    loaded = {
        "float32": (source, backbones.load(source).to(GPU)),
        "bf16": (half, backbones.load(half).to(GPU)),
    }
    places = [
        (torch.from_numpy(ids).to(GPU), torch.from_numpy(mask).to(GPU)) for ids, mask in batches_of(encoded)
    ]

    def forward(name: str) -> None:
        for ids, mask in places:
            loaded[name][1](ids, mask)
        torch.cuda.synchronize()

    def extract(name: str) -> None:
        shutil.rmtree(root / "extraction", ignore_errors=True)
        stored(root / "extraction", loaded[name][0], encoded, lambda: loaded[name][1], device=GPU)

    seconds = interleaved(
        {
            "forward float32": lambda: forward("float32"),
            "extract float32": lambda: extract("float32"),
            "forward bf16": lambda: forward("bf16"),
            "extract bf16": lambda: extract("bf16"),
        },
        3,
    )
    for name, each in seconds.items():
        logger.info(f"{root.name}: {name} of {len(encoded.offsets) - 1} sequences takes {each:.3g} s")
    return {
        "extract_over_forward": seconds["extract float32"] / seconds["forward float32"],
        "extract_over_forward_bf16": seconds["extract bf16"] / seconds["forward bf16"],
        "extract_bf16_over_float32": seconds["extract bf16"] / seconds["extract float32"],
    }
