"""Score against the number of training examples, for studies that vary it."""

from __future__ import annotations

import pandas as pd

from adalayers.tasks.metrics import bounds
from reports.reading.frames import numbers
from reports.reading.load import Plan
from reports.tables.arms import confirmed, summaries

SIZE = "train_examples"
SIZE_COLUMNS = ["line", "examples", "mean", "low", "high", "n"]


def by_size(trials: pd.DataFrame, plan: Plan, split: str) -> pd.DataFrame:
    """A row per line and number of training examples, with the summary of the score over seeds.

    line: what an arm is called without the conditions that it ran under.
    Empty where `trials.csv` has no `train_examples` (nor `config/train_examples`), or the same number throughout.
    """
    rows = confirmed(trials)
    column = SIZE if numbers(rows, SIZE).notna().any() else f"config/{SIZE}"
    rows = rows.assign(examples=numbers(rows, column), score=numbers(rows, f"{split}/{plan.metric}"))
    rows = rows.dropna(subset=["examples"])
    if rows["examples"].nunique() < 2:
        return pd.DataFrame(columns=SIZE_COLUMNS)
    labels = {arm.name: arm.label or arm.name for arm in plan.arms}
    rows["line"] = [labels[arm] for arm in rows["arm"]]
    return summaries(
        rows.sort_values(SIZE_COLUMNS[:2], kind="stable"), SIZE_COLUMNS[:2], "score", bounds(plan.metric)
    )
