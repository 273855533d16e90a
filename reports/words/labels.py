"""The words of the report: a column's name -> what an axis or a table calls it, with its unit."""

from __future__ import annotations

import re

from adalayers.tasks.metrics import metric

ODD = re.compile(r"[^\w/ .,:()+-]")
"""What no name of a column has: it is left out of labels, which stand on pages and in figures as they are."""


class AxisLabel(str):
    """What an axis calls a column, "accuracy (share correct, 0 to 1)"; `name` leaves out the unit."""

    name: str
    unit: str

    def __new__(cls, name: str, unit: str = "") -> AxisLabel:
        label = super().__new__(cls, f"{name} ({unit})" if unit else name)
        label.name, label.unit = name, unit
        return label


LABELS = {
    "mix_lr": AxisLabel("learning rate of the mix weights", "per step"),
    "lr": AxisLabel("learning rate", "per step"),
    "mix/entropy": AxisLabel("entropy of the mix weights p̃", "nats"),
    "mix/live_layers": AxisLabel("live layers", "count"),
    "mix/weight": AxisLabel("mix weight p̃", "share of 1"),
    "layer": AxisLabel("layer", "hidden state"),
    "training": AxisLabel("operations of training", "computed"),
    "use": AxisLabel("operations per token of one more task", "millions, computed"),
    "operations": AxisLabel("operations per token at use", "millions, computed"),
    "step": AxisLabel("training step", "count"),
}

SPLITS = {"val": "validation", "test": "test", "train": "training"}


def label(column: str) -> AxisLabel:
    """Return the label of a column, prefixes (`val/`, `test/`, `config/`) spelled out; unknown names stay."""
    prefix, _, rest = column.partition("/")
    if prefix in SPLITS and rest:
        return AxisLabel(f"{SPLITS[prefix]} {_own(rest).name}", _own(rest).unit)
    return _own(rest if prefix == "config" and rest else column)


def _own(name: str) -> AxisLabel:
    if known := metric(name):
        return AxisLabel(known.label or ODD.sub("?", name), known.unit)
    return LABELS.get(name, AxisLabel(ODD.sub("?", name)))


def short(column: str) -> str:
    """Return the label without its unit, for running text and table heads."""
    return label(column).name


def layer_name(hidden_state: str) -> str:
    """Return what a hidden state is called: "0" (or "00") is the embedding output."""
    if not hidden_state.isdigit():
        return hidden_state
    return f"layer {int(hidden_state)}" if int(hidden_state) else "embeddings"
