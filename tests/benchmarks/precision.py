"""What storing hidden states in half precision does to scores: paired by seed, on the embedded corpora."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import torch

from adalayers.config import TrialConfig
from adalayers.data.prepare import prepare
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.request import DataRequest
from adalayers.states import Precision
from adalayers.training.trainer import train

logger = logging.getLogger("adalayers.benchmarks")

SEEDS = range(1, 9)
DATASETS = ("acceptability-demo", "entities-demo")
ARMS: dict[str, tuple[str, Precision]] = {
    "float32": ("disk", "float32"),
    "live": ("live", "float32"),
    "float16": ("disk", "float16"),
    "bfloat16": ("disk", "bfloat16"),
}


def score_differences(root: Path) -> dict[str, float]:
    """Return, by dataset, mean and largest difference of validation scores to those over a float32 store."""
    measured = {}
    torch.set_num_threads(1)  # as a trial
    config = LayerMixConfig(epochs=5, alpha=64.0)
    for dataset in DATASETS:
        scores = {
            name: _scores(config, dataset, mode, precision, root) for name, (mode, precision) in ARMS.items()
        }
        spread = float(np.std(scores["float32"], ddof=1))
        logger.info(f"{dataset}: float32 {np.mean(scores['float32']):.4f}, SD over seeds {spread:.4f}")
        measured[f"score_sd/{dataset}"] = spread
        for name in ("live", "float16", "bfloat16"):
            differences = scores[name] - scores["float32"]
            measured[f"score_{name}_minus_float32/{dataset}"] = float(differences.mean())
            measured[f"score_{name}_minus_float32_largest/{dataset}"] = float(np.abs(differences).max())
    return measured


def _scores(config: TrialConfig, dataset: str, mode: str, precision: Precision, root: Path) -> np.ndarray:
    request = DataRequest("minilm", dataset, train_examples=800, eval_examples=300, precision=precision)
    data = prepare(request).data(mode, cache=root)  # type: ignore[arg-type]
    return np.array([train(config, data, seed=seed).row[f"val/{data.metric}"] for seed in SEEDS])
