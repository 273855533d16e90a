"""Scores and mix weights by layer: single-layer baselines, and profiles of p~ over relative depth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from adalayers.results.study_file import RequestRecord
from reports.tables.arms import confirmed, summary
from reports.tables.factor import FROZEN
from reports.tables.mix import at_best, state, state_name, weight_columns
from reports.words import layer_name

PROFILE_COLUMNS = ["state", "layer", "depth", "mean", "low", "high", "n"]


def single_layers(arms: pd.DataFrame, request: RequestRecord, hidden_states: Sequence[str]) -> pd.DataFrame:
    """The rows of `tables.arms` with a score whose mix is one single layer of a frozen base model, by layer.

    state: the hidden state used, 0 = embeddings; layer: its name; trained: whether its projection was. An arm on the
    last hidden state alone is one of them, if it is of the same fusion. Empty where no other single-layer arm was run.
    """
    configs = {arm.name: arm.config for arm in request.arms if arm.config.get("base_model", FROZEN) == FROZEN}
    rows = arms[arms["arm"].isin(configs)].dropna(subset=["mean"])
    rows = rows.assign(
        state=[configs[arm].get("layer") for arm in rows["arm"]],
        trained=[configs[arm].get("train_projections") is not False for arm in rows["arm"]],
    )
    single = rows[(rows["mix"] == "single") & rows["state"].notna()]
    deepest = max((int(name) for name in hidden_states if name.isdigit()), default=None)
    if len(single) and deepest is not None and deepest not in set(single["state"]):
        last = rows[(rows["mix"] == "last") & rows["fusion"].isin(single["fusion"])]
        single = pd.concat([single, last.assign(state=deepest)])
    single = single.astype({"state": int}).sort_values(["state", "arm", "trained"], kind="stable")
    single = single.drop_duplicates(["state", "trained"])
    return single.assign(layer=[layer_name(str(number)) for number in single["state"]])


def profile(
    trials: pd.DataFrame, history: pd.DataFrame, layers: Mapping[str, int], arm: str | None
) -> pd.DataFrame:
    """The mix weights of one arm at each seed's best epoch, by depth, comparable between backbones.

    layers:   stream -> how many layers the backbone has in it; one that is not there has as many as were mixed
    state:    the number of the hidden state in its stream; depth: its place among the stream's layers,
              0 = embeddings, 1 = the last layer
    mean:     over n seeds, of the weight times the number of states mixed: 1 is the uniform mix
    low, high: its t interval. Empty where the depth of a hidden state cannot be told.
    """
    rows = confirmed(trials)
    weights = at_best(rows[rows["arm"] == arm], history)
    columns = weight_columns(weights)
    states = [parsed for column in columns if (parsed := state(column)) is not None]
    if weights.empty or len(states) != len(columns):
        return pd.DataFrame(columns=PROFILE_COLUMNS)
    table = []
    for column, (stream, number) in zip(columns, states, strict=True):
        total = layers.get(stream) or max(last for name, last in states if name == stream) or 1
        row = {"state": number, "layer": state_name(column), "depth": number / total}
        table.append(row | summary(weights[column] * len(columns), limits=(0.0, len(columns))))
    return pd.DataFrame(table)[PROFILE_COLUMNS].dropna(subset=["mean"])
