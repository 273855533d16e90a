"""How the costs grow: one factor at a time, the rest as in the standard benchmarks."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np

from adalayers.fusion.layer_mix import LayerMixConfig
from tests.benchmarks import made, training
from tests.benchmarks.lengths import cola_lengths
from tests.benchmarks.study import study_over_training

logger = logging.getLogger("adalayers.benchmarks")

BATCH = training.CONFIG.batch_size


def scaling(root: Path) -> dict[str, float]:
    """Return milliseconds of a head step by tokens, layers and k; epoch ratios by tokens; study ratios by trials."""
    measured: dict[str, float] = {}

    def note(key: str, value: float) -> None:
        logger.info(f"{key}: {value:.4g}")
        measured[key] = value

    for tokens in (8, 16, 32, 64, 128, 256):
        seconds = training.head_step(6, 384, np.full(BATCH, tokens), repeats=9)
        note(f"step_ms_by_length/{tokens}", 1000 * seconds["step"])
        note(f"step_over_matmul_by_length/{tokens}", seconds["step"] / seconds["products"])
    for layers in (3, 6, 12, 24):
        seconds = training.head_step(layers, 768, np.full(BATCH, 11), repeats=9)
        note(f"step_ms_by_layers/{layers}", 1000 * seconds["step"])
        note(f"step_over_matmul_by_layers/{layers}", seconds["step"] / seconds["products"])
    for k in (16, 32, 64, 128, 256):
        config = LayerMixConfig(k=k, batch_size=BATCH)
        seconds = training.head_step(12, 768, np.full(BATCH, 11), repeats=9, config=config)
        note(f"step_ms_by_k/{k}", 1000 * seconds["step"])
        note(f"step_over_matmul_by_k/{k}", seconds["step"] / seconds["products"])
    for tokens in (8, 32, 128):
        seconds = training.epochs(root, made.minilm(), np.full(8192 // tokens, tokens), repeats=3)
        note(f"epoch_live_over_stored_by_length/{tokens}", seconds["live"] / seconds["stored"])
    for n in (512, 2048, 7695):
        seconds = training.extraction(root, made.minilm(), cola_lengths(n), repeats=3)
        note(f"extract_over_forward_by_sequences/{n}", seconds["extract"] / seconds["forward"])
    for concurrent in (1, 2):
        seconds = study_over_training(root / str(concurrent), trials=8, concurrent=concurrent)
        note(f"study_over_training_by_concurrent/{concurrent}", seconds["wall"] / seconds["training"])
        note(f"trial_seconds_by_concurrent/{concurrent}", seconds["trial"])
    return measured
