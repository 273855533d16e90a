"""The words of the report: a column's name -> what an axis or a table calls it, with its unit."""

from __future__ import annotations

import re

ODD = re.compile(r"[^\w/ .,:()+-]")
"""What no name of a column has: it is left out of labels, which stand on pages and in figures as they are."""


class Label(str):
    """What an axis calls a column, "accuracy (share correct, 0 to 1)"; `name` leaves out the unit."""

    name: str
    unit: str

    def __new__(cls, name: str, unit: str = "") -> Label:
        label = super().__new__(cls, f"{name} ({unit})" if unit else name)
        label.name, label.unit = name, unit
        return label


LABELS = {
    "mix_lr": Label("learning rate of the mix weights", "per step"),
    "lr": Label("learning rate", "per step"),
    "accuracy": Label("accuracy", "share correct, 0 to 1"),
    "f1_macro": Label("macro F1", "0 to 1"),
    "matthews": Label("Matthews correlation", "-1 to 1"),
    "precision": Label("entity precision", "0 to 1"),
    "recall": Label("entity recall", "0 to 1"),
    "f1": Label("entity F1", "0 to 1"),
    "pearson": Label("Pearson correlation", "-1 to 1"),
    "spearman": Label("Spearman correlation", "-1 to 1"),
    "r2": Label("R²", "share of the variance explained, at most 1"),
    "rmse": Label("root mean squared error", "unit of the labels"),
    "mae": Label("mean absolute error", "unit of the labels"),
    "mix/entropy": Label("entropy of the mix weights p̃", "nats"),
    "mix/live_layers": Label("live layers", "count"),
    "mix/weight": Label("mix weight p̃", "share of 1"),
    "layer": Label("layer", "hidden state"),
    "step": Label("training step", "count"),
    "convergence_step": Label("step of convergence", "count"),
    "parameters": Label("added parameters", "count"),
    "seconds": Label("time", "seconds"),
    "difference": Label("difference to the control"),
}

SPLITS = {"val": "validation", "test": "test", "train": "training"}


def label(column: str) -> Label:
    """Return the label of a column, prefixes (`val/`, `test/`, `config/`) spelled out; unknown names stay."""
    prefix, _, rest = column.partition("/")
    inner = LABELS.get(rest, Label(ODD.sub("?", rest)))
    if column in LABELS:
        return LABELS[column]
    if prefix in SPLITS and rest:
        return Label(f"{SPLITS[prefix]} {inner.name}", inner.unit)
    return inner if prefix == "config" and rest else Label(ODD.sub("?", column))


def short(column: str) -> str:
    """Return the label without its unit, for running text and table heads."""
    return label(column).name


def layer_name(hidden_state: str) -> str:
    """Return what a hidden state is called: "0" (or "00") is the embedding output."""
    if not hidden_state.isdigit():
        return hidden_state
    return f"layer {int(hidden_state)}" if int(hidden_state) else "embeddings"
