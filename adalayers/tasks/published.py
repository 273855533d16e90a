"""Entity scores as papers publish them: by seqeval (Nakayama 2018), in its default, conlleval's, mode.

For the best model alone: about ten times as slow as `metrics.token_scores`, which picks the epoch and gives the
same numbers but for rounding.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from adalayers.tasks.metrics import OUTSIDE, check_tags, entities

_AVERAGES = ("micro avg", "macro avg", "weighted avg")


def published_token_scores(
    labels: Sequence[Sequence[str]], predictions: Sequence[Sequence[str]]
) -> dict[str, float]:
    """Return what `metrics.token_scores` returns, worked out by seqeval. Raises `ValueError` likewise."""
    check_tags(labels, predictions)
    types: dict[str, int] = {}
    for sentences in (labels, predictions):
        entities(sentences, types)
    if not types:  # seqeval fails where there is nothing to report
        return {"precision": 0.0, "recall": 0.0, "f1": 0.0}
    from seqeval.metrics import classification_report

    with warnings.catch_warnings():
        # On what no prediction or no label makes undefined: it is 0 here, and said so in the documentation.
        warnings.simplefilter("ignore", UserWarning)
        report = classification_report(
            [[_prefixed(tag) for tag in sentence] for sentence in labels],
            [[_prefixed(tag) for tag in sentence] for sentence in predictions],
            output_dict=True,
            zero_division=0,
        )
    over_all = report["micro avg"]
    return {
        "precision": float(over_all["precision"]),
        "recall": float(over_all["recall"]),
        "f1": float(over_all["f1-score"]),
    } | {
        f"f1/{name}": float(row["f1-score"])
        for name, row in sorted(report.items())
        if name not in _AVERAGES and row["support"]
    }


def _prefixed(tag: str) -> str:
    """Return a tag without a prefix as `I-<tag>`: seqeval takes the first letter of any tag for its prefix."""
    prefix, dash, _ = tag.partition("-")
    return tag if tag == OUTSIDE or (dash and prefix in {"B", "I", "E", "S"}) else f"I-{tag}"
