"""What each method costs: its trained parameters, training, and what one more task adds at use; a row per arm.

Operations, weights and numbers kept are computed by the trials (columns `cost/*`); seconds are measured.
"""

from __future__ import annotations

import math

import pandas as pd

from adalayers.comparisons import PlannedArm
from adalayers.results.study_file import BackboneRecord, RequestRecord
from reports.reading.frames import numbers, records, texts
from reports.tables.arms import confirmed

MEASURED = {
    "parameters": "parameters",
    "seconds": "seconds",
    "training": "cost/training",
    "use": "cost/use",
    "weights": "cost/weights",
    "layers": "cost/layers",
    "live": "mix/live_layers",
}
"""Column of `by_arm` -> column of `trials.csv`."""

EQUAL = 0.01
"""Share of a cost within which another is equal."""


def by_arm(trials: pd.DataFrame, request: RequestRecord, split: str) -> pd.DataFrame:
    """A row per confirmed arm, in the request's order: means over its n seeds.

    intact:     whether the base model stays as it is, so that other tasks can share its pass
    parameters: trained; seconds: of training, measured; training: its operations, in all
    use:        operations per token that one more task adds, in millions
    weights:    that one more task adds; layers: of the base model that have to run
    live:       layers with a weight above 0, of a layer mix
    score:      on `split`; trials that diverged count with the score they have, and have no costs

    Empty where trials do not say what they cost.
    """
    rows = confirmed(trials)
    costs = pd.DataFrame({name: numbers(rows, column) for name, column in MEASURED.items()})
    costs = costs.assign(
        score=numbers(rows, f"{split}/{request.metric}"),
        intact=[text in ("", "frozen") for text in texts(rows, "config/base_model")],
    ).dropna(subset=["score"])
    grouped = costs.groupby(rows["arm"])
    means = grouped.mean().assign(intact=grouped["intact"].all(), n=grouped.size())
    order = pd.Index([arm.name for arm in request.arms], name="arm")
    return means.reindex(order).dropna(subset=["weights"]).reset_index()


def compared(table: pd.DataFrame, request: RequestRecord, backbone: BackboneRecord) -> pd.DataFrame:
    """Return the rows of `by_arm`, the best first, with number, kind and operations.

    kind:       what a method reads: hidden states projected to k, at their own width; or it changes the base model
    operations: per token at use, in millions, of the base model's layers too
    """
    base = table["layers"] * (backbone.layer_parameters or math.nan)
    kinds = {arm.name: _kind(arm) for arm in request.arms}
    table = table.assign(
        kind=table["arm"].map(kinds).where(table["intact"].astype(bool), "base model changed"),
        operations=(2e-6 * base + table["use"]).where(table["intact"].astype(bool)),
    ).sort_values("score", ascending=False, kind="stable")
    return table.assign(number=range(1, len(table) + 1))


def _kind(arm: PlannedArm) -> str:
    return "own width" if arm.config.get("own_width", "k" not in arm.config) else "projected to k"


def alike(costs: pd.Series, share: float = EQUAL) -> bool:
    """Return whether costs differ by less than a share of the least, or are not known."""
    return not costs.max() > (1 + share) * costs.min()


def front(table: pd.DataFrame, cost: str) -> list[str]:
    """Return the arms that no other beats in both the score and the column `cost`, by rising cost.

    An arm that costs less by `EQUAL` of it, or not even that, is no cheaper.
    """
    known = table[table[cost] > 0].dropna(subset=["score"])
    ordered = known.sort_values([cost, "score"], ascending=[True, False])
    found, best = list[str](), float("-inf")
    for row in records(ordered):
        if best < row["score"] >= known.loc[known[cost] <= (1 + EQUAL) * row[cost], "score"].max():
            found, best = [*found, str(row["arm"])], row["score"]
    return found
