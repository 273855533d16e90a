"""Scores over one factor, or the number of training examples, by whatever else arms differ in."""

from __future__ import annotations

import pandas as pd

from adalayers.results.study_file import RequestRecord
from reports.reading.factors import cell_names, column
from reports.reading.frames import numbers
from reports.tables.arms import confirmed

SIZE, EPOCHS, FROZEN = "train_examples", "epochs", "frozen"


def over_factor(arms: pd.DataFrame, trials: pd.DataFrame, request: RequestRecord) -> tuple[str, pd.DataFrame]:
    """Return along which factor scores are shown, and the rows of `tables.arms` with x, series and panel.

    The factor is the number of training examples where arms differ in it, else the first one.

    x:      its level; series: what an arm is called besides, its base model if it is trained too
    panel:  its number of epochs, where arms are compared under these too, else ""
    Empty where there are no two levels.
    """
    rows = confirmed(trials)
    where = SIZE if numbers(rows, SIZE).notna().any() else column(SIZE)
    examples = arms["arm"].map(numbers(rows, where).groupby(rows["arm"]).first()).astype(float)
    planned = {arm.name: arm for arm in request.arms}
    if examples.nunique() > 1:
        crossed = any(factor.name == EPOCHS and factor.condition for factor in request.factors)
        base = [planned[name].config.get("base_model", FROZEN) for name in arms["arm"]]
        labels = _unfixed([planned[name].label or name for name in arms["arm"]])
        table = arms.assign(
            x=examples,
            series=[
                label if how == FROZEN else f"{label}, {how}" for label, how in zip(labels, base, strict=True)
            ],
            panel=numbers(arms, column(EPOCHS)) if crossed else "",
        )
        return SIZE, table.dropna(subset=["x", "panel"])
    core = arms[arms["role"] == "core"]
    if not request.factors or core[column(request.factors[0].name)].nunique() < 2:
        return "", arms.iloc[:0]
    table = core.assign(
        x=core[column(request.factors[0].name)], series=cell_names(core, request.factors[1:]), panel=""
    )
    return request.factors[0].name, table.dropna(subset=["x"])


def _unfixed(labels: list[str]) -> list[str]:
    """Return labels such as "k=64 dropout=0.1" without the settings that all of them have."""
    shared = set.intersection(*(set(label.split()) for label in labels))
    fixed = {part for part in shared if "=" in part}
    return [" ".join(part for part in label.split() if part not in fixed) or label for label in labels]
