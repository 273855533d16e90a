"""Scores and predictions of a model on a split."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from adalayers.study import Variant
from adalayers.tasks.metrics import RankMetric, metric
from adalayers.training.steps import Request, Steps

if TYPE_CHECKING:
    from adalayers.training.trainer import Trainer

EVALUATION_TOKENS = 2048
"""Tokens, padding included, of one batch of an evaluation: about as many as in a training step, so about its memory."""
ATTENTION = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
"""On a GPU. Without cuDNN's, which prepares every new shape for longer than a step takes: batches have many."""
PREFIXES = {"validation": "val", "test": "test"}
"""Split -> prefix of its scores."""


@contextlib.contextmanager
def reduced(device: torch.device) -> Iterator[None]:
    """Compute in bfloat16 on a GPU; on a CPU as the model is."""
    if device.type != "cuda":
        yield
        return
    with torch.autocast("cuda", dtype=torch.bfloat16), sdpa_kernel(ATTENTION):
        yield


def evaluate(
    trial: Trainer, name: str, epoch: float, *, with_rows: bool = False
) -> Steps[tuple[dict[str, float], pd.DataFrame]]:
    """Return, in steps, the scores of a split, `val/*` or `test/*`, and a row of `predictions.parquet` per example.

    What a row says is the kind's (`TaskKind.prediction_columns`); items that truncation cut away count as its
    `truncated_prediction`.
    with_rows: whether there are any
    """
    data, split = trial.data, trial.data.splits[name]
    predicted = np.full(len(split.labels), data.kind.truncated_prediction(data.label_names))
    probability = np.ones(len(split.labels))
    rows, of_rows, sure = yield Request(trial, name, epoch)
    predicted[rows], probability[rows] = of_rows, sure
    prefix, gold = PREFIXES[name], data.gold(split)
    frame = pd.DataFrame()
    if with_rows:
        columns = data.kind.prediction_columns(gold, predicted, probability)
        groups = {} if split.groups is None else {"group": split.groups}
        frame = pd.DataFrame({"split": prefix, "index": split.index, **groups, **columns})
    # Else no study would have these columns but those that began since there are such scores.
    ranked = isinstance(metric(data.metric), RankMetric)
    scores = data.kind.scores(gold, predicted, probability if ranked else None)
    return {f"{prefix}/{key}": value for key, value in scores.items()}, frame


def variant_scores(trial: Trainer, variants: Sequence[Variant], epoch: float) -> Steps[pd.DataFrame]:
    """Return, in steps, the rows of `evaluations.parquet` of a model on validation: split, variant, metric, value.

    A variant that is the model itself, or none, is left out.
    """
    rows, selects = [], trial.data.metric
    for variant in variants:
        changed = trial.model.as_variant(variant)
        if changed is not None:
            with changed:
                scores, _ = yield from evaluate(trial, "validation", epoch)
            rows.append(("val", variant.name, selects, scores[f"val/{selects}"]))
    return pd.DataFrame(rows, columns=["split", "variant", "metric", "value"])
