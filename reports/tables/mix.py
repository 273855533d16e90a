"""Rows of `history.parquet` -> the mix weights p~ of a trial, over its steps and at its best epoch."""

from __future__ import annotations

import pandas as pd

from reports.reading.frames import numbers
from reports.words import layer_name

WEIGHT = "mix/weight_"
ENCODER = "encoder"
"""The stream of columns that name none."""


def mix_history(history: pd.DataFrame, trial_id: str | None) -> pd.DataFrame:
    """The mix weights of one trial over its steps: step, layer, weight; layers in the mix's order."""
    rows = history[history["trial_id"] == trial_id]
    columns = {state_name(name): numbers(rows, name) for name in weight_columns(history)}
    weights = pd.DataFrame({"step": numbers(rows, "step"), **columns}).dropna(subset=["step"])
    table = weights.sort_values("step", kind="stable").melt("step", var_name="layer", value_name="weight")
    return table.dropna(subset=["weight"]).reset_index(drop=True)


def at_best(trials: pd.DataFrame, history: pd.DataFrame) -> pd.DataFrame:
    """The mix weights of several trials, a row each, at its best epoch: trial_id, then the weight columns."""
    rows = history[history["trial_id"].isin(trials["trial_id"])]
    columns = [column for column in weight_columns(rows) if numbers(rows, column).notna().any()]
    best = numbers(trials.set_index("trial_id"), "best_epoch").dropna()
    if not columns or "epoch" not in history.columns or best.empty:
        return pd.DataFrame(columns=["trial_id"])
    rows = rows[rows["trial_id"].isin(best.index)]
    rows = rows[numbers(rows, "epoch") == rows["trial_id"].map(best)]
    weights = pd.DataFrame({"trial_id": rows["trial_id"], **{name: numbers(rows, name) for name in columns}})
    return weights.dropna(subset=columns, how="all").drop_duplicates("trial_id", keep="last")


def mix_milestones(mix: pd.DataFrame) -> pd.DataFrame:
    """The table of the history of p~: a row per layer, a column for the first, middle and last steps."""
    steps = sorted(mix["step"].unique())
    if not steps:
        return pd.DataFrame({"layer": pd.Series(dtype=str)})
    chosen = sorted({steps[round(share * (len(steps) - 1))] for share in (0, 0.25, 0.5, 0.75, 1)})
    rows = mix[mix["step"].isin(chosen)].drop_duplicates(["step", "layer"], keep="last")
    table = rows.pivot(index="layer", columns="step", values="weight").reindex(mix["layer"].drop_duplicates())
    table.columns = [f"step {step:.0f}" for step in table.columns]
    return table.reset_index()


def weight_columns(history: pd.DataFrame) -> list[str]:
    """Return the columns of mix weights, in the order of the layers, the encoder's first."""
    columns = [column for column in history.columns if column.startswith(WEIGHT)]
    return sorted(columns, key=_place)


def _place(column: str) -> tuple[bool, str, int]:
    """Return what columns are sorted by: the encoder's by number, then other streams', then what names no state."""
    parsed = state(column)
    if parsed is None:
        return True, column, 0
    stream, number = parsed
    return False, "" if stream == ENCODER else stream, number


def state(column: str) -> tuple[str, int] | None:
    """Return stream and number of the hidden state that a column of mix weights is of; None where its name says none.

    `mix/weight_03` is layer 3 of the encoder, `mix/weight_decoder_03` of the decoder; number 0 is the embeddings.
    """
    stream, _, number = column.removeprefix(WEIGHT).rpartition("_")
    return (stream or ENCODER, int(number)) if number.isdigit() else None


def state_name(column: str) -> str:
    """Return what the hidden state of a column of mix weights is called: "embeddings", "layer 3", "decoder layer 3"."""
    parsed = state(column)
    if parsed is None:
        return column.removeprefix(WEIGHT)
    stream, number = parsed
    return layer_name(str(number)) if stream == ENCODER else f"{stream} {layer_name(str(number))}"
