"""Scores and mix weights by layer: single-layer baselines, and profiles of p~ over relative depth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from adalayers.tasks.metrics import bounds
from reports.reading.frames import numbers, texts
from reports.tables.arms import best_arm, confirmed, is_learned, summaries, summary
from reports.tables.mix import at_best, state, state_name, weight_columns
from reports.words.labels import layer_name

SINGLE_COLUMNS = ["state", "layer", "arm", "trained", "mean", "low", "high", "n"]
PROFILE_COLUMNS = ["state", "layer", "depth", "mean", "low", "high", "n"]


def single_layers(
    trials: pd.DataFrame, hidden_states: Sequence[str], metric: str, split: str
) -> pd.DataFrame:
    """A row per confirmed arm whose mix is one single layer, by layer, with the summary of its score.

    state: the hidden state used, 0 = embeddings; layer: its name; trained: whether its projection was. An arm on the
    last hidden state alone is one of them, if it is of the same fusion over a frozen base model. Empty where no other
    single-layer arm was run.
    """
    rows = confirmed(trials)
    rows = rows.assign(
        mix=texts(rows, "config/mix"),
        fusion=texts(rows, "fusion"),
        frozen=[text in ("", "frozen") for text in texts(rows, "config/base_model")],
        state=numbers(rows, "config/layer"),
        trained=[text.lower() != "false" for text in texts(rows, "config/train_projections")],
        score=numbers(rows, f"{split}/{metric}"),
    )
    single = rows[(rows["mix"] == "single") & rows["state"].notna() & rows["frozen"]]
    if single.empty:
        return pd.DataFrame(columns=SINGLE_COLUMNS)
    states = [int(name) for name in hidden_states if name.isdigit()]
    alike = rows["frozen"] & rows["fusion"].isin(set(single["fusion"]))
    last = rows[(rows["mix"] == "last") & alike].assign(state=max(states, default=0))
    if not states or max(states) in set(single["state"]):
        last = last.iloc[:0]
    used = (
        pd.concat([single, last])
        .astype({"state": int})
        .sort_values(["state", "arm", "trained"], kind="stable")
    )
    used["layer"] = [layer_name(str(number)) for number in used["state"]]
    return summaries(used, SINGLE_COLUMNS[:4], "score", bounds(metric)).drop_duplicates(["state", "trained"])


def best_learned_arm(arm_table: pd.DataFrame) -> str | None:
    """Return the arm with the best mean validation score among those that learn their mix."""
    kinds = zip(arm_table["mix"], arm_table["fusion"], strict=True)
    learned = pd.Series([is_learned(mix, fusion) for mix, fusion in kinds], index=arm_table.index, dtype=bool)
    return best_arm(arm_table[learned])


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
