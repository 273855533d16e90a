"""Mix weights p~ of a trial over its steps and at its best epoch, their profile over depth, and layers alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pandas as pd

from adalayers.results.study_file import RequestRecord
from reports.reading.frames import numbers
from reports.tables.arms import confirmed, summary
from reports.tables.factor import FROZEN
from reports.words import layer_name

WEIGHT = "mix/weight_"
_OF_STATE = re.compile(WEIGHT + r"([a-z]+_)?\d+")
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
    rows = rows[numbers(rows, "epoch") == rows["trial_id"].map(best)]
    weights = pd.DataFrame({"trial_id": rows["trial_id"], **{name: numbers(rows, name) for name in columns}})
    return weights.dropna(subset=columns, how="all").drop_duplicates("trial_id", keep="last")


def mix_milestones(mix: pd.DataFrame) -> pd.DataFrame:
    """The table of the history of p~: a row per layer, a column for the first, middle and last steps."""
    steps = sorted(mix["step"].unique())
    chosen = sorted({steps[round(share * (len(steps) - 1))] for share in (0, 0.25, 0.5, 0.75, 1)})
    rows = mix[mix["step"].isin(chosen)].drop_duplicates(["step", "layer"], keep="last")
    table = rows.pivot(index="layer", columns="step", values="weight").reindex(mix["layer"].drop_duplicates())
    table.columns = [f"step {step:.0f}" for step in table.columns]
    return table.reset_index()


def weight_columns(history: pd.DataFrame) -> list[str]:
    """Return the columns of mix weights, in the order of the layers, the encoder's first."""
    columns = [name for name in history.columns if _OF_STATE.fullmatch(name)]
    return sorted(columns, key=lambda column: (state(column)[0] != ENCODER, state(column)))


def state(column: str) -> tuple[str, int]:
    """Return stream and number of the hidden state that a column of mix weights is of.

    `mix/weight_03` is layer 3 of the encoder, `mix/weight_decoder_03` of the decoder; number 0 is the embeddings.
    """
    stream, _, number = column.removeprefix(WEIGHT).rpartition("_")
    return stream or ENCODER, int(number)


def state_name(column: str) -> str:
    """Return what the hidden state of a column of mix weights is called: "embeddings", "layer 3", "decoder layer 3"."""
    stream, number = state(column)
    return layer_name(number) if stream == ENCODER else f"{stream} {layer_name(number)}"


def single_layers(arms: pd.DataFrame, request: RequestRecord, hidden_states: Sequence[str]) -> pd.DataFrame:
    """The rows of `tables.arms` with a score whose mix is one single layer of a frozen base model, by layer.

    state: the hidden state used, 0 = embeddings; layer: its name; trained: whether its projection was. An arm on the
    last hidden state alone is one of them, if it is of the same fusion. Empty where no other single-layer arm was run.
    """
    configs = {arm.name: arm.config for arm in request.arms if arm.config.get("base_model", FROZEN) == FROZEN}
    rows = arms[arms["arm"].isin(configs)].dropna(subset=["mean"])
    rows = rows.assign(
        state=rows["arm"].map(lambda arm: configs[arm].get("layer")),
        trained=rows["arm"].map(lambda arm: configs[arm].get("train_projections") is not False),
    )
    width = configs.get(request.control, {}).get("k")
    own = rows["arm"].map(lambda arm: configs[arm].get("k", width) == width)
    rows = rows[own] if own.any() else rows  # of several widths that of the control
    single = rows[(rows["mix"] == "single") & rows["state"].notna()]
    deepest = max((int(name) for name in hidden_states if name.isdigit()), default=None)
    if len(single) and deepest is not None and deepest not in set(single["state"]):
        last = rows[(rows["mix"] == "last") & rows["fusion"].isin(single["fusion"])]
        single = pd.concat([single, last.assign(state=deepest)])
    single = single.astype({"state": int}).sort_values(["state", "arm", "trained"], kind="stable")
    single = single.drop_duplicates(["state", "trained"])
    return single.assign(layer=[layer_name(number) for number in single["state"]])


def profile(
    trials: pd.DataFrame, history: pd.DataFrame, layers: Mapping[str, int], arm: str | None
) -> pd.DataFrame:
    """The mix weights of one arm at each seed's best epoch, by depth, comparable between backbones.

    layers:   stream -> how many layers the backbone has in it; one that is not there has as many as were mixed
    state:    the number of the hidden state in its stream; depth: its place among the stream's layers,
              0 = embeddings, 1 = the last layer
    mean:     over n seeds, of the weight times the number of states mixed: 1 is the uniform mix
    low, high: its t interval
    """
    rows = confirmed(trials)
    weights = at_best(rows[rows["arm"] == arm], history)
    columns = weight_columns(weights)
    if weights.empty:
        return pd.DataFrame()
    states, table = [state(column) for column in columns], []
    for column, (stream, number) in zip(columns, states, strict=True):
        total = layers.get(stream) or max(last for name, last in states if name == stream) or 1
        row = {"state": number, "layer": state_name(column), "depth": number / total}
        table.append(row | summary(weights[column] * len(columns), limits=(0.0, len(columns))))
    return pd.DataFrame(table).dropna(subset=["mean"])
