"""The same ratios on a GPU: python -m tests.benchmarks gpu_minilm gpu_roberta_large gpu_methods.

Live, stored (read from the page cache and copied) and resident (in the GPU's memory) features, extraction in float32
and bfloat16, a step of every method, memory of a trial. Refused where there is no GPU.
"""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import torch

from adalayers.backbones.sources import BackboneSource
from adalayers.features.features import LiveFeatures, StoredFeatures
from tests.benchmarks import groups, made, methods
from tests.benchmarks.lengths import cola_lengths
from tests.benchmarks.measure import interleaved, logger
from tests.benchmarks.sizes import Sizes
from tests.benchmarks.training import CONFIG, epoch_of, extraction, store

GPU = torch.device("cuda")


def shape_ratios(
    name: str, base: Callable[[Path, Sizes], BackboneSource], root: Path, sizes: Sizes
) -> dict[str, float]:
    """Return the keys of a base model's shape. Raises `SystemExit` where there is no GPU."""
    _require_gpu()
    source, encoded = base(root, sizes), made.encoded(cola_lengths(sizes.cola))
    root = root / name
    half = dataclasses.replace(source, dtype="bfloat16")
    extracting = extraction(root, {"float32": source, "bf16": half}, encoded, 3, GPU)
    for what, median in extracting.items():
        logger.info(f"{name}: {what} of {len(encoded.offsets) - 1} sequences takes {median:.3g} s")
    of_extraction = {
        "extract_over_forward": extracting["extract float32"] / extracting["forward float32"],
        "extract_over_forward_bf16": extracting["extract bf16"] / extracting["forward bf16"],
        "extract_bf16_over_float32": extracting["extract bf16"] / extracting["extract float32"],
    }
    copied = store(root, source, encoded, GPU)
    data = {
        "stored": made.trial_data(source, copied),
        "resident": made.trial_data(source, StoredFeatures(copied.folder, resident=True)),
        "live": made.trial_data(source, LiveFeatures(source, encoded)),
        "live_bf16": made.trial_data(half, LiveFeatures(half, encoded)),
    }
    epochs = {features: epoch_of(trial, CONFIG, GPU) for features, trial in data.items()}
    most = {}
    for features, epoch in epochs.items():
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        epoch()
        most[f"mb_{features}"] = (torch.cuda.max_memory_allocated() - before) / 1e6
    seconds = interleaved(epochs, sizes.repeats)
    for features in epochs:
        logger.info(
            f"{name}, epoch over {features}: {seconds[features]:.3g} s, {most[f'mb_{features}']:.0f} MB more"
        )
    ratios = {
        f"epoch_{above}_over_{below}": seconds[above] / seconds[below]
        for above in ("live", "live_bf16")
        for below in ("stored", "resident")
    }
    return {f"gpu_{key}_{name}": value for key, value in (of_extraction | ratios | most).items()}


def method_ratios(root: Path, sizes: Sizes) -> dict[str, float]:
    """Return the keys of the methods' steps. Raises `SystemExit` where there is no GPU."""
    _require_gpu()
    lengths = cola_lengths(4 * sizes.sample)
    ratios = methods.step_ratios(root / "methods", made.minilm(), lengths, sizes.repeats, GPU)
    return {f"gpu_{key}": value for key, value in ratios.items()}


def group_ratio(root: Path, sizes: Sizes) -> dict[str, float]:
    """Return an epoch of 64 trials that step as one, over that of one trial: MiniLM, resident features."""
    _require_gpu()
    lengths = cola_lengths(sizes.cola)
    seconds = groups.stored(root, made.minilm(), lengths, sizes.repeats, members=64, device=GPU)
    return {"gpu_group64_over_one": seconds["group"] / seconds["one"]}


def _require_gpu() -> None:
    if not torch.cuda.is_available():
        raise SystemExit("wanted a GPU, got none: python -m tests.benchmarks without `gpu_...` measures CPUs")
    logger.info(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
