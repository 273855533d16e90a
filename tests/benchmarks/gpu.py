"""The same ratios on a GPU: python -m tests.benchmarks gpu_minilm gpu_roberta_large gpu_steps.

Live, stored (read from the page cache and copied) and resident (in the GPU's memory) features, extraction in float32
and bfloat16, memory of a trial, a step of one trial and of many. Refused where there is no GPU.
"""

import dataclasses
from pathlib import Path

import torch

from adalayers.features.features import LiveFeatures, StoredFeatures
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.training.trainer import Trainer
from tests.benchmarks.made import Sizes, base, cola_lengths, encoded, trial_data
from tests.benchmarks.measure import interleaved, logger
from tests.benchmarks.training import epoch_of, extraction, group_epoch_of, store

GPU = torch.device("cuda")


def shape_ratios(name: str, root: Path, sizes: Sizes) -> dict[str, float]:
    """Return the keys of a base model's shape. Raises `SystemExit` where there is no GPU."""
    _require_gpu()
    source, texts = base(name, root, sizes), encoded(cola_lengths(sizes.cola))
    root = root / name
    half = dataclasses.replace(source, dtype="bfloat16")
    extracting = extraction(root, {"float32": source, "bf16": half}, texts, 3, GPU)
    logger.info(f"{name}, seconds for {len(texts.offsets) - 1} sequences: {extracting}")
    of_extraction = {
        "extract_over_forward": extracting["extract float32"] / extracting["forward float32"],
        "extract_over_forward_bf16": extracting["extract bf16"] / extracting["forward bf16"],
        "extract_bf16_over_float32": extracting["extract bf16"] / extracting["extract float32"],
    }
    copied = store(root, source, texts, GPU)
    data = {
        "stored": trial_data(source, copied),
        "resident": trial_data(source, StoredFeatures(copied.folder, resident=True)),
        "live": trial_data(source, LiveFeatures(source, texts)),
        "live_bf16": trial_data(half, LiveFeatures(half, texts)),
    }
    epochs = {features: epoch_of(trial, device=GPU) for features, trial in data.items()}
    most = {}
    for features, epoch in epochs.items():
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        epoch()
        most[f"mb_{features}"] = (torch.cuda.max_memory_allocated() - before) / 1e6
        logger.info(f"{name}, epoch over {features}: {most[f'mb_{features}']:.0f} MB more")
    seconds = interleaved(epochs, sizes.repeats)
    logger.info(f"{name}, seconds of an epoch: {seconds}")
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
    for name, batch, members, seeds in STEPS:
        source = base(name, root, sizes)
        lengths = cola_lengths(sizes.cola if name == "minilm" else sizes.sample * 4)
        folder = store(root / name, source, encoded(lengths), GPU).folder
        data = trial_data(source, StoredFeatures(folder, resident=True))
        configs = [LayerMixConfig(k=64, batch_size=batch, alpha=1.0 + member) for member in range(members)]
        trainers = [
            Trainer(config, data, seed=m * seeds // members, device=GPU) for m, config in enumerate(configs)
        ]
        epoch = group_epoch_of(trainers)  # which ends with a copy of losses, and so has waited

        torch.cuda.reset_peak_memory_stats()
        seconds = interleaved({"epoch": epoch}, min(2, sizes.repeats))["epoch"]
        steps = len(data.splits["train"].shuffled(batch, 0, 1))
        milliseconds = 1e3 * seconds / steps
        logger.info(
            f"{name}, batch {batch}, {members} members of {seeds} seeds: {milliseconds:.3g} ms a step, "
            f"{1e3 * members / milliseconds:.0f} trial-steps/s, {torch.cuda.max_memory_allocated() / 1e9:.1f} GB"
        )
        of_seeds = "" if seeds == 1 else f"_seeds{seeds}"
        measured[f"gpu_step_ms_{name}_{batch}_{members}{of_seeds}"] = milliseconds
    return measured


def _require_gpu() -> None:
    if not torch.cuda.is_available():
        raise SystemExit("wanted a GPU, got none: python -m tests.benchmarks without `gpu_...` measures CPUs")
    logger.info(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
