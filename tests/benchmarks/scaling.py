"""How the costs grow: one factor at a time, the rest as in the standard benchmarks."""

import dataclasses
from pathlib import Path

import numpy as np

from adalayers.fusion.layer_mix import LayerMixConfig
from tests.benchmarks import made, training
from tests.benchmarks.lengths import cola_lengths
from tests.benchmarks.measure import logger
from tests.benchmarks.sizes import BATCH, Sizes
from tests.benchmarks.study import study_over_training


def scaling(root: Path, sizes: Sizes) -> dict[str, float]:
    """Return milliseconds of a head step by tokens, layers and k; epoch ratios by tokens; study ratios by trials."""
    measured: dict[str, float] = {}
    steps, repeats = min(9, sizes.steps), min(3, sizes.repeats)
    few = dataclasses.replace(sizes, trials=min(8, sizes.trials))

    def note(key: str, value: float) -> None:
        logger.info(f"{key}: {value:.4g}")
        measured[key] = value

    def step(varied: str, level: int, *, layers: int, width: int, tokens: int, k: int = 64) -> None:
        lengths, config = np.full(BATCH, tokens), LayerMixConfig(k=k, batch_size=BATCH)
        seconds = training.head_step(layers, width, lengths, steps, config)
        note(f"step_ms_by_{varied}/{level}", 1000 * seconds["step"])
        note(f"step_over_matmul_by_{varied}/{level}", seconds["step"] / seconds["products"])

    for tokens in (8, 16, 32, 64, 128, 256)[: sizes.levels]:
        step("length", tokens, layers=6, width=384, tokens=tokens)
    for layers in (3, 6, 12, 24)[: sizes.levels]:
        step("layers", layers, layers=layers, width=768, tokens=11)
    for k in (16, 32, 64, 128, 256)[: sizes.levels]:
        step("k", k, layers=12, width=768, tokens=11, k=k)
    for tokens in (8, 32, 128)[: sizes.levels]:
        lengths = np.full(16 * sizes.sample // tokens, tokens)
        seconds = training.epochs(root, made.minilm(), lengths, repeats)
        note(f"epoch_live_over_stored_by_length/{tokens}", seconds["live"] / seconds["stored"])
    for n in (512, 2048, 7695)[: sizes.levels]:
        encoded = made.encoded(cola_lengths(min(n, sizes.cola or n)))
        seconds = training.extraction(root, {"minilm": made.minilm()}, encoded, repeats)
        ratio = seconds["extract minilm"] / seconds["forward minilm"]
        note(f"extract_over_forward_by_sequences/{n}", ratio)
    for concurrent in (1, 2)[: sizes.levels]:
        seconds = study_over_training(root, few, concurrent)
        note(f"study_over_training_by_concurrent/{concurrent}", seconds["wall"] / seconds["training"])
        note(f"trial_seconds_by_concurrent/{concurrent}", seconds["trial"])
    return measured
