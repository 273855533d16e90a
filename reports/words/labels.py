"""The words of the report: a column's name -> what an axis or a table calls it, with its unit."""

from __future__ import annotations

LABELS = {
    "mix_lr": "learning rate of the mix weights (per step)",
    "lr": "learning rate (per step)",
    "accuracy": "accuracy (share correct, 0 to 1)",
    "f1_macro": "macro F1 (0 to 1)",
    "matthews": "Matthews correlation (-1 to 1)",
    "precision": "entity precision (0 to 1)",
    "recall": "entity recall (0 to 1)",
    "f1": "entity F1 (0 to 1)",
    "pearson": "Pearson correlation (-1 to 1)",
    "spearman": "Spearman correlation (-1 to 1)",
    "r2": "R² (share of the variance explained, at most 1)",
    "rmse": "root mean squared error (unit of the labels)",
    "mae": "mean absolute error (unit of the labels)",
    "mix/entropy": "entropy of the mix weights p̃ (nats)",
    "mix/live_layers": "live layers (count)",
    "mix/weight": "mix weight p̃ (share of 1)",
    "layer": "layer (hidden state)",
    "step": "training step (count)",
    "convergence_step": "step of convergence (count)",
    "parameters": "added parameters (count)",
    "seconds": "time (seconds)",
    "difference": "difference to the control",
}

SPLITS = {"val": "validation", "test": "test", "train": "training"}


def label(column: str) -> str:
    """Return the label of a column, prefixes (`val/`, `test/`, `config/`) spelled out; unknown names stay."""
    prefix, _, rest = column.partition("/")
    if column in LABELS:
        return LABELS[column]
    if prefix in SPLITS and rest:
        return f"{SPLITS[prefix]} {LABELS.get(rest, rest)}"
    if prefix == "config" and rest:
        return LABELS.get(rest, rest)
    return column


def short(column: str) -> str:
    """Return the label without its unit, for running text and table heads."""
    return label(column).split(" (")[0]


def layer_name(hidden_state: str) -> str:
    """Return what a hidden state is called: "0" (or "00") is the embedding output."""
    if not hidden_state.isdigit():
        return hidden_state
    return f"layer {int(hidden_state)}" if int(hidden_state) else "embeddings"
