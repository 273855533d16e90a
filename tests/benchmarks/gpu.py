"""The same ratios on a GPU: python -m tests.benchmarks gpu_minilm gpu_roberta_large gpu_steps.

Live, stored (read from the page cache and copied) and resident (in the GPU's memory) features, extraction in float32
and bfloat16, memory of a trial, a step of one trial and of many. Refused where there is no GPU.
"""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import torch

from adalayers.backbones.sources import BackboneSource
from adalayers.features.features import LiveFeatures, StoredFeatures
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.training.trainer import Trainer
from tests.benchmarks import groups, made
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


STEPS = (
    *(("minilm", 600, members, 1) for members in (1, 4, 16, 64)),
    ("minilm", 600, 64, 6),
    *(("minilm", 64, members, 1) for members in (1, 4, 16, 64)),
    *(("roberta_large", 64, members, 1) for members in (1, 16, 64)),
)
"""Of the table of steps: a base model, the batch, members, and their seeds."""


def step_table(root: Path, sizes: Sizes) -> dict[str, float]:
    """Return milliseconds of a step of some members over resident features, and print trial-steps a second."""
    _require_gpu()
    measured = {}
    for base, batch, members, seeds in STEPS:
        source = made.large(root, sizes) if base == "roberta_large" else made.minilm()
        lengths = cola_lengths(sizes.cola if base == "minilm" else sizes.sample * 4)
        folder = store(root / base, source, made.encoded(lengths), GPU).folder
        data = made.trial_data(source, StoredFeatures(folder, resident=True))
        configs = [LayerMixConfig(k=64, batch_size=batch, alpha=1.0 + member) for member in range(members)]
        trainers = [
            Trainer(config, data, seed=m * seeds // members, device=GPU) for m, config in enumerate(configs)
        ]
        epoch = groups.epoch_of(trainers)  # which ends with a copy of losses, and so has waited

        torch.cuda.reset_peak_memory_stats()
        seconds = interleaved({"epoch": epoch}, min(2, sizes.repeats))["epoch"]
        steps = len(data.splits["train"].shuffled(batch, 0, 1))
        milliseconds = 1e3 * seconds / steps
        logger.info(
            f"{base}, batch {batch}, {members} members of {seeds} seeds: {milliseconds:.3g} ms a step, "
            f"{1e3 * members / milliseconds:.0f} trial-steps/s, {torch.cuda.max_memory_allocated() / 1e9:.1f} GB"
        )
        measured[f"gpu_step_ms_{base}_{batch}_{members}" + ("" if seeds == 1 else f"_seeds{seeds}")] = (
            milliseconds
        )
    return measured


def _require_gpu() -> None:
    if not torch.cuda.is_available():
        raise SystemExit("wanted a GPU, got none: python -m tests.benchmarks without `gpu_...` measures CPUs")
    logger.info(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
