"""Scores by number of training examples and epochs, for studies that vary the one or compare under both."""

from __future__ import annotations

import pandas as pd

from reports.reading.factors import column
from reports.reading.frames import numbers
from reports.reading.load import Plan
from reports.tables.arms import confirmed

SIZE, EPOCHS = "train_examples", "epochs"
CONDITIONS = (SIZE, EPOCHS)
FROZEN = "frozen"


def by_size(arms: pd.DataFrame, trials: pd.DataFrame, plan: Plan) -> pd.DataFrame:
    """A row per arm that ran on a known number of examples: the rows of `tables.arms`, and what it is.

    series:     what an arm is called without the conditions that it ran under; base_model: frozen, or how it is trained
    examples:   its number of training examples; epochs: at most, NaN unless the study compares under them
    Empty where all arms have the same number of examples. Of arms that a search found none is in it where the
    study compares under epochs too.
    """
    rows, crossed = (
        confirmed(trials),
        any(factor.name == EPOCHS and factor.condition for factor in plan.factors),
    )
    where = SIZE if numbers(rows, SIZE).notna().any() else column(SIZE)
    examples = numbers(rows, where).groupby(rows["arm"]).first()
    planned = {arm.name: arm for arm in plan.arms if not (crossed and arm.role in ("best", "tuned"))}
    table = arms[arms["arm"].isin(planned)]
    table = table.assign(
        series=[planned[name].label or name for name in table["arm"]],
        base_model=[planned[name].config.get("base_model", FROZEN) for name in table["arm"]],
        examples=table["arm"].map(examples).astype(float),
        epochs=numbers(table, column(EPOCHS)) if crossed else float("nan"),
    ).dropna(subset=["examples", "val_mean", *(["epochs"] if crossed else [])])
    return table if table["examples"].nunique() > 1 else table.iloc[:0]
