"""Scores and predictions of a model on a split."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor

from adalayers.data.trial_data import Batch, TrialData
from adalayers.model.model import FusionModel
from adalayers.ragged import token_batches

EVALUATION_TOKENS = 2048
"""Tokens, padding included, of one batch of an evaluation: about as many as in a training step, so about its memory."""
PREFIXES = {"validation": "val", "test": "test"}
"""Split -> prefix of its scores."""


def outputs(model: FusionModel, batch: Batch) -> Float[Tensor, "items outputs"]:
    """Return what the model gives for the batch's labels, one by one: its sequences, or its words."""
    device = batch.labels.device.type
    with torch.autocast(device, dtype=torch.bfloat16, enabled=device == "cuda"):
        given = model(batch.states, batch.lengths)
        if batch.words is not None:
            given = given[batch.words]
    return given.float()


@torch.no_grad()
def evaluate(
    model: FusionModel, data: TrialData, name: str, device: torch.device, *, published: bool = False
) -> tuple[dict[str, float], pd.DataFrame]:
    """Return the scores of a split, `val/*` or `test/*`, and a row of `predictions.parquet` per example.

    What a row says is the kind's (`TaskKind.prediction_columns`); items lost to truncation count as its `lost`.
    published: score as a study publishes it (`TaskKind.published_scores`), which may be slower
    """
    split = data.splits[name]
    model.eval()
    predicted = np.full(len(split.labels), data.kind.lost(data.label_names))
    probability = np.ones(len(split.labels))
    for examples in token_batches(split.features.lengths, EVALUATION_TOKENS):
        batch = split.batch(examples, model.fusion.live(), device)
        decoded, sure = data.kind.decode(outputs(model, batch))
        predicted[batch.rows] = decoded.cpu().numpy()
        probability[batch.rows] = sure.cpu().numpy()
    prefix = PREFIXES[name]
    scores = data.scores(split, predicted, published=published)
    columns = data.kind.prediction_columns(
        split.labels, predicted, probability, data.label_names, split.word_offsets
    )
    frame = pd.DataFrame({"split": prefix, "index": split.index, **columns})
    return {f"{prefix}/{key}": value for key, value in scores.items()}, frame
