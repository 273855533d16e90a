"""The thesis's published values (figures 7, 11, 15), as far as a study here compares with them.

The thesis's text and tables, not the released configurations; both base models share these values.
"""

from __future__ import annotations

import math

PUBLISHED_MIX: dict[str, dict[str, float]] = {
    "imdb": {"alpha": 70.0, "entropy_weight": 0.0, "cutoff": 5e-3},
    "cola": {"alpha": 64.0, "entropy_weight": 0.0, "cutoff": 1e-2},
    "conll2003": {"alpha": 128.0, "entropy_weight": 1e-3, "cutoff": 1e-2},
}

PUBLISHED_LR = 1e-4
PUBLISHED_BATCH: dict[str, int] = {"imdb": 1200, "cola": 600, "conll2003": 356}
"""Whole batches of the RoBERTa-large runs."""


def published_mix(dataset: str, head: str) -> tuple[dict[str, float], str]:
    """Return the published alpha, lambda and cutoff for a dataset, and the dataset that they are from.

    A dataset without published values takes those of CoLA (sequences) or CoNLL-2003 (tokens).
    """
    source = dataset if dataset in PUBLISHED_MIX else {"sequence": "cola", "token": "conll2003"}[head]
    return PUBLISHED_MIX[source], source


def logit_travel(source: str, *, mix_lr: float, batch_size: int, train_examples: int) -> float:
    """Return how many times as far a mix logit can travel in an epoch as in the published runs, at the same alpha.

    Under Adam a step moves p by about its rate, so an epoch's reach is rate times steps.
    """
    steps = math.ceil(train_examples / batch_size)
    published_steps = math.ceil(train_examples / PUBLISHED_BATCH[source])
    return (mix_lr * steps) / (PUBLISHED_LR * published_steps)
