"""Scores of methods by number of training examples and epochs, for studies that compare them under both."""

from __future__ import annotations

import pandas as pd

from reports.reading.factors import column
from reports.reading.load import Plan
from reports.tables.data_size import SIZE

EPOCHS = "epochs"
CONDITIONS = (SIZE, EPOCHS)
FROZEN = "frozen"
_SUMMARIES = [f"{prefix}{name}" for prefix in ("val_", "") for name in ("mean", "low", "high", "n")]
METHOD_COLUMNS = ["arm", "role", "method", "base_model", "examples", "epochs", *_SUMMARIES]


def under_both(plan: Plan) -> bool:
    """Whether a study compares under numbers of examples and of epochs."""
    return {*CONDITIONS} <= {factor.name for factor in plan.factors if factor.condition}


def by_method(arms: pd.DataFrame, plan: Plan) -> pd.DataFrame:
    """A row per arm that a study plans itself: what it is, and its scores.

    arms:       as from `tables.arms`, whose summaries on validation (val_mean, ...) and on the split that arms are
                compared on (mean, ...) it has
    method:     the arm's label
    base_model: frozen, fine-tuned, or what else the arm says
    """
    planned = {arm.name: arm for arm in plan.arms if arm.role not in ("best", "tuned")}
    rows = arms[arms["arm"].isin(planned)]
    rows = rows.assign(
        base_model=[planned[name].config.get("base_model", FROZEN) for name in rows["arm"]],
        method=[planned[name].label or name for name in rows["arm"]],
        examples=pd.to_numeric(rows[column(SIZE)], errors="coerce"),
        epochs=pd.to_numeric(rows[column(EPOCHS)], errors="coerce"),
    )
    return rows.dropna(subset=["examples", "epochs"])[METHOD_COLUMNS].reset_index(drop=True)
