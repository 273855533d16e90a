"""What a trained mix costs at use, computed: layers that must run, operations and parameters per token.

A layer whose mix weight is 0 is not projected, and above the deepest layer that is mixed nothing of the base model has
to run. Operations are two per weight and token of the base model's layers, the projections and the head; attention
scores, norms and the embedding table are left out.
"""

from __future__ import annotations

import pandas as pd

from reports.evidence.layer_weights import WEIGHT, at_best, state
from reports.evidence.tables import confirmed
from reports.reading.frames import numbers, texts
from reports.reading.load import Loaded

USE_COLUMNS = ["arm", "seed", "live", "deepest", "operations", "score"]
DEFAULT_K = 64


def at_use(loaded: Loaded, split: str) -> pd.DataFrame:
    """A row per confirmed trial of a layer mix on the encoder layers of a frozen base model.

    live:       layers with a weight above 0, once a cutoff that waited for the end of training is at work
    deepest:    number of the last of them: as many layers of the base model must run
    operations: per token, in millions; NaN where `study.json` does not know the base model's layers
    score:      of the trial, on `split`
    """
    rows = confirmed(loaded.results.trials)
    # A base model that was changed runs for one task alone.
    rows = rows.loc[pd.Series(texts(rows, "config/base_model"), index=rows.index).isin(["", "frozen"])]
    weights = at_best(rows, loaded.results.history).set_index("trial_id")
    columns = {
        column: parsed[1]
        for column in weights.columns
        if (parsed := state(column)) and parsed[0] == "encoder"
    }
    if not columns or len(columns) < len([c for c in weights.columns if c.startswith(WEIGHT)]):
        return pd.DataFrame(columns=USE_COLUMNS)
    backbone = loaded.study.environment.backbone
    k = loaded.study.request.fixed.get("k", DEFAULT_K)
    rows = rows[rows["trial_id"].isin(weights.index)].assign(
        cutoff=lambda table: numbers(table, "config/cutoff").fillna(0.0),
        k=lambda table: numbers(table, "config/k").fillna(k),
        trained=lambda table: numbers(table, "parameters"),
        score=lambda table: numbers(table, f"{split}/{loaded.plan.metric}"),
    )
    costs = []
    for row in rows.to_dict("records"):
        mix = weights.loc[row["trial_id"], list(columns)]
        live = [columns[str(name)] for name, weight in mix.items() if weight > row["cutoff"]]
        projections = row["k"] * backbone.width
        # A layer mix trains a projection for each layer that it reads, live or not.
        head = max(0.0, row["trained"] - projections * int(mix.notna().sum()))
        weights_used = max(live, default=0) * backbone.layer_parameters + len(live) * projections + head
        costs.append(
            {
                "arm": row["arm"],
                "seed": row["seed"],
                "live": len(live),
                "deepest": max(live, default=0),
                "operations": 2e-6 * weights_used if backbone.layer_parameters else float("nan"),
                "score": row["score"],
            }
        )
    return pd.DataFrame(costs, columns=USE_COLUMNS)


def by_arm(costs: pd.DataFrame) -> pd.DataFrame:
    """A row per arm, in order of appearance: means over seeds of live, deepest, operations and score; n seeds."""
    grouped = costs.groupby("arm", sort=False)
    means = grouped[["live", "deepest", "operations", "score"]].mean()
    return means.assign(n=grouped.size()).reset_index()


def untrained(trials: pd.DataFrame) -> bool:
    """Whether some arms train no projection, so that their parameters do not tell those of the head."""
    return any(text.lower() == "false" for text in texts(confirmed(trials), "config/train_projections"))
