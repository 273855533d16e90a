"""Trials of the search compared where all of them still ran: a stopped trial is censored, not finished.

What a stopped trial would have reached is not known, so its last score is never compared with that of a trial
that went on. At the last epoch that all of them evaluated, every one has a score of equal training.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from reports.reading.frames import numbers
from reports.reading.load import Plan
from reports.tables.rank_agreement import spearman


@dataclass(frozen=True)
class Rung:
    """The last epoch that every search trial with a result evaluated.

    epoch:   None where there is none
    scores:  trial_id -> best validation score up to that epoch, as the scheduler compares it
    without: trials with a result that have no history, and so no place here
    """

    epoch: float | None
    scores: pd.Series
    without: int


def last_common(search: pd.DataFrame, history: pd.DataFrame, plan: Plan) -> Rung:
    """Return the last rung that all trials of `search` (as from `tables.search`) reached."""
    points = pd.DataFrame({"trial_id": history["trial_id"], "epoch": numbers(history, "epoch")})
    points["score"] = numbers(history, f"val/{plan.metric}")
    points = points[points["trial_id"].isin(search["trial_id"])].dropna()
    if points.empty:
        return Rung(None, pd.Series(dtype=float), len(search))
    epoch = float(points.groupby("trial_id")["epoch"].max().min())
    best = points[points["epoch"] <= epoch].groupby("trial_id")["score"].max()
    return Rung(epoch, best, len(search) - len(best))


def agreement(search: pd.DataFrame, rung: Rung) -> tuple[float | None, int]:
    """Return Spearman's rank correlation of the score at the rung with the final one, over n completed trials.

    It says how well the rung predicts the end; None for n < 3, or where either score is the same for all.
    """
    done = search[search["status"] == "completed"]
    pairs = pd.DataFrame({"rung": done["trial_id"].map(rung.scores), "end": done["score"]}).dropna()
    return spearman(pairs["rung"], pairs["end"]), len(pairs)
