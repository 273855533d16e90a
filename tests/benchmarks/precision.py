"""What storing hidden states in half precision does to scores: paired by seed, on the embedded corpora."""

import dataclasses
from pathlib import Path

import numpy as np
import torch

from adalayers.data.prepare import prepare
from adalayers.features.features import Mode
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.request import DataRequest
from adalayers.states import Precision
from adalayers.training.trainer import train
from tests.benchmarks.measure import logger
from tests.benchmarks.sizes import Sizes

SEEDS = (1, 2, 3, 4, 5, 6, 7, 8)
CONFIG = LayerMixConfig(epochs=5, alpha=64.0)
FEATURES: dict[str, tuple[Mode, Precision]] = {
    "float32": ("disk", "float32"),
    "live": ("live", "float32"),
    "float16": ("disk", "float16"),
    "bfloat16": ("disk", "bfloat16"),
}


def score_differences(root: Path, sizes: Sizes) -> dict[str, float]:
    """Return, by dataset, mean and largest difference of validation scores to those over a float32 store."""
    measured = {}
    torch.set_num_threads(1)  # as a trial
    for dataset in ("acceptability-demo", "entities-demo")[: sizes.levels]:
        scores = {name: _scores(name, dataset, root, sizes) for name in FEATURES}
        stored = scores.pop("float32")
        spread = float(np.std(stored, ddof=1)) if len(stored) > 1 else 0.0
        logger.info(f"{dataset}: float32 {np.mean(stored):.4f}, SD over seeds {spread:.4f}")
        measured[f"score_sd/{dataset}"] = spread
        for name, others in scores.items():
            differences = others - stored
            measured[f"score_{name}_minus_float32/{dataset}"] = float(differences.mean())
            measured[f"score_{name}_minus_float32_largest/{dataset}"] = float(np.abs(differences).max())
    torch.set_num_threads(2)
    return measured


def _scores(name: str, dataset: str, root: Path, sizes: Sizes) -> np.ndarray:
    mode, precision = FEATURES[name]
    n = sizes.examples
    request = DataRequest(
        "minilm",
        dataset,
        train_examples=n,
        eval_examples=min(300, n),
        test_examples=min(300, n),
        precision=precision,
    )
    prepared = prepare(request)
    splits = {split: prepared.task.splits[split] for split in ("train", "validation")}
    task = dataclasses.replace(prepared.task, splits=splits)
    data = dataclasses.replace(prepared, task=task).data(mode, cache=root)
    seeds = SEEDS[: sizes.levels]
    return np.array([train(CONFIG, data, seed=seed).row[f"val/{data.metric}"] for seed in seeds])
