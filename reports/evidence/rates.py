"""The learning rates that each arm tried before it was confirmed (`--rates`), and which it kept."""

from __future__ import annotations

import pandas as pd

from adalayers.results.files import RATES
from reports.evidence import tables
from reports.reading.frames import numbers
from reports.reading.load import Plan

COLUMNS = ["arm", "lr", "status", "score", "kept", "edge"]


def rates(trials: pd.DataFrame, plan: Plan) -> pd.DataFrame:
    """A row per arm and rate that it tried, on one seed: arm, lr, status, score (on validation), kept, edge.

    kept: whether the arm has been confirmed with it; before that, whether it is the best so far
    edge: of a rate that is kept, "low" or "high" where no other was tried on that side, else ""
    """
    rows = trials[trials["search"] == RATES] if "search" in trials.columns else trials.iloc[:0]
    table = pd.DataFrame({name: rows[name] for name in ("trial_id", "arm", "status")})
    table["lr"], table["score"] = numbers(rows, "config/lr"), numbers(rows, f"val/{plan.metric}")
    confirmed = tables.values(trials, "config/lr")
    kept, edge = pd.Series(False, index=table.index), pd.Series("", index=table.index)
    for arm, tried in table.groupby("arm", sort=False):
        of_arm = confirmed.get(str(arm), {}).values()
        completed = tried[tried["status"] == "completed"].dropna(subset=["score"])
        best = completed.sort_values(["score", "trial_id"], ascending=[False, True])["lr"].head(1)
        kept[tried.index] = tried["lr"].isin(list(of_arm) or best)
        ends = {tried["lr"].max(): "high", tried["lr"].min(): "low"}
        edge[tried.index] = [
            ends.get(lr, "") if is_kept else ""
            for lr, is_kept in zip(tried["lr"], kept[tried.index], strict=True)
        ]
    return table.assign(kept=kept, edge=edge)[COLUMNS].reset_index(drop=True)
