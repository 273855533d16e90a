"""The learning rates that each arm tried before it was confirmed (`--rates`), and which it kept."""

from __future__ import annotations

from typing import Any

import pandas as pd

from adalayers.results.files import RATES
from adalayers.results.study_file import RequestRecord
from reports.reading.frames import numbers, records
from reports.tables import arms as tables

COLUMNS = ["arm", "lr", "status", "score", "kept", "edge"]


def rates(trials: pd.DataFrame, request: RequestRecord) -> pd.DataFrame:
    """A row per arm and rate that it tried, on one seed: arm, lr, status, score (on validation), kept, edge.

    kept: whether the arm has been confirmed with it; before that, whether it is the best so far
    edge: of a rate that is kept, "low" or "high" where no other was tried on that side, else ""
    """
    rows = trials[trials["search"] == RATES]
    table = pd.DataFrame({name: rows[name] for name in ("trial_id", "arm", "status")})
    table["lr"], table["score"] = numbers(rows, "config/lr"), numbers(rows, f"val/{request.metric}")
    confirmed = tables.values(trials, "config/lr")
    rated: list[dict[str, Any]] = []
    for arm, tried in table.groupby("arm", sort=False):
        completed = tried[tried["status"] == "completed"].dropna(subset=["score"])
        best = completed.sort_values(["score", "trial_id"], ascending=[False, True])["lr"].head(1)
        kept = set(confirmed.get(str(arm), {}).values()) or set(best)
        ends = {tried["lr"].max(): "high", tried["lr"].min(): "low"}
        for row in records(tried):
            is_kept = row["lr"] in kept
            rated.append({**row, "kept": is_kept, "edge": ends.get(row["lr"], "") if is_kept else ""})
    return pd.DataFrame(rated, columns=COLUMNS)
